"""One listener: what waits for it, up to a limit."""

import asyncio
from collections.abc import Collection, Iterable, Sequence

from bullpen.server.streams.telling import StreamEvent, Wanted

_MAX_BYTES = 4_194_304


class Listener:
    """Gets what it wants to hear; what it does not take in time is dropped, and it is told of a gap."""

    def __init__(self, wanted: Wanted, *, limit: int, own: Collection[str] | None = None) -> None:
        self.wanted = wanted
        self.own = None if own is None else set(own)
        """The queues of which it knows, if it must not learn of others; more come with what it hears."""
        self.is_plain = wanted.is_plain
        self.has_ended = False
        """The server stops, or the listener has left."""
        self.places: dict[str, str] = {}
        """How far it has heard each queue."""
        self._limit = limit
        self._waiting: list[StreamEvent] = []
        self._bytes = 0
        self._lost: StreamEvent | None = None
        self._woken = asyncio.Event()
        self._resting: asyncio.Future[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits for it."""
        return not self._waiting and self._lost is None

    def knows(self, queue: str) -> bool:
        """Whether it may be told that something happened there."""
        return self.own is None or queue in self.own

    def learn(self, queue: str) -> None:
        """Its tenant has something there."""
        if self.own is not None:
            self.own.add(queue)

    def learn_from(self, queue: str, told: Iterable[StreamEvent]) -> None:
        """It knows of a queue with events of its tenant, whether or not it wants to hear these."""
        if not self.knows(queue) and any(one.event and one.event.tenant == self.wanted.tenant for one in told):
            self.learn(queue)

    def miss(self, queue: str, cursor: str) -> bool:
        """Tell it of a gap up to here; whether it may know. Else only its place moves on."""
        if not self.knows(queue):
            self.places[queue] = cursor
            return False
        self.put([StreamEvent(queue, None, cursor)])
        return True

    def put(self, told: Sequence[StreamEvent]) -> None:
        """Let it hear these, which are of one queue; it is not woken yet."""
        size = sum([one.size for one in told])
        if len(self._waiting) + len(told) <= self._limit and self._bytes + size <= _MAX_BYTES:
            self._waiting += told
            self._bytes += size
        else:
            for one in told:
                self._put_or_drop(one)

    def _put_or_drop(self, told: StreamEvent) -> None:
        self._waiting.append(told)
        self._bytes += told.size
        if len(self._waiting) > self._limit or self._bytes > _MAX_BYTES:
            # All of it, not only the oldest: whoever is that slow had better look at the jobs anew.
            self._lost = StreamEvent(told.queue, None, told.cursor)
            self._waiting.clear()
            self._bytes = 0

    def wake(self) -> None:
        if not self._woken.is_set():
            self._woken.set()
        if self._resting is not None and self._is_pressed:
            self._rise()

    def end(self) -> None:
        self.has_ended = True
        self._woken.set()
        self._rise()

    async def wait(self, seconds: float) -> bool:
        """Wait for something to hear; whether it came in time."""
        if self._woken.is_set():
            return True  # the usual case under load, and then a timer would cost more than all the rest
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return False
        return True

    async def rest(self, seconds: float) -> None:
        """Let more come, for so long; less if what waits might soon be too much."""
        if self.has_ended or self._is_pressed:
            await asyncio.sleep(0)  # the others have their turn too
            return
        loop = asyncio.get_running_loop()
        self._resting = loop.create_future()
        timer = loop.call_later(seconds, self._rise)
        try:
            await self._resting
        finally:
            timer.cancel()
            self._resting = None

    def take(self) -> Sequence[StreamEvent]:
        """All that waits."""
        self._woken.clear()
        found, lost = self._waiting, self._lost
        self._waiting, self._bytes, self._lost = [], 0, None
        if lost is not None:
            found.insert(0, lost)
        for told in found if self.wanted.queue is None else found[-1:]:
            self.places[told.queue] = told.cursor
        return found

    @property
    def _is_pressed(self) -> bool:
        return len(self._waiting) * 2 > self._limit or self._bytes * 2 > _MAX_BYTES

    def _rise(self) -> None:
        if self._resting is not None and not self._resting.done():
            self._resting.set_result(None)
