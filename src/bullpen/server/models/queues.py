"""Queues as they are shown."""

from typing import Self

from pydantic import Field

from bullpen.job.limits import QueueStanding, Rate
from bullpen.job.options import rate
from bullpen.server.models.base import Body, Shown


class Counts(Shown):
    waiting: int
    prioritized: int
    delayed: int
    active: int
    waiting_children: int
    completed: int
    failed: int


class Rates(Shown):
    """Over the last minute."""

    added_per_s: float
    completed_per_s: float
    failed_per_s: float


class Percentiles(Shown):
    """Each is the bound within which that share stayed; null if nothing happened, or it is beyond an hour."""

    p50: int | None
    p95: int | None
    p99: int | None


class Spark(Shown):
    minute_ms: int
    added: int
    completed: int
    failed: int


class QueueShown(Shown):
    name: str
    paused: bool
    counts: Counts
    oldest_waiting_ms: int | None
    rates: Rates
    wait_ms: Percentiles
    run_ms: Percentiles
    spark: list[Spark]
    behind_ms: int | None
    """How old all this may be; null if the read model was never complete."""
    is_scanning: bool


class Limits(Shown):
    concurrency: int | None = None
    rate_max: int | None = None
    rate_ms: int | None = None
    closed_until_ms: int | None = None
    """Until when nothing is given out: the rate is used up, or a handler said so."""

    @classmethod
    def of(cls, standing: QueueStanding) -> Self:
        limits = standing.limits
        return cls(
            concurrency=limits.concurrency,
            rate_max=limits.rate_max,
            rate_ms=limits.rate_ms,
            closed_until_ms=standing.closed_until_ms,
        )


class RateBody(Body):
    """At most `max` starts per `per` seconds."""

    max: int = Field(ge=1, le=1_000_000_000)
    per: float = Field(default=1, gt=0, le=86_400)

    def value(self) -> Rate:
        return rate(self.max, per=self.per)


class LimitsBody(Body):
    """In place of the limits before; what is not said is without a limit."""

    concurrency: int | None = Field(default=None, ge=1, le=1_000_000_000)
    rate: RateBody | None = None


class GroupBody(Body):
    """In place of the limits before; what is not said is as the queue's default."""

    weight: int | None = Field(default=None, ge=1, le=1_000)
    concurrency: int | None = Field(default=None, ge=1, le=1_000_000_000)
    rate: RateBody | None = None
    max_size: int | None = Field(default=None, ge=1, le=1_000_000_000)


class GroupLimitsShown(Shown):
    weight: int | None
    concurrency: int | None
    rate_max: int | None
    rate_ms: int | None
    max_size: int | None


class GroupShown(Shown):
    name: str
    waiting: int
    active: int
    paused: bool
    closed_until_ms: int | None
    oldest_ms: int | None
    limits: GroupLimitsShown


class GroupsShown(Shown):
    items: list[GroupShown]
    default: GroupLimitsShown | None
    """The limits of each group, where its own say nothing; null for a caller who has a tenant."""
    next_cursor: str | None = None


class QueueDetail(QueueShown):
    limits: Limits | None
    """Of all tenants together; null for a caller who has one."""
    tenants: dict[str, dict[str, int]] | None
    """Counts by tenant and state, of those that have most jobs; null for a caller who has a tenant."""
    more_tenants: int = 0
    """How many other tenants have jobs there."""


class Queues(Shown):
    items: list[QueueShown]
    next_cursor: str | None = None


class Overview(Shown):
    queues: list[QueueShown]
    workers: int
    totals: Counts
    behind_ms: int | None


class MinuteShown(Shown):
    minute_ms: int
    added: int
    started: int
    completed: int
    failed: int
    retried: int
    wait_ms: Percentiles
    run_ms: Percentiles
