"""Who is known and who is woken. Only SQLite has neighbours: Redis tells its clients by itself."""

import contextlib
import fcntl
import os
import shutil
import time
from pathlib import Path

import pytest

from bullpen.job.record import CrashLimits
from bullpen.job.spec import NewJob
from bullpen.stores.sqlite.presence import DeadProcess, Neighbours, Presence, find_dead
from bullpen.stores.sqlite.transaction import CANCELS, EVENTS, WORK
from tests.support.sqlite_harness import SqliteHarness


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
        return os.read(pipe, 10) == bytes((WORK,))
    except BlockingIOError:
        return False


def set_time(folder: Path, time_ns: int) -> None:
    os.utime(folder, ns=(time_ns, time_ns))


def test_all_others_are_woken_and_not_oneself(folder: Path) -> None:
    own, other = open_pipe(folder, "own"), open_pipe(folder, "other")
    Neighbours(folder, "own").wake(WORK)
    assert is_woken(other)
    assert not is_woken(own)


def test_one_is_woken_by_what_somebody_there_waits_for(tmp_path: Path) -> None:
    """News of all else are none to it: busy workers would keep each other awake with every commit."""
    other = Presence(tmp_path / "queue.db", "other")
    neighbours = Neighbours(other.folder, "own")
    neighbours.wake(WORK | EVENTS | CANCELS)
    assert other.drain_wakeups() == 0
    other.wait_for(WORK | CANCELS)
    neighbours.wake(EVENTS)
    assert other.drain_wakeups() == 0
    neighbours.wake(WORK | EVENTS)
    neighbours.wake(CANCELS)
    assert other.drain_wakeups() == WORK | EVENTS | CANCELS
    other.wait_for(0)
    neighbours.wake(WORK)
    assert other.drain_wakeups() == 0
    other.close()


def test_one_whose_pipe_was_full_hears_of_all_topics(tmp_path: Path) -> None:
    """A full pipe takes no more: what was told last is not in it."""
    other = Presence(tmp_path / "queue.db", "other")
    other.wait_for(WORK | CANCELS)
    neighbours = Neighbours(other.folder, "own")
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(other.wake_fd, bytes((WORK,) * 4096))
    neighbours.wake(CANCELS)
    assert other.drain_wakeups() & CANCELS
    assert other.drain_wakeups() == 0
    other.close()


def test_one_who_came_after_the_list_was_made_is_woken(folder: Path) -> None:
    """The list is kept as long as the folder stays as it is."""
    set_time(folder, time.time_ns() - 10**12)
    neighbours = Neighbours(folder, "own")
    neighbours.wake(WORK)
    late = open_pipe(folder, "late")
    neighbours.wake(WORK)
    assert is_woken(late)


def test_one_who_came_within_the_same_moment_is_woken(folder: Path) -> None:
    """A list made right after a change is not kept: the next change may leave the folder's time as it is."""
    neighbours = Neighbours(folder, "own")
    moment_ns = time.time_ns()
    set_time(folder, moment_ns)
    neighbours.wake(WORK)
    late = open_pipe(folder, "late")
    set_time(folder, moment_ns)
    neighbours.wake(WORK)
    assert is_woken(late)


def test_one_who_has_gone_does_no_harm(folder: Path) -> None:
    other = open_pipe(folder, "other")
    neighbours = Neighbours(folder, "own")
    set_time(folder, time.time_ns() - 10**12)
    neighbours.wake(WORK)
    os.close(other)
    neighbours.wake(WORK)
    (folder / "other.wake").unlink()
    neighbours.wake(WORK)


def test_one_who_is_about_to_enter_is_not_taken_for_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entry is there and not yet locked; another process that sweeps at this moment leaves it alone."""
    swept: list[DeadProcess] = []

    def sweep_first(fd: int, operation: int) -> None:
        monkeypatch.undo()
        for dead in find_dead(tmp_path / "queue.db-live", "neighbour"):
            swept.append(dead)
            dead.bury()
        fcntl.flock(fd, operation)

    monkeypatch.setattr("bullpen.stores.sqlite.presence.fcntl.flock", sweep_first)
    presence = Presence(tmp_path / "queue.db", "slow")
    assert swept == []
    assert sorted(path.name for path in presence.folder.iterdir()) == ["slow.live", "slow.wake"]
    presence.close()


def test_one_whose_entry_was_removed_enters_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was held up for minutes on its way in."""

    def remove_first(fd: int, operation: int) -> None:
        monkeypatch.undo()
        (tmp_path / "queue.db-live" / "slow.new").unlink()
        fcntl.flock(fd, operation)

    monkeypatch.setattr("bullpen.stores.sqlite.presence.fcntl.flock", remove_first)
    presence = Presence(tmp_path / "queue.db", "slow")
    assert (presence.folder / "slow.live").exists()
    assert find_dead(presence.folder, "neighbour") == []
    presence.close()


def test_what_a_process_left_that_died_on_its_way_in_is_removed(folder: Path) -> None:
    left = folder / "dead.new"
    left.touch()
    os.utime(left, (0, 0))
    (dead,) = find_dead(folder, "own")
    dead.bury()
    assert list(folder.iterdir()) == []


async def test_expired_leases_are_recovered_though_the_folder_was_removed(tmp_path: Path) -> None:
    """Nobody can be told dead without it; jobs come back as their leases run out."""
    harness = SqliteHarness(tmp_path)
    store = await harness.open()
    await store.add([NewJob("mail", "welcome", id="x")], request="add")
    await store.claim({"mail": 1}, worker="worker-1", lease_ms=30_000, request="claim")
    (folder,) = tmp_path.glob("*-live")
    shutil.rmtree(folder)
    await harness.advance(30_001)
    rescued = await store.rescue(["mail"], limits=CrashLimits())
    assert [ref.id for ref in rescued.recovered] == ["x"]
    await harness.close()
