"""What belongs to one job: its log, its durable steps, its children, the tree it stands in."""

from typing import Annotated

from fastapi import Query

from bullpen.job.record import JobRecord, JobRef
from bullpen.server.access.allowing import JobReader
from bullpen.server.access.caller import Caller
from bullpen.server.descendants import sees
from bullpen.server.looking import look_up
from bullpen.server.models.details import ChildrenShown, ChildShown, FlowShown, LogShown, StepShown, StepsShown
from bullpen.server.models.jobs import shown_failure, shown_payload
from bullpen.server.routes.routing import Cursor, JobId, QueueName, TheSite, family, job_of
from bullpen.server.site import Site

router = family("jobs")

_PATH = "/queues/{queue}/jobs/{job_id}"
Place = Annotated[int, Query(ge=0, le=1_000_000_000)]
_NODES = 500
"""Jobs of a tree in one answer: each is a question to the store."""


@router.get(f"{_PATH}/logs")
async def logs(
    caller: JobReader,
    site: TheSite,
    queue: QueueName,
    job_id: JobId,
    start: Place = 0,
    end: Annotated[int | None, Query(ge=0, le=1_000_000_000)] = None,
) -> LogShown:
    """Lines of the job's log, from one number up to another."""
    job = await job_of(site, caller, queue, job_id)
    limit = 1_000 if end is None else max(1, min(1_000, end - start))
    page = await site.store.logs(job.ref, start=start, limit=limit)
    return LogShown(lines=list(page.lines), total=page.total)


@router.get(f"{_PATH}/steps")
async def steps(caller: JobReader, site: TheSite, queue: QueueName, job_id: JobId, start: Place = 0) -> StepsShown:
    """What the job's durable steps have recorded, by place."""
    job = await job_of(site, caller, queue, job_id)
    page = await site.store.read_journal(job.ref, start=start)
    codec = site.queue(queue).codec
    items = [
        StepShown(
            place=entry.place,
            name=entry.name,
            kind=entry.kind,
            state=entry.state,
            value=shown_payload(entry.value, codec),
            failure=shown_failure(entry.failure),
            until_ms=entry.until_ms,
            attempts=entry.attempts,
            started_ms=entry.started_ms,
            ended_ms=entry.ended_ms,
            epoch=entry.epoch,
        )
        for entry in page.entries
    ]
    return StepsShown(items=items, next_place=page.next_place)


@router.get(f"{_PATH}/children")
async def children(
    caller: JobReader,
    site: TheSite,
    queue: QueueName,
    job_id: JobId,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    cursor: Cursor = None,
) -> ChildrenShown:
    """The jobs that it waits for or waited for, and what became of each."""
    job = await job_of(site, caller, queue, job_id)
    page = await site.store.children(job.ref, limit=limit, cursor=cursor)
    known = await look_up(site.store, (child.ref for child in page.children))
    codec = site.queue(queue).codec
    items = [
        ChildShown(
            queue=child.ref.queue,
            id=child.ref.id,
            child_state=child.state,
            state=None if (record := known.get(child.ref)) is None else record.state,
            name=None if record is None else record.name,
            result=shown_payload(child.result, codec),
            reason=child.reason,
        )
        for child in page.children
        if sees(caller, child.ref, known.get(child.ref))
    ]
    return ChildrenShown(items=items, next_cursor=page.next_cursor)


@router.get(f"{_PATH}/flow")
async def flow(
    caller: JobReader,
    site: TheSite,
    queue: QueueName,
    job_id: JobId,
    depth: Annotated[int, Query(ge=1, le=6)] = 3,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    cursor: Cursor = None,
) -> FlowShown:
    """The tree below the job, down to a depth; with `next_cursor` of a node as cursor, more of that node's children.

    It has about 500 jobs at most: `is_cut` says where it goes on.
    """
    job = await job_of(site, caller, queue, job_id)
    return await _tree(site, caller, job, depth, limit, cursor)


async def _tree(site: Site, caller: Caller, top: JobRecord, depth: int, limit: int, cursor: str | None) -> FlowShown:
    """Level by level: where there are too many jobs, it is cut at the bottom."""
    root = _node(top.ref, top)
    level: list[tuple[FlowShown, JobRecord]] = [(root, top)]
    left = _NODES - 1
    for below in range(depth, 0, -1):
        deeper: list[tuple[FlowShown, JobRecord]] = []
        for node, job in level:
            if left <= 0:
                node.is_cut = root.is_cut = True
                continue
            most = min(limit, left) if below > 1 else 1
            page = await site.store.children(job.ref, limit=most, cursor=cursor if node is root else None)
            node.has_children = bool(page.children)
            if below == 1:
                continue
            known = await look_up(site.store, (child.ref for child in page.children))
            seen = [child.ref for child in page.children if sees(caller, child.ref, known.get(child.ref))]
            node.children = [_node(child, known.get(child)) for child in seen]
            node.next_cursor = page.next_cursor
            left -= len(seen)
            # One that is gone: its own children are not known any more.
            deeper += [(one, known[ref]) for one, ref in zip(node.children, seen, strict=True) if ref in known]
        level = deeper
    return root


def _node(ref: JobRef, job: JobRecord | None) -> FlowShown:
    if job is None:
        return FlowShown(queue=ref.queue, id=ref.id, name=None, state=None)
    return FlowShown(queue=ref.queue, id=ref.id, name=job.name, state=job.state)
