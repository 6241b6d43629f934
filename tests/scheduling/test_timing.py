"""When a schedule ticks: its first time, and the one after each."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen import ScheduleOptions
from bullpen.errors import BadOption
from bullpen.job.schedule import Tick, Timing, tick_of
from bullpen.scheduling.timing import first_ms, following_ms, in_step, resumed_ms

NOW = 1_750_000_123_456
HOURLY = Timing(cron="0 * * * *")
_NEXT_HOUR = 1_750_003_200_000
intervals = st.integers(1, 10**9)
instants = st.integers(10**12, 2 * 10**12)


def test_an_interval_ticks_at_once_or_at_its_start() -> None:
    assert first_ms(Timing(every_ms=5_000), NOW) == NOW
    assert first_ms(Timing(every_ms=5_000, start_ms=NOW + 7), NOW) == NOW + 7
    assert first_ms(Timing(every_ms=5_000, start_ms=NOW - 7), NOW) == NOW


def test_a_cron_ticks_at_its_next_time_or_at_once_if_asked() -> None:
    assert first_ms(HOURLY, NOW) == _NEXT_HOUR
    assert first_ms(HOURLY, NOW, immediately=True) == NOW
    late = Timing(cron="0 * * * *", start_ms=_NEXT_HOUR + 3_600_000)
    assert first_ms(late, NOW) == late.start_ms, "the start itself counts"


def test_nothing_comes_after_the_end() -> None:
    assert first_ms(Timing(cron="0 * * * *", end_ms=_NEXT_HOUR), NOW) == _NEXT_HOUR
    assert first_ms(Timing(cron="0 * * * *", end_ms=_NEXT_HOUR - 1), NOW) is None
    assert following_ms(Timing(every_ms=10, end_ms=NOW + 10), NOW, NOW, count=1) == NOW + 10
    assert following_ms(Timing(every_ms=10, end_ms=NOW + 9), NOW, NOW, count=1) is None


def test_a_limit_is_the_number_of_ticks() -> None:
    timing = Timing(every_ms=10, limit=3)
    assert [following_ms(timing, NOW, NOW, count=count) for count in (1, 2, 3)] == [NOW + 10, NOW + 10, None]


def test_missed_ticks_are_not_made_up_for() -> None:
    """After a day away one late tick ran; the next is in the future, and in step with the others."""
    timing = in_step(Timing(every_ms=60_000), NOW)
    later = NOW + 86_400_000 + 5
    following = following_ms(timing, NOW, later, count=1)
    assert following == NOW + 86_400_000 + 60_000
    assert following_ms(HOURLY, NOW, later, count=1) == _NEXT_HOUR + 86_400_000


@given(intervals, instants, st.integers(0, 10**10))
def test_an_interval_stays_in_step(every_ms: int, first: int, away_ms: int) -> None:
    """Whenever the tick was claimed, the next is not over, not further than an interval, and in its slot."""
    timing = in_step(Timing(every_ms=every_ms), first)
    now = first + away_ms
    following = following_ms(timing, first, now, count=1)
    assert following is not None
    assert max(now, first + 1) <= following <= max(now, first) + every_ms
    assert (following - first) % every_ms == 0


@given(intervals, instants, st.integers(0, 10**10))
def test_a_resumed_interval_is_in_step(every_ms: int, first: int, away_ms: int) -> None:
    following = resumed_ms(in_step(Timing(every_ms=every_ms), first), first + away_ms)
    assert following is not None
    assert first + away_ms < following <= first + away_ms + every_ms
    assert (following - first) % every_ms == 0


def test_a_tick_is_known_by_its_id() -> None:
    assert tick_of(Tick("a:b", 17).job_id) == Tick("a:b", 17)
    assert [tick_of(job_id) for job_id in ("17", "repeat:17", "repeat:a:b", "xrepeat:a:1")] == [None] * 4


_SOON = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "options, field",
    [
        ({}, "cron"),
        ({"cron": "* * * * *", "every": 5}, "cron"),
        ({"cron": "* * * *"}, "cron"),
        ({"every": 0}, "every"),
        ({"every": -1}, "every"),
        ({"every": "5"}, "every"),
        ({"every": float("nan")}, "every"),
        ({"every": 5, "tz": "UTC"}, "tz"),
        ({"cron": "* * * * *", "tz": "Mars/Base"}, "tz"),
        ({"every": 5, "start": _SOON, "end": _SOON - timedelta(1)}, "end"),
        ({"every": 5, "start": _SOON.replace(tzinfo=None)}, "start"),
        ({"every": 5, "end": "2030-01-01"}, "end"),
        ({"every": 5, "limit": 0}, "limit"),
        ({"every": 5, "limit": True}, "limit"),
        ({"every": 5, "overlap": "queue"}, "overlap"),
        ({"every": 5, "immediately": 1}, "immediately"),
        ({"every": 5, "immediately": True, "start": _SOON}, "immediately"),
    ],
)
def test_a_bad_option_is_named(options: dict[str, Any], field: str) -> None:
    with pytest.raises(BadOption, match=f"^{field}: "):
        ScheduleOptions(**options)
