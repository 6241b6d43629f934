"""Why jobs failed, and what is done about it: dead letters."""

import dataclasses

from starlette.requests import Request

from bullpen.errors import BadOption
from bullpen.job.record import JobRef
from bullpen.job.state import State
from bullpen.records.model.reasons import Order
from bullpen.records.model.searching import JobFilter
from bullpen.server.access.allowing import JobReader, JobRetrier, JobWriter
from bullpen.server.access.caller import Caller
from bullpen.server.bulk_actions import DONE, Action, act_on, failed_jobs
from bullpen.server.guarding import BULK, note
from bullpen.server.models.acting import DeadLettersBody, DeadLettersDone, FailedFilter
from bullpen.server.models.failures import FailureGroupShown, FailuresShown
from bullpen.server.models.jobs import JobRows, without_child
from bullpen.server.routes.filtering import TheFilter, tenant_of
from bullpen.server.routes.jobs import Limit, knows, rows_of
from bullpen.server.routes.routing import Cursor, Millis, Text, TheSite, family
from bullpen.server.site import Site

router = family("dead letters")
many = family("dead letters", BULK)

_REASONS = 100


def _filter(caller: Caller, given: FailedFilter) -> JobFilter:
    return JobFilter(
        queue=given.queue,
        queues=None if caller.queues is None else sorted(caller.queues),
        states=(State.FAILED,),
        tenant=tenant_of(caller, given.tenant),
        workspace=given.workspace,
        name=given.name,
        tag=given.tag,
        fingerprint=given.fingerprint,
        error_kind=given.error_kind,
        since_ms=given.since_ms,
        until_ms=given.until_ms,
        text=given.q,
    )


@router.get("/failures")
async def failures(
    caller: JobReader,
    site: TheSite,
    queue: Text = None,
    tenant: Text = None,
    since_ms: Millis = None,
    order: Order = Order.COUNT,
) -> FailuresShown:
    """The reasons for which jobs failed, the first hundred; `since_ms`: for which jobs failed since, and how many."""
    queues = None if caller.queues is None else sorted(caller.queues)
    tenant = tenant_of(caller, tenant)
    groups = await site.records.jobs.failures(
        queue=queue, queues=queues, tenant=tenant, since_ms=since_ms, order=order, limit=_REASONS + 1
    )
    told = queue if await knows(site, queue, queues=queues, tenant=tenant) else None
    items = [FailureGroupShown.model_validate(group) for group in groups]
    if queues is not None:
        items = [one.model_copy(update={"error": without_child(one.error)}) for one in items]
    return FailuresShown(
        items=items[:_REASONS],
        has_more=len(items) > _REASONS,
        behind_ms=await site.records.jobs.behind_ms(told),
    )


@router.get("/dead-letters")
async def dead_letters(
    caller: JobReader, site: TheSite, wanted: TheFilter, limit: Limit = 50, cursor: Cursor = None
) -> JobRows:
    """Failed jobs by filter and words, the newest first."""
    return await rows_of(site, caller, dataclasses.replace(wanted, states=(State.FAILED,)), limit, cursor)


@many.post("/dead-letters/retry", name="dead_letters.retry")
async def retry(request: Request, caller: JobRetrier, site: TheSite, body: DeadLettersBody) -> DeadLettersDone:
    """Run failed jobs again with fresh attempts; `next_cursor` of the answer goes on where the limit ended it."""
    return await _for_each(request, caller, site, body, Action.RETRY)


@many.post("/dead-letters/purge", name="dead_letters.purge")
async def purge(request: Request, caller: JobWriter, site: TheSite, body: DeadLettersBody) -> DeadLettersDone:
    """Remove failed jobs for good; `next_cursor` as with a retry."""
    return await _for_each(request, caller, site, body, Action.REMOVE)


async def _for_each(
    request: Request, caller: Caller, site: Site, body: DeadLettersBody, action: Action
) -> DeadLettersDone:
    if (body.filter is None) == (body.jobs is None):
        raise BadOption("filter: give a filter or jobs, and not both")
    outcomes: list[str] = []
    next_cursor: str | None = None
    if body.jobs is not None:
        outcomes += await act_on(
            site, caller, action, [JobRef(one.queue, one.id) for one in body.jobs], only=State.FAILED
        )
    elif body.filter is not None:
        # Known first, then acted on: what fails again meanwhile is not taken up a second time.
        found = await failed_jobs(site, _filter(caller, body.filter), body.limit, body.cursor)
        next_cursor = found.next_cursor
        for page in found.pages:
            outcomes += await act_on(site, caller, action, page, only=State.FAILED)
    done = outcomes.count(DONE)
    given = {} if body.filter is None else body.filter.model_dump(exclude_none=True)
    note(request, target=str(given.get("queue", "all queues")), done=done, filter=given)
    return DeadLettersDone(done=done, passed_over=len(outcomes) - done, next_cursor=next_cursor)
