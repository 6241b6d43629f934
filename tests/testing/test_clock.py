"""The manual clock, as users move it."""

from datetime import UTC, datetime, timedelta

import pytest

from bullpen import BadOption
from bullpen.testing import ManualClock


def test_it_moves_only_when_told() -> None:
    clock = ManualClock.at(datetime(2030, 1, 1, tzinfo=UTC))
    assert clock.now() == datetime(2030, 1, 1, tzinfo=UTC)
    clock.forward(timedelta(hours=1))
    clock.forward(1.5)
    clock.advance(500)
    assert clock.now() == datetime(2030, 1, 1, 1, 0, 2, tzinfo=UTC)
    assert repr(clock) == "<ManualClock at 2030-01-01T01:00:02+00:00>"


def test_refuses_to_go_back() -> None:
    with pytest.raises(BadOption):
        ManualClock().forward(-1)
    with pytest.raises(ValueError, match="does not go back"):
        ManualClock().advance(-1)


def test_refuses_a_time_without_a_zone() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        ManualClock.at(datetime(2030, 1, 1))  # noqa: DTZ001 - that is the point
