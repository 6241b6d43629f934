"""Jobs: lists from the read model, one job from the store."""

import dataclasses
from collections.abc import Collection
from typing import Annotated

from fastapi import Query

from bullpen.job.state import State
from bullpen.records.model.searching import JobFilter
from bullpen.server.access.allowing import JobReader
from bullpen.server.access.caller import Caller
from bullpen.server.models.jobs import JobRow, JobRows, JobShown, shown_job, without_child
from bullpen.server.relatives import events_without_strangers, without_strangers
from bullpen.server.routes.filtering import TheFilter
from bullpen.server.routes.routing import Cursor, JobId, QueueName, TheSite, family, has_jobs, job_of
from bullpen.server.site import Site
from bullpen.server.tenant_names import as_chosen

router = family("jobs")

Limit = Annotated[int, Query(ge=1, le=500)]


@router.get("/jobs")
async def jobs(
    caller: JobReader,
    site: TheSite,
    wanted: TheFilter,
    state: Annotated[list[State] | None, Query()] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> JobRows:
    """Jobs by filter and words, the newest first."""
    return await rows_of(site, caller, dataclasses.replace(wanted, states=state or ()), limit, cursor)


async def rows_of(site: Site, caller: Caller, wanted: JobFilter, limit: int, cursor: str | None) -> JobRows:
    """A page of the read model, and how old it may be."""
    page = await site.records.jobs.list(wanted, limit=limit, cursor=cursor)
    behind_ms = page.behind_ms
    if not page.jobs and not await knows(site, wanted.queue, queues=wanted.queues, tenant=wanted.tenant):
        behind_ms = await site.records.jobs.behind_ms()
    items = [JobRow.model_validate(job) for job in page.jobs]
    if caller.queues is not None:
        items = [one.model_copy(update={"error": one.error and without_child(one.error)}) for one in items]
    return JobRows(items=items, next_cursor=page.next_cursor, behind_ms=behind_ms)


async def knows(site: Site, queue: str | None, *, queues: Collection[str] | None, tenant: str | None) -> bool:
    """Whether to tell how far behind this queue is. Who has nothing there would learn that it exists.

    What is told then is how far behind all queues are.
    """
    return queue is None or ((queues is None or queue in queues) and await has_jobs(site, tenant, queue))


@router.get("/queues/{queue}/jobs/{job_id}")
async def job(caller: JobReader, site: TheSite, queue: QueueName, job_id: JobId) -> JobShown:
    """One job with all that is known of it, as the store has it now."""
    found = await job_of(site, caller, queue, job_id)
    events = await site.past.events(found)
    (found,) = await without_strangers(site.store, caller, [found])
    children = await site.store.children(found.ref, limit=1)
    shown = shown_job(
        found,
        events=events_without_strangers(caller, events),
        has_children=bool(children.children),
        codec=site.queue(queue).codec,
    )
    schedule = None if shown.schedule is None else as_chosen(caller.tenant, shown.schedule)
    return shown.model_copy(update={"schedule": schedule})
