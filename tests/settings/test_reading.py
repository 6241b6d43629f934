"""Settings that are numbers and switches."""

import pytest

from bullpen import BadOption
from bullpen.settings import switch_from, whole_from

_NAME = "BULLPEN_SERVER_PORT"


@pytest.mark.parametrize("said, found", [("", 7), ("3", 3), (" 10 ", 10)])
def test_a_number_is_what_is_said_or_what_is_usual(monkeypatch: pytest.MonkeyPatch, said: str, found: int) -> None:
    monkeypatch.setenv(_NAME, said)
    assert whole_from(_NAME, 7, 1, 10) == found


@pytest.mark.parametrize("said", ["0", "11", "-1", "1.5", "many", "²", "٣", "9" * 5000])
def test_what_is_no_such_number_is_named(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv(_NAME, said)
    with pytest.raises(BadOption, match=f"{_NAME}: a whole number from 1 to 10"):
        whole_from(_NAME, 7, 1, 10)


@pytest.mark.parametrize("said, found", [("", True), ("1", True), ("off", False), (" No ", False)])
def test_a_switch_is_on_or_off(monkeypatch: pytest.MonkeyPatch, said: str, found: bool) -> None:
    monkeypatch.setenv(_NAME, said)
    assert switch_from(_NAME, usual=True) is found


def test_what_is_no_switch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_NAME, "perhaps")
    with pytest.raises(BadOption, match=f"{_NAME}: 1 or 0"):
        switch_from(_NAME, usual=True)
