"""The options that people write for a schedule: seconds and datetimes outside, milliseconds inside."""

import dataclasses
from datetime import datetime
from typing import Literal, TypedDict

from bullpen.errors import BadOption
from bullpen.job.options import Duration, to_ms
from bullpen.job.schedule import Overlap, Timing
from bullpen.scheduling.cron import find_zone, read_cron

_MAX_LIMIT = 1_000_000_000


class ScheduleFields(TypedDict, total=False):
    """The keyword arguments of a schedule, for type checkers; `ScheduleOptions` says what each means."""

    cron: str | None
    every: Duration | None
    tz: str | None
    start: datetime | None
    end: datetime | None
    limit: int | None
    immediately: bool
    overlap: Overlap | Literal["skip", "allow"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """When a schedule ticks, as people write it."""

    cron: str | None = None
    """Five fields, or six with seconds first; `@daily` and its kin. This or `every`."""
    every: Duration | None = None
    """The interval; the first tick comes at once, or at `start`. This or `cron`."""
    tz: str | None = None
    """The time zone in which `cron` is meant, as `Europe/Berlin`; None is UTC."""
    start: datetime | None = None
    """No tick comes before this time (with its zone)."""
    end: datetime | None = None
    """No tick comes after this time (with its zone)."""
    limit: int | None = None
    """That many ticks, and then no more."""
    immediately: bool = False
    """The first tick of a new or changed `cron` comes at once."""
    overlap: Overlap | Literal["skip", "allow"] = "skip"
    """What a tick does while the one before runs: `skip` ends it at once, `allow` runs both."""

    def __post_init__(self) -> None:
        self._check_when()
        self._check_bounds()
        if self.overlap not in set(Overlap):
            raise BadOption(f"overlap: one of {', '.join(Overlap)}, not {self.overlap!r}")
        if not isinstance(self.immediately, bool):
            raise BadOption(f"immediately: True or False, not {self.immediately!r}")
        if self.immediately and self.start is not None:
            raise BadOption("immediately: goes not with start")

    def _check_when(self) -> None:
        if (self.cron is None) == (self.every is None):
            raise BadOption("cron: give cron or every, and not both")
        if self.every is not None and to_ms("every", self.every) == 0:
            raise BadOption("every: must be more than 0")
        if self.tz is not None:
            if self.cron is None:
                raise BadOption("tz: goes with cron only; an interval is the same in every zone")
            find_zone(self.tz)
        if self.cron is not None:
            read_cron(self.cron, self.tz)

    def _check_bounds(self) -> None:
        start_ms, end_ms = _instant_ms("start", self.start), _instant_ms("end", self.end)
        if start_ms is not None and end_ms is not None and end_ms < start_ms:
            raise BadOption("end: is before start")
        limit = self.limit
        is_number = isinstance(limit, int) and not isinstance(limit, bool)
        if limit is not None and not (is_number and 1 <= limit <= _MAX_LIMIT):
            raise BadOption(f"limit: a whole number from 1 to {_MAX_LIMIT}, not {limit!r}")

    def to_timing(self) -> Timing:
        return Timing(
            cron=self.cron,
            every_ms=None if self.every is None else to_ms("every", self.every),
            tz=self.tz,
            start_ms=_instant_ms("start", self.start),
            end_ms=_instant_ms("end", self.end),
            limit=self.limit,
        )


def _instant_ms(option: str, instant: datetime | None) -> int | None:
    if instant is None:
        return None
    if not isinstance(instant, datetime):
        raise BadOption(f"{option}: a datetime, not {instant!r}")
    if instant.tzinfo is None:
        raise BadOption(f"{option}: {instant.isoformat()} has no time zone; add one, e.g. tzinfo=UTC")
    return round(instant.timestamp() * 1000)
