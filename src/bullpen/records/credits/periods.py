"""When the windows of a period begin and end."""

from datetime import UTC, datetime
from typing import NamedTuple

from bullpen.records.credits.words import Period

DAY_MS = 86_400_000


class Window(NamedTuple):
    """From this moment until before that one."""

    start_ms: int
    until_ms: int | None


def window_at(period: Period, at_ms: int) -> Window:
    """The one that the moment is in."""
    match period:
        case Period.DAY:
            start_ms = at_ms - at_ms % DAY_MS
            return Window(start_ms, start_ms + DAY_MS)
        case Period.MONTH:
            first = datetime.fromtimestamp(at_ms // 1000, UTC).replace(day=1, hour=0, minute=0, second=0)
            after = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
            return Window(int(first.timestamp()) * 1000, int(after.timestamp()) * 1000)
        case Period.TOTAL:
            return Window(0, None)
