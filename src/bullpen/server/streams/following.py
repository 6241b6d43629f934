"""A stream from where its reader left off: first what was missed, then what happens."""

from collections.abc import AsyncGenerator, Collection, Sequence

from bullpen.server.streams.cursors import Cursors
from bullpen.server.streams.hub import Hub
from bullpen.server.streams.listening import Listener
from bullpen.server.streams.telling import StreamEvent, Wanted

BEAT_S = 15.0


class Following:
    """What one reader hears, in batches.

    With `own` it knows of these queues only, and of those where it hears something. While it knows nothing of the one
    that it asks for, its cursor stays where it was, or else it would tell that others have something there; who goes on
    from there misses nothing.
    """

    def __init__(
        self, hub: Hub, cursors: Cursors, wanted: Wanted, after: str | None, *, own: Collection[str] | None = None
    ) -> None:
        self._hub = hub
        self._cursors = cursors
        self._wanted = wanted
        self._after = after
        self.listener: Listener = hub.listener(wanted, own)

    @property
    def cursor(self) -> str:
        """Where to go on after what was heard."""
        places = self.listener.places
        if self._wanted.queue is not None:
            if not self.listener.knows(self._wanted.queue):
                return self._after or ""
            return places.get(self._wanted.queue, "")
        return self._cursors.write(places, self.listener.own)

    async def places(self) -> dict[str, str]:
        """Where it begins; BadOption for a cursor that is none."""
        if self._after is None:
            return {}
        if self._wanted.queue is not None:
            return {self._wanted.queue: self._after}
        return self._cursors.read(self._after, await self._hub.names(self._wanted))

    async def batches(
        self, *, beat_s: float = BEAT_S, tells_start: bool = False
    ) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """One after the other until the server stops; an empty one when nothing happened for a while.

        With `tells_start` the first one is empty: whatever happens after it is told.
        """
        places = await self.places()
        # From the start: a cursor that is told before all was caught up must not leave out the rest.
        self.listener.places.update(places)
        async with self._hub.listening(self.listener, later=places):
            if tells_start:
                yield ()
            for queue, after in places.items():
                async for told in self._missed(queue, after):
                    yield self._as_heard(told)
            while not self.listener.has_ended:
                if await self.listener.wait(beat_s):
                    yield self._as_heard(self.listener.take())
                    await self._hub.rest(self.listener)
                else:
                    self._hub.catch_up(self.listener)
                    yield ()

    def _as_heard(self, told: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """A caller of some queues is told of no child in others."""
        return told if self._wanted.queues is None else [one.without_child() for one in told]

    async def _missed(self, queue: str, after: str) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """What was logged since its reader left; with the last of it, it is let in to hear the rest."""
        is_all = False
        while not is_all:
            page = await self._hub.missed(queue, after)
            is_all = not page.is_full
            after = self.listener.places[queue] = page.cursor
            if is_all:
                # Before anything else happens, or what is logged now would be missed.
                self._hub.let_in(self.listener, queue, after)
            logged = [StreamEvent(queue, event, event.cursor) for event in page.events]
            self.listener.learn_from(queue, logged)
            told = [one for one in logged if one.event is not None and self._wanted.fits(one.event)]
            if page.gap and self.listener.knows(queue):
                told.insert(0, StreamEvent(queue, None, page.events[0].cursor if page.events else page.cursor))
            if told:
                yield told
