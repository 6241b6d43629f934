"""What is done to a whole queue."""

from typing import Any

from starlette.requests import Request

from bullpen.server import promoting
from bullpen.server.access.allowing import QueueWriter
from bullpen.server.guarding import note
from bullpen.server.models.acting import CleanBody, DrainBody, ObliterateBody, PromoteAllBody, Promoted, RetryAllBody
from bullpen.server.models.base import Count, Done
from bullpen.server.routes.routing import QueueName, TheSite, family

router = family("queues")


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
async def promote_all(
    request: Request, caller: QueueWriter, site: TheSite, queue: QueueName, body: PromoteAllBody
) -> Promoted:
    """Let all delayed jobs run now; `next_cursor` of the answer goes on where the limit ended it."""
    promoted = await promoting.promote_all(site, queue, body.limit, body.cursor)
    note(request, count=promoted.count)
    return Promoted.model_validate(promoted)


def _counted(request: Request, count: int, **details: Any) -> Count:
    note(request, count=count, **details)
    return Count(count=count)
