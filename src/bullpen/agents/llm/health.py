"""How each provider is doing, judged by how calls to it end. Values only: whoever calls keeps them.

    healthy ──2 failures in a row──▶ degraded ──5──▶ down
       ▲◀────────── an answer ───────────┘            │
       └── a probe ── degraded ◀────── a probe ───────┘    every 60 s while not healthy

A degraded provider is asked after healthy ones, one that is down only when its probe is due.
"""

import dataclasses
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple, Protocol

import msgspec

from bullpen.errors import BadAnswer, ContentRefused, ContextTooLong, ModelError, ModelLimited, ModelOverloaded

_SOON_S = 5.0
"""For how long a limit holds of which nobody says for how long."""


class Standing(StrEnum):
    """Whether a provider can be relied on."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    """It failed lately; others are asked first."""
    DOWN = "down"
    """It fails all the time; it is not asked but to find out."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HealthRules:
    degraded_after: int = 2
    """Failures in a row."""
    down_after: int = 5
    probe_every_ms: int = 60_000


class Health(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a provider stands."""

    standing: Standing = Standing.HEALTHY
    failures: int = 0
    """In a row."""
    since_ms: int = 0
    """When it came to stand so."""
    probe_at_ms: int = 0
    """While not healthy: when to find out whether it is back."""
    limited_until_ms: int = 0
    """Until then it wants to hear nothing, or has too much to do; that is no illness."""
    reason: str = ""
    """What the last failure said."""
    error: str = ""
    """The code of the last failure."""

    def is_probe_due(self, now_ms: int) -> bool:
        return self.standing != Standing.HEALTHY and now_ms >= self.probe_at_ms

    def is_limited(self, now_ms: int) -> bool:
        return now_ms < self.limited_until_ms

    def may_be_asked_at_ms(self) -> int:
        """When a call makes sense again; in the past if one does now."""
        return self.probe_at_ms if self.standing == Standing.DOWN else self.limited_until_ms

    def after_answer(self, now_ms: int) -> "Health":
        """A call went well. A limit stays: the call may have begun before it was met."""
        if self == HEALTHY:
            return self
        return Health(since_ms=self._since(Standing.HEALTHY, now_ms), limited_until_ms=self._limit(now_ms))

    def after_limit(self, until_ms: int) -> "Health":
        """It wants to hear nothing until then."""
        return msgspec.structs.replace(self, limited_until_ms=max(self.limited_until_ms, until_ms))

    def after_error(self, error: ModelError, now_ms: int, rules: HealthRules) -> "Health":
        """A call did not: what that says of the provider, if anything."""
        if isinstance(error, ModelLimited | ModelOverloaded):
            return self.after_limit(now_ms + limit_ms(error))
        if not _is_its_fault(error):
            return self
        return self._after_failure(error, now_ms, rules)

    def after_probe(self, error: ModelError | None, now_ms: int, rules: HealthRules) -> "Health":
        """A probe that goes well lifts it by one step: an address that answers is not yet a model that does.

        One that is refused was answered too, as by a server that has no list of models.
        """
        if error is not None and _is_its_fault(error):
            return self._after_failure(error, now_ms, rules)
        if self.standing != Standing.DOWN:
            return Health(since_ms=now_ms, limited_until_ms=self._limit(now_ms))
        return Health(
            Standing.DEGRADED,
            rules.degraded_after,
            now_ms,
            now_ms + rules.probe_every_ms,
            self._limit(now_ms),
            reason=self.reason,
            error=self.error,
        )

    def taken_for_probe(self, now_ms: int, rules: HealthRules) -> "Health":
        """Somebody is about to find out; nobody else needs to for a while."""
        return msgspec.structs.replace(self, probe_at_ms=now_ms + rules.probe_every_ms)

    def _after_failure(self, error: ModelError, now_ms: int, rules: HealthRules) -> "Health":
        failures = self.failures + 1
        standing = self.standing
        if failures >= rules.down_after:
            standing = Standing.DOWN
        elif failures >= rules.degraded_after:
            standing = Standing.DEGRADED
        return Health(
            standing,
            failures,
            self._since(standing, now_ms),
            now_ms + rules.probe_every_ms,
            self.limited_until_ms,
            str(error),
            error.code,
        )

    def _limit(self, now_ms: int) -> int:
        """As long as it holds."""
        return self.limited_until_ms if self.is_limited(now_ms) else 0

    def _since(self, standing: Standing, now_ms: int) -> int:
        return self.since_ms if standing == self.standing else now_ms


HEALTHY = Health()


def limit_ms(error: ModelLimited | ModelOverloaded) -> int:
    """For how long whoever said so wants to hear nothing."""
    return round(1000 * (error.retry_after or _SOON_S))


def _is_its_fault(error: ModelError) -> bool:
    """Not what we asked, but how it was answered. A model's own nonsense is not its provider's illness.

    Nor is a refusal for good, as of our key: were it down for that, tasks would wait for a probe, only to be refused.
    """
    if isinstance(error, ContextTooLong | ContentRefused):
        return False
    if isinstance(error, BadAnswer):
        return error.usage is None
    return error.retryable


Step = Callable[[Health], Health]


class Changed(NamedTuple):
    before: Health
    after: Health


class HealthRecords(Protocol):
    """Where the health of providers is kept, for all workers or for one."""

    async def read(self, provider: str) -> Health:
        """HEALTHY where nothing is known."""

    async def change(self, provider: str, step: Step) -> Changed:
        """Put in place what the step makes of it; nobody else changes it between. A step may be taken twice."""


class HealthInMemory:
    """For one process."""

    def __init__(self) -> None:
        self._known: dict[str, Health] = {}

    async def read(self, provider: str) -> Health:
        return self._known.get(provider, HEALTHY)

    async def change(self, provider: str, step: Step) -> Changed:
        before = await self.read(provider)
        self._known[provider] = after = step(before)
        return Changed(before, after)
