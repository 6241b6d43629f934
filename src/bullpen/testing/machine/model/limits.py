"""What the model knows of a queue's limits and of its groups."""

import dataclasses

from bullpen.job.limits import NO_GROUP_LIMITS, NO_LIMITS, GroupLimits, QueueLimits


@dataclasses.dataclass
class Window:
    """How many started since a window began, and until when nothing starts because someone said so."""

    until_ms: int = 0
    starts: int = 0
    closed_until_ms: int = 0

    def left(self, rate_max: int | None, now_ms: int) -> int | None:
        """How many may start; None is any number."""
        if rate_max is None:
            return None
        return max(0, rate_max - self.starts) if self.until_ms > now_ms else rate_max

    def count(self, rate_max: int | None, rate_ms: int | None, now_ms: int, starts: int = 1) -> None:
        if rate_max is None or rate_ms is None or not starts:
            return
        if self.until_ms <= now_ms:
            self.until_ms, self.starts = now_ms + rate_ms, 0
        self.starts += starts

    def closed_until(self, rate_max: int | None, now_ms: int) -> int | None:
        used_up = self.until_ms if self.left(rate_max, now_ms) == 0 else 0
        until_ms = max(self.closed_until_ms, used_up)
        return until_ms if until_ms > now_ms else None

    def begin_anew(self) -> None:
        self.until_ms = self.starts = 0


@dataclasses.dataclass
class ModelLimits:
    said: QueueLimits = NO_LIMITS
    window: Window = dataclasses.field(default_factory=Window)


@dataclasses.dataclass
class ModelGroup:
    limits: GroupLimits = NO_GROUP_LIMITS
    paused: bool = False
    window: Window = dataclasses.field(default_factory=Window)
    time: float = 0.0
    """Of its next turn, or of its last stay in the ring."""
    is_in_ring: bool = False


@dataclasses.dataclass
class ModelRing:
    default: GroupLimits = NO_GROUP_LIMITS
    present: float = 0.0
    groups: dict[str, ModelGroup] = dataclasses.field(default_factory=dict)

    def group(self, name: str) -> ModelGroup:
        return self.groups.setdefault(name, ModelGroup())

    def limits_of(self, name: str) -> GroupLimits:
        return self.group(name).limits.over(self.default)
