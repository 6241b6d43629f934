"""Sleeping until there may be work, on BullMQ's markers.

Whoever puts a job into a line adds the marker "0" with score 0, whoever delays one the marker
"1" with the time at which it is due. A pop takes the marker away: one sleeper is woken, and its
claim leaves the marker for the next. Because of that

- we look before each sleep, since another may have popped the marker of a job that still waits;
- a time that we popped and do not stay for is put back, for whoever sleeps longer;
- we sleep a few seconds at a stretch, so that a sleeper which died with a marker delays the
  others by no more than that.

Whoever sleeps in order to claim sends the claim along, right behind the pop: the server carries it
out as soon as the pop ends, and the job is here in the time that the news of it would have taken.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from bullpen.clock import Clock
from bullpen.errors import BadOption, StoreError
from bullpen.stores.redis.asking import Moment, ask_runnable
from bullpen.stores.redis.connection import LONGEST_BLOCK_MS, Connection, Words
from bullpen.stores.redis.keys import Keys
from bullpen.stores.redis.reading import brought_anything
from bullpen.stores.redis.scripts import EXCHANGE, RUNNABLE

_DELAY_MARKER = "1"
_WORK_MARKER = "0"

AskClaim = Callable[[Moment], tuple[str, bytes]]
"""The key and the message by which the exchange is asked for jobs at that moment."""


class Sleep:
    """Of one caller, on some queues. Whatever becomes of it, `put_back` ends it."""

    def __init__(self, connection: Connection, keys: Keys, clock: Clock, queues: Sequence[str]) -> None:
        if not queues:
            raise BadOption("wait: name at least one queue")
        self._connection = connection
        self._keys = keys
        self._clock = clock
        self._queues = queues
        self._markers = [keys.marker(queue) for queue in queues]
        self._popped: dict[bytes, bytes] = {}
        """Markers with the times that we took away, and have not seen come."""
        self._ahead_ms: int | None = None
        """How far our clock is before the server's; None if the server does not tell its time."""

    async def until_work(self, timeout_ms: int) -> bool:
        """Whether there was work before the time was over."""
        deadline = _deadline(timeout_ms)
        while (stretch_ms := await self._next_stretch_ms(deadline)) is not None:
            if stretch_ms == 0 or await self._sleep(stretch_ms):
                return True
        return False

    async def until_claimed(self, ask: AskClaim, timeout_ms: int) -> Any:
        """The answer to the claim that brought jobs, or to one that a false alarm led to; None if the time was over."""
        deadline = _deadline(timeout_ms)
        while (stretch_ms := await self._next_stretch_ms(deadline)) is not None:
            if stretch_ms > 0 and self._ahead_ms is not None:
                if brought := await self._sleep_and_claim(stretch_ms, ask(Moment(ahead=self._ahead_ms))):
                    return brought
            elif stretch_ms == 0 or await self._sleep(stretch_ms):
                return await self._connection.run(EXCHANGE, *ask(Moment(now=self._clock.now_ms())))
        return None

    async def put_back(self) -> None:
        await self._mark(*(("ZADD", marker, "NX", score, _DELAY_MARKER) for marker, score in self._popped.items()))

    async def _next_stretch_ms(self, deadline: float) -> float | None:
        """How long to sleep before the next look; 0 if there is work now, None if the time is over."""
        due_ms = await self._look()
        now_ms = self._clock.now_ms()
        if due_ms is not None and due_ms <= now_ms:
            self._popped.clear()
            return 0
        left_ms = (deadline - asyncio.get_running_loop().time()) * 1000
        if left_ms <= 0:
            return None
        return max(1, min(left_ms, left_ms if due_ms is None else due_ms - now_ms, LONGEST_BLOCK_MS))

    async def _look(self) -> int | None:
        """The time at which one of the queues has a runnable job, if known; now, if it has one."""
        now_ms = self._clock.now_ms()
        word, due_ms, server_ms = await self._connection.run(
            RUNNABLE, self._keys.meta(self._queues[0]), ask_runnable(self._keys, self._queues, now_ms)
        )
        self._ahead_ms = now_ms - server_ms if isinstance(server_ms, int) else None
        match word:
            case b"now":
                return now_ms
            case b"later":
                return int(due_ms)
        return None

    async def _sleep(self, ms: float) -> bool:
        """Whether there is work now; if not, look again."""
        async with self._marking_if_given_up():
            return self._is_news(await self._connection.block(*self._pop(ms)))

    async def _sleep_and_claim(self, ms: float, asked: tuple[str, bytes]) -> Any:
        """The answer to a claim that brought something; None if it did not."""
        async with self._marking_if_given_up():
            popped, answer = await self._connection.block_and_run(self._pop(ms), EXCHANGE, *asked)
            self._is_news(popped)
            return answer if brought_anything(answer) else None

    def _pop(self, ms: float) -> Words:
        return ("BZPOPMIN", *self._markers, f"{ms / 1000:.3f}")

    def _is_news(self, popped: Any) -> bool:
        if popped is None:
            return False
        marker, _, score = popped
        if float(score) <= self._clock.now_ms():
            return True
        self._popped[marker] = score
        return False

    @contextlib.asynccontextmanager
    async def _marking_if_given_up(self) -> AsyncIterator[None]:
        try:
            yield
        except asyncio.CancelledError:
            # The server may have popped a marker for us that never arrived.
            await self._mark(*(("ZADD", marker, "0", _WORK_MARKER) for marker in self._markers))
            raise

    async def _mark(self, *commands: Words) -> None:
        # On a server that is full or away the others look by themselves in a few seconds. An error
        # from here would take the place of the cancellation, and the sleeper would go on.
        with contextlib.suppress(StoreError):
            for command in commands:
                await self._connection.command(*command)


def _deadline(timeout_ms: int) -> float:
    return asyncio.get_running_loop().time() + timeout_ms / 1000
