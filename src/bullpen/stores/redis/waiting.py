"""Sleeping until there may be work, on BullMQ's markers.

Whoever puts a job into a line adds the marker "0" with score 0, whoever delays one the marker
"1" with the time at which it is due. A pop takes the marker away: one sleeper is woken, and its
claim leaves the marker for the next. Because of that

- we look before each sleep, since another may have popped the marker of a job that still waits;
- a time that we popped and do not stay for is put back, for whoever sleeps longer;
- we sleep a few seconds at a stretch, so that a sleeper which died with a marker delays the
  others by no more than that.
"""

import asyncio
import contextlib
from collections.abc import Sequence

from bullpen.clock import Clock
from bullpen.errors import BadOption, StoreError
from bullpen.stores.redis.asking import ask_runnable
from bullpen.stores.redis.connection import LONGEST_BLOCK_MS, Connection
from bullpen.stores.redis.keys import Keys
from bullpen.stores.redis.scripts import RUNNABLE

_DELAY_MARKER = "1"
_WORK_MARKER = "0"


async def wait_for_work(
    connection: Connection, keys: Keys, clock: Clock, queues: Sequence[str], timeout_ms: int
) -> bool:
    if not queues:
        raise BadOption("wait: name at least one queue")
    sleep = _Sleep(connection, keys, clock, queues)
    try:
        return await sleep.until_work(timeout_ms)
    finally:
        await sleep.put_back()


class _Sleep:
    def __init__(self, connection: Connection, keys: Keys, clock: Clock, queues: Sequence[str]) -> None:
        self._connection = connection
        self._keys = keys
        self._clock = clock
        self._queues = queues
        self._popped: dict[bytes, bytes] = {}
        """Markers with the times that we took away, and have not seen come."""

    async def until_work(self, timeout_ms: int) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while True:
            due_ms = await self._look()
            now_ms = self._clock.now_ms()
            if due_ms is not None and due_ms <= now_ms:
                self._popped.clear()
                return True
            left_ms = (deadline - loop.time()) * 1000
            if left_ms <= 0:
                return False
            until_due_ms = left_ms if due_ms is None else due_ms - now_ms
            if await self._sleep(min(left_ms, until_due_ms, LONGEST_BLOCK_MS)):
                return True

    async def _look(self) -> int | None:
        """The time at which one of the queues has a runnable job, if known; now, if it has one."""
        now_ms = self._clock.now_ms()
        answer = await self._connection.run(
            RUNNABLE, self._keys.meta(self._queues[0]), ask_runnable(self._keys, self._queues, now_ms)
        )
        match answer:
            case [b"now"]:
                return now_ms
            case [b"later", int(due_ms)]:
                return due_ms
        return None

    async def _sleep(self, ms: float) -> bool:
        """Whether there is work now; if not, look again."""
        markers = [self._keys.marker(queue) for queue in self._queues]
        try:
            popped = await self._connection.block("BZPOPMIN", *markers, f"{max(ms, 1) / 1000:.3f}")
        except asyncio.CancelledError:
            # The server may have popped a marker for us that never arrived.
            await self._mark(*(("ZADD", marker, "0", _WORK_MARKER) for marker in markers))
            raise
        if popped is None:
            return False
        marker, _, score = popped
        if float(score) <= self._clock.now_ms():
            return True
        self._popped[marker] = score
        return False

    async def put_back(self) -> None:
        await self._mark(*(("ZADD", marker, "NX", score, _DELAY_MARKER) for marker, score in self._popped.items()))

    async def _mark(self, *commands: tuple[str | bytes, ...]) -> None:
        # On a server that is full or away the others look by themselves in a few seconds. An error
        # from here would take the place of the cancellation, and the sleeper would go on.
        with contextlib.suppress(StoreError):
            for command in commands:
                await self._connection.command(*command)
