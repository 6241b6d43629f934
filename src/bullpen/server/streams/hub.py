"""All channels of a server: opened for the first listener of a queue, closed after the last."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence

from bullpen.errors import BadOption, RecordsUnavailable, StoreUnavailable
from bullpen.server.streams.channel import PAGE, Channel
from bullpen.server.streams.listening import Listener
from bullpen.server.streams.telling import Wanted
from bullpen.stores.base import EventPage, Store

logger = logging.getLogger("bullpen.server")

_FIND_S = 1.0
"""How often listeners of all queues are given those that are new."""
_LINGER_S = 10.0
"""A channel that nobody hears stays that long: who polls is back soon."""

_PACE_S = 0.1
"""Between two sends to one reader: under load each brings many events."""
_SENDS_PER_S = 1_000
"""To all readers together. A send costs more than an event does: where many are busy, each waits a little longer."""
_LONGEST_PACE_S = 1.0

Names = Callable[[], Awaitable[Sequence[str]]]


class Hub:
    """Brings listeners and event logs together; `names` tells all queues that there are."""

    def __init__(self, store: Store, names: Names, *, limit: int) -> None:
        self._store = store
        self._names = names
        self._limit = limit
        self._channels: dict[str, Channel] = {}
        self._everywhere: set[Listener] = set()
        self._listeners: set[Listener] = set()
        self._finding: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._resting = 0
        """How many readers were sent something a moment ago."""
        self._is_stopped = False

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    @property
    def pace_s(self) -> float:
        """How long a reader that was just sent something is left alone."""
        return min(max(_PACE_S, self._resting / _SENDS_PER_S), _LONGEST_PACE_S)

    async def rest(self, listener: Listener) -> None:
        """Leave a reader alone that was just sent something, so that the next send brings many events."""
        self._resting += 1
        try:
            await listener.rest(self.pace_s)
        finally:
            self._resting -= 1

    async def stop(self) -> None:
        """End all streams; safe to call twice."""
        self._is_stopped = True
        finding, self._finding = self._finding, None
        if finding is not None:
            finding.cancel()
            await asyncio.gather(finding, return_exceptions=True)
        for listener in self._listeners:
            listener.end()
        channels, self._channels = list(self._channels.values()), {}
        await asyncio.gather(*[channel.stop() for channel in channels], *self._closing)

    async def names(self, wanted: Wanted) -> list[str]:
        """The queues that someone who wants this may hear."""
        known = [wanted.queue] if wanted.queue is not None else await self._names()
        return [queue for queue in known if wanted.fits_queue(queue)]

    @contextlib.asynccontextmanager
    async def listening(self, listener: Listener, later: Collection[str] = ()) -> AsyncIterator[None]:
        """Let it hear what it wants from now on; in the queues for `later`, once it is let in there."""
        self._listeners.add(listener)
        if self._is_stopped:
            listener.end()
        try:
            # Also those for `later` that are gone by now: it is let in there all the same.
            for queue in {*later, *await self.names(listener.wanted)}:
                channel = await self._opened(queue, listener)
                if queue not in later:
                    channel.join(listener, None)
            if listener.wanted.queue is None:
                self._everywhere.add(listener)
                self._find()
            yield
        finally:
            self._leave(listener)

    def let_in(self, listener: Listener, queue: str, after: str) -> None:
        """Let it hear a queue from this place on; to be called at once when the log was read up to there."""
        channel = self._channels.get(queue)
        if channel is not None:  # else all streams end
            channel.join(listener, after)

    def listener(self, wanted: Wanted, own: Collection[str] | None = None) -> Listener:
        return Listener(wanted, limit=self._limit, own=own)

    def catch_up(self, listener: Listener) -> None:
        """All that is told up to here was heard, wanted or not: its cursor need not stay behind."""
        if listener.is_idle:
            for queue in listener.places:
                channel = self._channels.get(queue)
                if channel is not None and channel.is_heard_by(listener):
                    listener.places[queue] = channel.position

    async def missed(self, queue: str, after: str) -> EventPage:
        """A page of what was logged after a place; one that is not full is all."""
        try:
            return await self._store.events(queue, after=after, limit=PAGE, timeout_ms=0)
        except BadOption:
            end = await self._store.events(queue, after=None, limit=1, timeout_ms=0)
            return EventPage((), end.cursor, gap=True)

    # ── channels ─────────────────────────────────────────────────────────────────────────

    async def _opened(self, queue: str, *expected: Listener) -> Channel:
        """The channel of a queue, which stays until those who are expected there came and left again."""
        channel = self._channels.get(queue)
        if channel is None:
            channel = Channel(self._store, queue)
            if not self._is_stopped:
                self._channels[queue] = channel
        channel.expect(expected)
        if not self._is_stopped:
            await channel.start()
        return channel

    def _leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)
        self._everywhere.discard(listener)
        for channel in self._channels.values():
            channel.leave(listener)
        if not self._is_stopped:
            asyncio.get_running_loop().call_later(_LINGER_S, self._tidy)

    def _tidy(self) -> None:
        for queue, channel in list(self._channels.items()):
            if channel.is_unheard:
                del self._channels[queue]
                # Owned by this hub until done.
                closing = asyncio.get_running_loop().create_task(channel.stop())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)

    def _find(self) -> None:
        if self._finding is None and not self._is_stopped:
            # Owned by this hub; ends with the last who listens to all queues, or with `stop`.
            self._finding = asyncio.create_task(self._keep_finding(), name="new queues")

    async def _keep_finding(self) -> None:
        while self._everywhere:
            await asyncio.sleep(_FIND_S)
            try:
                await self._join_new()
            except (StoreUnavailable, RecordsUnavailable) as error:
                logger.warning("cannot look for new queues, trying again: %s", error)
            except Exception:
                # Whatever it is, streams that miss new queues in silence are worse.
                logger.exception("the look for new queues met an error, trying again")
        self._finding = None

    async def _join_new(self) -> None:
        for queue in await self._names():
            newcomers = [one for one in self._everywhere if queue not in one.places and one.wanted.fits_queue(queue)]
            if not newcomers:
                continue
            channel = await self._opened(queue, *newcomers)
            for listener in newcomers:
                if listener not in self._everywhere:
                    channel.leave(listener)
                elif queue not in listener.places:
                    channel.join(listener, None)
