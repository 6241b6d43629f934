"""A provider that is asked again, where that can help.

What may have cost something is not asked again here: one reservation covers one call, and whoever holds it
must settle it and reserve anew. Nor is an answer of which somebody has already read a part. Both can be allowed.
"""

import asyncio
import contextlib
import dataclasses
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable

from bullpen.agents.llm.deltas import CallDelta, Delta, Restarted, TextDelta
from bullpen.agents.llm.provider import Provider
from bullpen.agents.llm.words import Request
from bullpen.errors import ModelError, ModelLimited, ModelOverloaded

Sleep = Callable[[float], Awaitable[None]]
_JITTER = 0.2

logger = logging.getLogger("bullpen.agents")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RetryRules:
    """When a call is made again, and after how long."""

    attempts: int = 3
    """How often a model is asked in all."""
    first_s: float = 1.0
    """The first pause; each further one is twice as long, ±20 %."""
    longest_s: float = 30.0
    patience_s: float = 60.0
    """Who says that they want to be asked later than in this time is not waited for."""
    again_after_words: bool = False
    """Also if a reader has seen a part of the answer; a Restarted tells them that it is void."""
    waits_if_limited: bool = True
    """Here, for as long as a provider that has enough or too much says. Without, the caller is told at once, and may
    let others wait too."""
    again_if_costly: bool = False
    """Also if the provider may charge for the call that failed."""

    def allows(self, error: ModelError, *, has_words: bool) -> bool:
        """Whether somebody may be asked again after this."""
        if has_words and not self.again_after_words:
            return False
        return self.again_if_costly or not error.may_cost

    def pause_s(self, error: ModelError, attempt: int, vary: Callable[[], float]) -> float | None:
        """How long to wait after so many attempts before the same model is asked again; None if it is not."""
        if not error.retryable or attempt >= self.attempts:
            return None
        if isinstance(error, ModelLimited | ModelOverloaded) and not self.waits_if_limited:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.patience_s else None
        pause_s = min(self.first_s * (1 << min(attempt - 1, 40)), self.longest_s)
        return pause_s * (1 + _JITTER * (2 * vary() - 1))


class Retrying:
    """Asks a provider by these rules."""

    def __init__(
        self,
        provider: Provider,
        rules: RetryRules | None = None,
        *,
        sleep: Sleep = asyncio.sleep,
        vary: Callable[[], float] = random.random,
    ) -> None:
        self._provider = provider
        self._rules = rules or RetryRules()
        self._sleep = sleep
        self._vary = vary

    @property
    def name(self) -> str:
        return self._provider.name

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        attempt = 1
        while True:
            came = Came()
            try:
                async with contextlib.aclosing(self._provider.stream(request)) as deltas:
                    async for delta in deltas:
                        yield came.note(delta)
            except ModelError as error:
                pause_s = self._rules.pause_s(error, attempt, self._vary)
                if pause_s is None or not self._rules.allows(error, has_words=came.words):
                    raise
                reason = str(error)
            else:
                return
            logger.warning("asking again in %.1f s, after attempt %d: %s", pause_s, attempt, reason)
            if came.anything:
                yield Restarted(reason)
            await self._sleep(pause_s)
            attempt += 1

    async def probe(self) -> None:
        await self._provider.probe()

    async def close(self) -> None:
        await self._provider.close()


class Came:
    """What of an answer has been handed on already."""

    def __init__(self) -> None:
        self.anything = False
        self.words = False

    def note(self, delta: Delta) -> Delta:
        self.anything = True
        self.words = self.words or isinstance(delta, TextDelta | CallDelta)
        return delta
