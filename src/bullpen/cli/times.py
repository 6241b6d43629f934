"""Times as people write and read them."""

import argparse
import re
from datetime import UTC, datetime

_UNITS_S = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d|)")
_STEPS = ((172_800, 86_400, "days"), (5_400, 3_600, "h"), (90, 60, "min"))


def span(duration_ms: float) -> str:
    """`850 ms`, `3 s`, `12 min`, `5 h`, `4 days`."""
    if duration_ms < 1_000:
        return f"{max(0, round(duration_ms))} ms"
    seconds = duration_ms / 1000
    for above, unit_s, word in _STEPS:
        if seconds >= above:
            return f"{int(seconds // unit_s):,} {word}"
    return f"{int(seconds)} s"


def ago(then_ms: int | None, now_ms: int) -> str:
    """`3 min ago`, `in 5 s`, or a dash if it never was."""
    if then_ms is None or then_ms == 0:
        return "–"
    if abs(now_ms - then_ms) < 1_000:
        return "just now"
    return f"{span(now_ms - then_ms)} ago" if then_ms < now_ms else f"in {span(then_ms - now_ms)}"


def clock_time(at_ms: int) -> str:
    """The time of day here, to the millisecond."""
    return datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%H:%M:%S.%f")[:-3]


def stamp(at_ms: int) -> str:
    """Date and time here, to the second."""
    return datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def seconds(text: str) -> float:
    """For argparse: `90`, `90s`, `500ms`, `5m`, `2h` or `1d` as seconds."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 30, 500ms, 5m, 2h or 1d")
    return float(found[1]) * _UNITS_S[found[2]]


def moment_ms(text: str) -> int:
    """For argparse: `2h` (that long ago) or an ISO time such as 2026-01-31T08:00."""
    now = datetime.now(UTC)
    if _SPAN.fullmatch(text.strip()):
        return round((now.timestamp() - seconds(text)) * 1000)
    try:
        return round(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except ValueError:
        message = f"{text!r} is neither a time ago such as 2h, nor a date such as 2026-01-31T08:00"
        raise argparse.ArgumentTypeError(message) from None
