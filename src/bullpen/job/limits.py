"""Groups of a queue, and what limits a group or a whole queue.

A group is mostly a tenant: its jobs wait in a line of their own, and the groups of a queue take
turns. `scheduling.turns` does the sums of the turns.
"""

import msgspec

MAX_WEIGHT = 1_000
CLOSE_AT_MOST_MS = 86_400_000
"""A handler that says it is limited for longer is taken to mean a day."""


class Rate(msgspec.Struct, frozen=True):
    """So many starts within a window, which begins with the first of them; `rate(…)` makes one."""

    max: int
    ms: int


class QueueLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What all workers of a queue share; None is no limit."""

    concurrency: int | None = None
    """How many of its jobs may run at once."""
    rate_max: int | None = None
    """How many may start within `rate_ms`, counted from the first start."""
    rate_ms: int | None = None


NO_LIMITS = QueueLimits()


class QueueStanding(msgspec.Struct, frozen=True):
    """A queue's limits, and whether they hold it now."""

    limits: QueueLimits = NO_LIMITS
    closed_until_ms: int | None = None
    """Until when it gives out nothing: its rate is used up, or a handler said so."""


class GroupLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is special of a group; None is as the queue's default says, and there it is no limit."""

    weight: int | None = None
    """How many turns it takes where a group of weight 1 takes one."""
    concurrency: int | None = None
    """How many of its jobs may run at once."""
    rate_max: int | None = None
    """How many may start within `rate_ms`, counted from the first start."""
    rate_ms: int | None = None
    max_size: int | None = None
    """How many may wait; an add above that is refused."""

    def over(self, default: "GroupLimits") -> "GroupLimits":
        """These, with the default where they say nothing; a rate is said as a whole."""
        rate = default if self.rate_max is None else self
        return GroupLimits(
            weight=default.weight if self.weight is None else self.weight,
            concurrency=default.concurrency if self.concurrency is None else self.concurrency,
            rate_max=rate.rate_max,
            rate_ms=rate.rate_ms,
            max_size=default.max_size if self.max_size is None else self.max_size,
        )


NO_GROUP_LIMITS = GroupLimits()


class GroupInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A group as it stands: it has jobs, or limits of its own, or is paused."""

    name: str
    waiting: int = 0
    """Of whatever priority; delayed jobs join when they are due."""
    active: int = 0
    paused: bool = False
    closed_until_ms: int | None = None
    """Until when it gives out nothing: its rate is used up, or a handler said so."""
    oldest_ms: int | None = None
    """Since when the first of its line could have run."""
    limits: GroupLimits = NO_GROUP_LIMITS
    """Its own, without the queue's default."""


class GroupPage(msgspec.Struct, frozen=True):
    """Some groups of a queue, and what is usual for all of them."""

    groups: tuple[GroupInfo, ...]
    """By name."""
    default: GroupLimits
    next_cursor: str | None
    """Give it back for the next page; None at the end."""
