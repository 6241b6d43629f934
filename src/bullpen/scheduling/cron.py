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
from zoneinfo import ZoneInfo

from bullpen.errors import BadOption

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
_SECOND = timedelta(seconds=1)
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
        from cronsim import CronSim

        start = datetime.fromtimestamp(after_ms // 1000, self.zone)
        for found in CronSim(self._fields, start if self._is_elapsed else start.replace(tzinfo=None)):
            # A wall time of the second pass of an overlap was that of the first.
            found_ms = _ms(found if self._is_elapsed else _instant(found, self.zone))
            if found_ms > after_ms:
                return found_ms
        return None

    def _parse(self, expression: str) -> set[int]:
        from cronsim import CronSim, CronSimError

        try:
            return CronSim(self._fields, datetime(2000, 1, 1)).hours  # noqa: DTZ001 - only the fields are read
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
    return _end_of_gap(first.replace(fold=1).astimezone(UTC), instant, zone)


def _end_of_gap(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The change of the clocks between two instants, to the second."""
    old = before.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + timedelta(seconds=(after - before) // _SECOND // 2)
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after


def _ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)
