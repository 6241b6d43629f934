"""When a provider has enough, no worker starts more work for it.

Runs that ask one provider wait in one queue. What the provider says in the headers of an answer, or by
refusing one, closes that queue for all workers: in its store, so that no other one needs to run into the same wall.
"""

import contextlib
import logging
from collections.abc import AsyncGenerator

from bullpen.agents.llm.allowance import Allowance
from bullpen.agents.llm.deltas import Delta, Started
from bullpen.agents.llm.router import Router
from bullpen.agents.llm.words import Request
from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.errors import BullpenError, ModelError, ModelLimited, ModelOverloaded, RateLimited
from bullpen.queue.queue import Queue

logger = logging.getLogger("bullpen.agents")

_SOON_S = 5.0
"""For how long to hold back where the provider does not say."""


def hold_s(told: Allowance | ModelError | None, now_ms: int, *, needs_tokens: int = 1) -> float:
    """For how long nothing should be asked, after this; 0 if there is nothing against it."""
    match told:
        case Allowance():
            return told.hold_s(now_ms, needs_tokens=needs_tokens)
        case ModelLimited() | ModelOverloaded():
            return _SOON_S if told.retry_after is None else told.retry_after
        case _:
            return 0.0


async def hold_back(
    queue: Queue, told: Allowance | ModelError | None, *, needs_tokens: int = 1, clock: Clock = SYSTEM_CLOCK
) -> float:
    """Close the provider's queue on all workers for as long as another call would be refused; for how many seconds.

    `told` is the allowance of a reply or the error in its place, `needs_tokens` what a call usually takes.
    """
    seconds = hold_s(told, clock.now_ms(), needs_tokens=needs_tokens)
    if seconds > 0:
        await queue.close_for(seconds)
    return seconds


def limited(error: ModelLimited | ModelOverloaded) -> RateLimited:
    """What a handler raises that cannot go on without an answer: its job goes back, and its queue is closed.

    No attempt is used.
    """
    return RateLimited(_SOON_S if error.retry_after is None else error.retry_after, whole_queue=True)


class Heeding:
    """Asks a router for the jobs of one queue, and closes that queue where those it would ask next have enough.

    While another provider can stand in, nothing is closed: the router asks that one.
    """

    def __init__(self, router: Router, queue: Queue) -> None:
        self._router = router
        self._queue = queue

    @property
    def name(self) -> str:
        return self._router.name

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        try:
            async with contextlib.aclosing(self._router.stream(request)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, Started) and not self._router.has_other(request.model, delta.provider):
                        await self._heed(delta.allowance, request.max_tokens)
                    yield delta
        except (ModelLimited, ModelOverloaded) as error:  # of the last that could be asked
            await self._heed(error)
            raise

    async def _heed(self, told: Allowance | ModelError | None, needs_tokens: int = 1) -> None:
        try:
            seconds = await hold_back(self._queue, told, needs_tokens=needs_tokens)
        except BullpenError:
            # An answer that is paid for is worth more than a wall that others will find by themselves.
            logger.warning("queue %s could not be held back", self._queue.name, exc_info=True)
            return
        if seconds:
            logger.warning("queue %s is held back for %.1f s: a provider has enough", self._queue.name, seconds)

    async def probe(self) -> None:
        await self._router.probe()

    async def close(self) -> None:
        await self._router.close()
