"""Events as they happen: by server-sent events, by WebSocket, by long poll; and how all queues stand, live."""

import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Any

from fastapi import Depends, Header, Query, WebSocket
from starlette.requests import Request

from bullpen.errors import BadOption, QueueMissing
from bullpen.job.events import EventKind
from bullpen.job.names import check_queue_name
from bullpen.server.access.allowing import EventReader, QueueReader
from bullpen.server.access.caller import Caller
from bullpen.server.access.watching import Watch
from bullpen.server.models.events import EventsShown
from bullpen.server.routes.filtering import tenant_of
from bullpen.server.routes.routing import Text, TheSite, family, own_queues
from bullpen.server.site import Site
from bullpen.server.streams.cursors import LONGEST
from bullpen.server.streams.following import Following
from bullpen.server.streams.live import LiveView
from bullpen.server.streams.sending import send_until_left
from bullpen.server.streams.sse import BEAT, EventStream
from bullpen.server.streams.telling import StreamEvent, Wanted
from bullpen.server.tenant_names import ids_of

router = family("events")

_STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}
_CURSOR = "^[A-Za-z0-9_.~:+,=/-]*$"
"""What goes into an address as it is: one of the longest of anything else would be too long for the server there."""
After = Annotated[str | None, Query(max_length=LONGEST, pattern=_CURSOR)]


async def wanted_events(
    caller: EventReader, queue: Text = None, job: Text = None, tenant: Text = None, kinds: Text = None
) -> Wanted:
    """What the caller asks for, as far as they may hear it. `kinds` has commas between them.

    A caller with a tenant may also say the id that it chose for the job.
    """
    if queue is not None and not caller.sees_queue(check_queue_name(queue)):
        raise QueueMissing(f"no queue {queue!r}")
    if job is not None and queue is None:
        raise BadOption("job: say its queue as well")
    jobs = None if job is None else frozenset(ids_of(caller.tenant, job))
    return Wanted(queue=queue, queues=caller.queues, jobs=jobs, tenant=tenant_of(caller, tenant), kinds=_kinds(kinds))


def _kinds(text: str | None) -> frozenset[EventKind] | None:
    if not text:
        return None
    try:
        return frozenset(EventKind(word.strip()) for word in text.split(","))
    except ValueError:
        raise BadOption(f"kinds: each is one of {', '.join(EventKind)}") from None


TheWanted = Annotated[Wanted, Depends(wanted_events)]


async def _following(site: Site, caller: Caller, wanted: Wanted, after: str | None) -> Following:
    """From a cursor, or from now on; a wrong cursor is told before anything else."""
    own = await own_queues(site, caller.tenant, wanted.queue)
    following = Following(site.hub, await site.cursors(), wanted, after, own=own)
    await following.places()
    return following


@router.get("/events", response_class=EventStream, responses=_STREAM)
async def events(
    request: Request,
    caller: EventReader,
    site: TheSite,
    wanted: TheWanted,
    after: After = None,
    last_event_id: Annotated[str | None, Header(max_length=LONGEST, pattern=_CURSOR)] = None,
) -> EventStream:
    """Events from now on, or from a cursor: server-sent events whose id is the cursor."""
    following = await _following(site, caller, wanted, last_event_id or after)
    return EventStream(_frames(following, site.watches.watch(request, caller)))


async def _frames(following: Following, watch: Watch) -> AsyncGenerator[bytes, None]:
    one_queue = following.listener.wanted.queue is not None
    async with contextlib.aclosing(following.batches(tells_start=True)) as batches:
        await anext(batches)
        yield BEAT  # not sooner: a reader who has seen it misses nothing
        async for batch in batches:
            if not await watch.may_go_on():
                return
            if not batch:
                yield b"%sid: %s\n\n" % (BEAT, following.cursor.encode())
            elif one_queue:
                yield b"".join([told.numbered_frame for told in batch])
            else:
                # With several queues the cursor is long: once for all of the batch.
                yield b"%sid: %s\n\n" % (b"".join([told.frame for told in batch]), following.cursor.encode())


@router.websocket("/events/ws", name="events.ws")
async def events_by_socket(
    socket: WebSocket, caller: EventReader, site: TheSite, wanted: TheWanted, after: After = None
) -> None:
    """The same by WebSocket: one JSON text for each event, and cursors where those of the events do not do."""
    following = await _following(site, caller, wanted, after)
    async with contextlib.aclosing(following.batches(tells_start=True)) as batches:
        await anext(batches)
        await socket.accept()  # not sooner: a reader who is let in misses nothing
        sending = _send_all(socket, following, batches, site.watches.watch(socket, caller))
        await send_until_left(socket.receive, sending)
    with contextlib.suppress(RuntimeError):  # the caller was quicker
        await socket.close(1001)


async def _send_all(
    socket: WebSocket, following: Following, batches: AsyncGenerator[Sequence[StreamEvent], None], watch: Watch
) -> None:
    one_queue = following.listener.wanted.queue is not None
    if not one_queue:
        await _send_cursor(socket, following)
    async for batch in batches:
        if not await watch.may_go_on():
            return
        for told in batch:
            await socket.send_text(told.text.decode())
        if not (batch and one_queue):
            await _send_cursor(socket, following)


async def _send_cursor(socket: WebSocket, following: Following) -> None:
    await socket.send_json({"kind": "cursor", "cursor": following.cursor})


@router.get("/events/poll")
async def poll(
    caller: EventReader,
    site: TheSite,
    wanted: TheWanted,
    after: After = None,
    wait_s: Annotated[float, Query(ge=0, le=30)] = 0,
) -> EventsShown:
    """The events after a cursor, waiting for the first; the answer's cursor asks for the next."""
    following = await _following(site, caller, wanted, after)
    async with contextlib.aclosing(following.batches(beat_s=wait_s)) as batches:
        batch = await anext(batches, ())
        items = [told.words() for told in batch if told.event is not None]
        return EventsShown(items=items, cursor=following.cursor, gap=len(items) < len(batch))


@router.get("/live", response_class=EventStream, responses=_STREAM)
async def live(request: Request, caller: QueueReader, site: TheSite) -> EventStream:
    """Which queues and jobs changed, at most four times a second: server-sent events named `queues`."""
    own = await own_queues(site, caller.tenant)
    view = LiveView(site.hub, site.standing, Wanted(queues=caller.queues, tenant=caller.tenant), own)
    return EventStream(_updates(view, site.watches.watch(request, caller)))


async def _updates(view: LiveView, watch: Watch) -> AsyncGenerator[bytes, None]:
    async with contextlib.aclosing(view.updates()) as updates:
        await anext(updates)
        yield BEAT  # not sooner: a reader who has seen it misses nothing
        async for update in updates:
            if not await watch.may_go_on():
                return
            yield BEAT if update is None else b"event: queues\ndata: %s\n\n" % update
