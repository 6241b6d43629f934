"""Who is woken after a commit. Only SQLite has neighbours: Redis tells its clients by itself."""

import os
import time
from pathlib import Path

import pytest

from bullpen.stores.sqlite.presence import Neighbours


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    live = tmp_path / "queue.db-live"
    live.mkdir()
    return live


def open_pipe(folder: Path, instance: str) -> int:
    path = folder / f"{instance}.wake"
    os.mkfifo(path)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


def is_woken(pipe: int) -> bool:
    try:
        return os.read(pipe, 10) == b"!"
    except BlockingIOError:
        return False


def set_time(folder: Path, time_ns: int) -> None:
    os.utime(folder, ns=(time_ns, time_ns))


def test_all_others_are_woken_and_not_oneself(folder: Path) -> None:
    own, other = open_pipe(folder, "own"), open_pipe(folder, "other")
    Neighbours(folder, "own").wake()
    assert is_woken(other)
    assert not is_woken(own)


def test_one_who_came_after_the_list_was_made_is_woken(folder: Path) -> None:
    """The list is kept as long as the folder stays as it is."""
    set_time(folder, time.time_ns() - 10**12)
    neighbours = Neighbours(folder, "own")
    neighbours.wake()
    late = open_pipe(folder, "late")
    neighbours.wake()
    assert is_woken(late)


def test_one_who_came_within_the_same_moment_is_woken(folder: Path) -> None:
    """A list made right after a change is not kept: the next change may leave the folder's time as it is."""
    neighbours = Neighbours(folder, "own")
    moment_ns = time.time_ns()
    set_time(folder, moment_ns)
    neighbours.wake()
    late = open_pipe(folder, "late")
    set_time(folder, moment_ns)
    neighbours.wake()
    assert is_woken(late)


def test_one_who_has_gone_does_no_harm(folder: Path) -> None:
    other = open_pipe(folder, "other")
    neighbours = Neighbours(folder, "own")
    set_time(folder, time.time_ns() - 10**12)
    neighbours.wake()
    os.close(other)
    neighbours.wake()
    (folder / "other.wake").unlink()
    neighbours.wake()
