"""The words of a pool: what it is told, and what it tells."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from bullpen.agents.sandbox.limits import SandboxSpec, check_seconds
from bullpen.job.checks import check_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    warm: int = 2
    """Ready and unused, of each kind that the pool was given."""
    most: int = 10
    """At once, the unused ones included."""
    acquire_timeout: float = 30.0
    """Seconds to wait for one, unless the call says otherwise."""
    check_every: float = 15.0
    """Seconds between two looks at the unused ones, and at those of dead workers."""

    def __post_init__(self) -> None:
        check_whole("most", self.most, 1, 100_000)
        check_whole("warm", self.warm, 0, self.most)
        check_seconds("acquire_timeout", self.acquire_timeout)
        check_seconds("check_every", self.check_every)


class PoolStats(NamedTuple):
    size: int
    available: int
    in_use: int
    acquired: int
    """Since the start."""
    from_warm: int
    """Of those, how many had been ready."""
    timeouts: int


class Pooled(NamedTuple):
    """A line of the pool's list."""

    id: str
    state: Literal["warm", "in-use"]
    spec: SandboxSpec
    tenant: str | None
    since_ms: int
