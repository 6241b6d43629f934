"""Turns between writers: who waits is served, however busy the other is."""

import fcntl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.stores.sqlite import turnlock
from bullpen.stores.sqlite.turnlock import TurnLock

_PATIENCE_S = 30


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[TurnLock]:
    lock = TurnLock(tmp_path / "queue.db")
    yield lock
    lock.close()


@pytest.fixture
def waiter(tmp_path: Path) -> Iterator[TurnLock]:
    """Locks are those of an open file: two in one process exclude each other as two processes do."""
    lock = TurnLock(tmp_path / "queue.db")
    yield lock
    lock.close()


def _is_waited_for(lock: TurnLock) -> bool:
    try:
        fcntl.flock(lock._next, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(lock._next, fcntl.LOCK_UN)
    return False


def _until_waited_for(lock: TurnLock) -> None:
    pause = threading.Event()
    for _ in range(_PATIENCE_S * 1000):
        if _is_waited_for(lock):
            return
        pause.wait(0.001)
    pytest.fail("nobody waits for the turn")


def test_who_waits_comes_before_one_who_has_had_the_turn_for_long(
    busy: TurnLock, waiter: TurnLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock of the kernel alone would go to the busy one again, which is awake, for as long as it is busy."""
    monkeypatch.setattr(turnlock, "_STREAK_NS", 0)
    turns: list[str] = []

    def wait() -> None:
        waiter.take()
        turns.append("waiter")
        waiter.give()

    busy.take()
    thread = threading.Thread(target=wait)
    thread.start()
    _until_waited_for(busy)
    for _ in range(3):
        busy.give()
        busy.take()
        turns.append("busy")
    busy.give()
    thread.join(_PATIENCE_S)
    assert turns == ["waiter", "busy", "busy", "busy"]


def test_who_has_more_to_write_goes_on_for_a_moment(
    busy: TurnLock, waiter: TurnLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To change over with each commit would cost a wake-up each time."""
    monkeypatch.setattr(turnlock, "_STREAK_NS", 10**15)
    busy.take()
    fcntl.flock(waiter._next, fcntl.LOCK_EX)  # as one who waits holds it
    busy.give()
    busy.take()  # does not wait
    assert _is_waited_for(busy)
    busy.give()
