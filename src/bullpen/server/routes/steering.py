"""What is done to a whole queue."""

import asyncio
from typing import Any

from starlette.requests import Request

from bullpen.errors import JobMissing, WrongState
from bullpen.job.record import JobRef
from bullpen.job.state import State
from bullpen.server.access.allowing import QueueWriter
from bullpen.server.guarding import note
from bullpen.server.models.acting import CleanBody, DrainBody, ObliterateBody, RetryAllBody
from bullpen.server.models.base import Count, Done
from bullpen.server.routes.routing import QueueName, TheSite, family
from bullpen.server.site import Site

router = family("queues")

_PAGE = 200


@router.post("/queues/{queue}/pause", name="queue.pause")
async def pause(caller: QueueWriter, site: TheSite, queue: QueueName) -> Done:
    """Give out no more jobs of the queue; running ones go on."""
    await site.queue(queue).pause()
    site.standing.forget(queue)
    return Done()


@router.post("/queues/{queue}/resume", name="queue.resume")
async def resume(caller: QueueWriter, site: TheSite, queue: QueueName) -> Done:
    """Give out its jobs again."""
    await site.queue(queue).resume()
    site.standing.forget(queue)
    return Done()


@router.post("/queues/{queue}/drain", name="queue.drain")
async def drain(request: Request, caller: QueueWriter, site: TheSite, queue: QueueName, body: DrainBody) -> Count:
    """Remove all that waits, and what is delayed if asked."""
    return _counted(request, await site.queue(queue).drain(delayed=body.delayed))


@router.post("/queues/{queue}/clean", name="queue.clean")
async def clean(request: Request, caller: QueueWriter, site: TheSite, queue: QueueName, body: CleanBody) -> Count:
    """Remove jobs that are in a state for that long."""
    done = await site.queue(queue).clean(body.state, older_than=body.older_than, limit=body.limit)
    return _counted(request, done, state=body.state)


@router.post("/queues/{queue}/obliterate", name="queue.obliterate")
async def obliterate(caller: QueueWriter, site: TheSite, queue: QueueName, body: ObliterateBody) -> Done:
    """Remove the queue and everything in it, for good."""
    await site.queue(queue).obliterate(force=body.force)
    site.standing.forget(queue)
    site.plans.forget(queue)
    return Done()


@router.post("/queues/{queue}/retry-all", name="queue.retry_all")
async def retry_all(
    request: Request,
    caller: QueueWriter,
    site: TheSite,
    queue: QueueName,
    body: RetryAllBody,
) -> Count:
    """Run finished jobs again, the oldest first."""
    return _counted(request, await site.queue(queue).retry_all(body.state, limit=body.limit), state=body.state)


@router.post("/queues/{queue}/promote-all", name="queue.promote_all")
async def promote_all(request: Request, caller: QueueWriter, site: TheSite, queue: QueueName) -> Count:
    """Let all delayed jobs run now."""
    done = 0
    until_ms = site.clock.now_ms()
    while True:
        page = await site.queue(queue).jobs(State.DELAYED, limit=_PAGE)
        # What was delayed after we began may be our own doing: a promoted job that failed and is tried again.
        refs = [job.ref for job in page.jobs if job.added_ms <= until_ms]
        moved = sum(await asyncio.gather(*[_promoted(site, ref) for ref in refs]))
        done += moved
        if not moved or page.next_cursor is None:
            return _counted(request, done)


async def _promoted(site: Site, ref: JobRef) -> bool:
    try:
        await site.store.promote(ref)
    except (JobMissing, WrongState):
        return False  # someone else was quicker
    return True


def _counted(request: Request, count: int, **details: Any) -> Count:
    note(request, count=count, **details)
    return Count(count=count)
