"""The same act on many jobs, each with its own outcome."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bullpen.errors import BullpenError, JobMissing, StoreError, WrongState
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.state import State
from bullpen.records.model.searching import JobFilter
from bullpen.server.access.caller import Caller
from bullpen.server.descendants import check_below
from bullpen.server.looking import look_up
from bullpen.server.problems import Refused
from bullpen.server.site import Site
from bullpen.server.tenant_names import apart

DONE = "done"
_AT_ONCE = 50
_PAGE = 500


class Action(StrEnum):
    RETRY = "retry"
    PROMOTE = "promote"
    CANCEL = "cancel"
    REMOVE = "remove"


PERMISSION = {
    Action.RETRY: "jobs:retry",
    Action.PROMOTE: "jobs:write",
    Action.CANCEL: "jobs:cancel",
    Action.REMOVE: "jobs:write",
}


def act_of(site: Site, caller: Caller, action: Action) -> Callable[[JobRef], Awaitable[object]]:
    """What the caller does to one job; Refused if it reaches what is not theirs to see."""
    store = site.store
    match action:
        case Action.RETRY:
            return store.retry
        case Action.PROMOTE:
            return store.promote
        case Action.REMOVE:
            return lambda ref: _remove(site, caller, ref)
        case Action.CANCEL:
            return lambda ref: store.cancel(ref, reason="")


async def _remove(site: Site, caller: Caller, ref: JobRef) -> None:
    await check_below(site, caller, ref)
    await site.store.remove(ref)


async def act_on(
    site: Site, caller: Caller, action: Action, refs: Sequence[JobRef], *, only: State | None = None
) -> list[str]:
    """Do it to each that is the caller's; `done`, or the code of the error, in their order.

    With `only`, to those that are in this state as the store has it: what the read model says may be over.
    """
    seen = await _seen(site, caller, refs)
    act = act_of(site, caller, action)
    outcomes: list[str] = []
    for start in range(0, len(refs), _AT_ONCE):
        # Asked together and in order: a store that commits in groups makes one commit of them.
        some = refs[start : start + _AT_ONCE]
        outcomes += await asyncio.gather(*[_outcome(act, seen.get(ref), only) for ref in some])
    return outcomes


async def _seen(site: Site, caller: Caller, refs: Sequence[JobRef]) -> dict[JobRef, JobRecord]:
    """Those of the jobs that are there and the caller's to see."""
    # What a caller with a tenant says may be the id that it chose at the add.
    own = {ref: JobRef(ref.queue, apart(caller.tenant, ref.id)) for ref in refs if caller.sees_queue(ref.queue)}
    there = await look_up(site.store, (*own, *own.values()))
    found = {ref: job for ref, job in there.items() if caller.sees_tenant(job.tenant)}
    return {ref: job for ref in own if (job := found.get(ref) or found.get(own[ref])) is not None}


async def _outcome(act: Callable[[JobRef], Awaitable[object]], job: JobRecord | None, only: State | None) -> str:
    if job is None:
        return JobMissing.code
    if only is not None and job.state is not only:
        return WrongState.code
    try:
        await act(job.ref)
    except StoreError:
        raise  # nothing about this job: the others would fare no better
    except (BullpenError, Refused) as error:
        return error.code
    return DONE


@dataclass(frozen=True, slots=True)
class FailedJobs:
    pages: list[list[JobRef]]
    next_cursor: str | None
    """Where the others begin."""


async def failed_jobs(site: Site, wanted: JobFilter, limit: int, cursor: str | None = None) -> FailedJobs:
    """The failed jobs that the read model knows by this filter, up to so many."""
    assert tuple(wanted.states) == (State.FAILED,)
    pages: list[list[JobRef]] = []
    while limit > 0:
        page = await site.records.jobs.list(wanted, limit=min(limit, _PAGE), cursor=cursor)
        pages.append([JobRef(job.queue, job.id) for job in page.jobs])
        limit -= len(page.jobs)
        cursor = page.next_cursor
        if cursor is None:
            break
    return FailedJobs(pages, cursor)
