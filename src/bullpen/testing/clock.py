"""A clock that moves only when told to."""

from datetime import UTC, datetime
from typing import Self

from bullpen.job.options import Duration, to_ms


class ManualClock:
    """Both clocks of `bullpen.clock.Clock`, under the test's control."""

    def __init__(self, now_ms: int = 1_750_000_000_000) -> None:
        self._now_ms = now_ms

    @classmethod
    def at(cls, instant: datetime) -> Self:
        """A clock that stands at this time, which has a zone."""
        if instant.tzinfo is None:
            raise ValueError(f"{instant.isoformat()} has no time zone; add one, e.g. tzinfo=UTC")
        return cls(round(instant.timestamp() * 1000))

    def __repr__(self) -> str:
        return f"<ManualClock at {self.now().isoformat()}>"

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._now_ms / 1000, UTC)

    def now_ms(self) -> int:
        return self._now_ms

    def mono_ms(self) -> int:
        return self._now_ms

    def advance(self, ms: int) -> None:
        if ms < 0:
            raise ValueError(f"a clock does not go back: {ms}")
        self._now_ms += ms

    def forward(self, duration: Duration) -> None:
        """Let that many seconds pass, or a timedelta."""
        self.advance(to_ms("duration", duration))
