"""Cron expressions in a time zone: the next time after another.

Five fields (minute, hour, day, month, weekday), or six with seconds first. Where the clocks
change, one rule decides:

- An expression that names hours means times on the wall. A time that the gap leaves out comes
  once, at the end of the gap; a time that the overlap has twice comes once, the first time.
- An expression for every hour means intervals. It goes by elapsed time through both: nothing
  comes in the hour that is not there, and the hour that is there twice counts twice.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from bullpen.errors import BadOption

if TYPE_CHECKING:  # read when the first expression is: a process without schedules starts quicker
    from cronsim import CronSim

_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY_HOUR = frozenset(range(24))
_SECOND, _DAY = timedelta(seconds=1), timedelta(days=1)
_ANY_MS = 1_700_000_000_000
"""Whether an expression ever comes does not depend on when one asks."""


class Cron:
    """One expression in one zone; BadOption if either cannot be read."""

    def __init__(self, expression: str, tz: str | None = None) -> None:
        self.zone = find_zone(tz)
        self._fields = _six_fields(expression)
        self._is_elapsed = self._parse(expression) == _EVERY_HOUR
        if self.next_ms(_ANY_MS) is None:
            raise BadOption(f"cron: {expression!r}: there is no such time within fifty years")

    def next_ms(self, after_ms: int) -> int | None:
        """The first time after that one; None if none comes within fifty years."""
        after = datetime.fromtimestamp(after_ms // 1000, UTC)
        try:
            found = self._next_elapsed(after) if self._is_elapsed else self._next_on_the_wall(after)
        except StopIteration:
            return None
        return round(found.timestamp() * 1000)

    def _next_on_the_wall(self, after: datetime) -> datetime:
        times = self._from(after.astimezone(self.zone).replace(tzinfo=None))
        # A time of the second pass of an overlap was that of the first.
        while (found := _instant(next(times), self.zone)) <= after:
            pass
        return found

    def _next_elapsed(self, after: datetime) -> datetime:
        """As if the clocks never changed; where they did before the time found, again from that change on."""
        start, offset = after, self._offset(after)
        while True:
            found = (next(self._from((start + offset).replace(tzinfo=None))) - offset).replace(tzinfo=UTC)
            if (changed := self._offset(found)) == offset:
                return found
            start = max(start, found - _DAY)
            if self._offset(start) != changed:
                start = _change_of_clocks(start, found, self.zone) - _SECOND
            offset = changed

    def _offset(self, instant: datetime) -> timedelta:
        return instant.astimezone(self.zone).utcoffset() or timedelta()

    def _from(self, start: datetime) -> "CronSim":
        from cronsim import CronSim

        found = CronSim(self._fields, start)
        # Debian's cron, which it follows, takes `*/2` for no restriction of the day; all others do.
        found.day_and = "*" in self._fields.split()[3::2]
        return found

    def _parse(self, expression: str) -> set[int]:
        from cronsim import CronSimError

        try:
            return self._from(datetime(2000, 1, 1)).hours  # noqa: DTZ001 - only the fields are read
        except (CronSimError, AssertionError) as error:
            why = str(error) or "a field cannot be read"
            raise BadOption(f"cron: {expression!r}: {why[0].lower()}{why[1:]}; see docs/how-to/schedules.md") from error


@lru_cache(maxsize=256)
def read_cron(expression: str, tz: str | None = None) -> Cron:
    """The same, read once."""
    return Cron(expression, tz)


def find_zone(tz: str | None) -> ZoneInfo:
    """The zone of this name, as `Europe/Berlin`; None is UTC. BadOption if this machine knows none."""
    try:
        return ZoneInfo("UTC" if tz is None else tz)
    except (KeyError, ValueError, TypeError, OSError) as error:
        hint = "give a name such as 'Europe/Berlin'; where the system has no zones, `pip install tzdata`"
        raise BadOption(f"tz: no time zone {tz!r} is known here: {hint}") from error


def _six_fields(expression: object) -> str:
    if not isinstance(expression, str):
        raise BadOption(f"cron: a text of five or six fields, not {expression!r}")
    fields = _NICKNAMES.get(expression.strip().lower(), expression).replace("?", "*").split()
    if len(fields) not in (5, 6):
        raise BadOption(f"cron: {expression!r} has {len(fields)} fields; five, or six with seconds first")
    return " ".join(fields if len(fields) == 6 else ["0", *fields])


def _instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """The instant of a time on the wall: the first of two, or the end of the gap that leaves it out."""
    first = wall.replace(tzinfo=zone)
    instant = first.astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == wall:
        return instant
    return _change_of_clocks(first.replace(fold=1).astimezone(UTC), instant, zone)


def _change_of_clocks(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The first instant after it, to the second; before and after it the zone has different offsets."""
    old = before.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + timedelta(seconds=(after - before) // _SECOND // 2)
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after
