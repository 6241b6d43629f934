"""How processes on one file know of each other: who lives, and how to wake them.

Beside the file stands a folder `<file>-live` with two entries for each open store:

    <instance>.live   locked as long as the process lives. The kernel drops the lock at any
                      death, so whoever can take it knows that its owner is dead. It is mapped
                      into memory and holds
                        - the last claim whose answer arrived: what a dead process claimed
                          after that never started, and is no crash;
                        - the topics of the news that somebody there waits for.
    <instance>.wake   a pipe. A writer drops the topics of its news, a byte, into the pipe of
                      each process that waits for one of them; it wakes within a fraction of a
                      millisecond. Workers that are all busy wait for none of each other's.
"""

import contextlib
import fcntl
import mmap
import os
import struct
import time
from functools import reduce
from operator import or_
from pathlib import Path

import msgspec

_NUMBER = struct.Struct("<q")
_TOPICS_AT = _NUMBER.size
_LIVE_SIZE = _TOPICS_AT + 1
_ALL_TOPICS = 0xFF
_MUCH = 4096
_COARSE_NS = 2_000_000_000
"""The coarsest time that a file system keeps."""
_UNBORN_S = 60
"""A process that takes longer than this to enter died on the way."""


class Presence:
    """This process's own entries."""

    def __init__(self, path: Path, instance: str) -> None:
        self.folder = Path(f"{path}-live")
        self.instance = instance
        self.folder.mkdir(exist_ok=True)
        self._live = self.folder / f"{instance}.live"
        self._wake = self.folder / f"{instance}.wake"
        self._fd = _enter(self.folder / f"{instance}.new", self._live)
        self._shown = mmap.mmap(self._fd, _LIVE_SIZE)
        os.mkfifo(self._wake, 0o600)
        # Open for both ends: a pipe whose last writer left would read as ended, over and over.
        self.wake_fd = os.open(self._wake, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def mark_received(self, claim: int) -> None:
        """Note that the answer to this claim arrived; a memory write, which outlives a kill."""
        if claim > _NUMBER.unpack_from(self._shown)[0]:
            _NUMBER.pack_into(self._shown, 0, claim)

    def wait_for(self, topics: int) -> None:
        """From now on, be woken by news about these. Whoever calls it looks for news that came before."""
        if not self._shown.closed:  # a store may be closed under those who wait
            self._shown[_TOPICS_AT] = topics

    def drain_wakeups(self) -> int:
        """The topics of all news that came; all there are if it was much, since a full pipe takes no more."""
        topics = 0
        with contextlib.suppress(BlockingIOError):
            while told := os.read(self.wake_fd, _MUCH):
                topics = reduce(or_, set(told), _ALL_TOPICS if len(told) == _MUCH else topics)
        return topics

    def close(self) -> None:
        for path in (self._wake, self._live):
            path.unlink(missing_ok=True)
        self.let_go()

    def let_go(self) -> None:
        """Close without tidying up, as a killed process does."""
        self._shown.close()
        os.close(self.wake_fd)
        os.close(self._fd)


def _enter(unnamed: Path, live: Path) -> int:
    """Locked before it has its name: an unlocked `.live` file means a dead process to all others."""
    while True:
        fd = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            # Written, not only sized: on a full disk the first touch of an empty page would kill the process.
            os.write(fd, bytes(_LIVE_SIZE))
            unnamed.rename(live)
        except FileNotFoundError:
            os.close(fd)  # we were so slow that another took it for a dead process's and removed it
        except BaseException:
            os.close(fd)
            raise
        else:
            return fd


class Neighbour:
    """Another process on this file, as far as it is to be woken."""

    def __init__(self, pipe: Path) -> None:
        self._pipe = pipe
        self._shown = _look_at(pipe.with_suffix(".live"))

    def wake(self, topics: int) -> None:
        """If somebody there waits for news about one of these. A full pipe is awake already."""
        if not topics & self._waits_for:
            return
        try:
            pipe = os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return  # its owner is gone; whoever rescues its jobs removes the pipe
        try:
            os.write(pipe, bytes((topics,)))
        except OSError:
            pass  # full: the owner has not yet read earlier wake-ups, and will look
        finally:
            os.close(pipe)

    @property
    def _waits_for(self) -> int:
        return _ALL_TOPICS if self._shown is None else self._shown[_TOPICS_AT]


def _look_at(live: Path) -> mmap.mmap | None:
    """What a process shows; None if it cannot be seen, as when no file handle is left."""
    try:
        fd = os.open(live, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return mmap.mmap(fd, _LIVE_SIZE, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)


class Neighbours:
    """The other processes on this file; listed again when the folder has changed."""

    def __init__(self, folder: Path, own: str) -> None:
        self._folder = folder
        self._own = own
        self._listed_ns = 0
        """The folder's time when its list was made; 0 if the list cannot be trusted."""
        self._all: dict[str, Neighbour] = {}

    def wake(self, topics: int) -> None:
        """Every other process in which somebody waits for news about one of these."""
        try:
            self._look()
        except OSError:
            return  # no folder, or no file handle left: sleepers look for themselves when their time is over
        for neighbour in self._all.values():
            neighbour.wake(topics)

    def _look(self) -> None:
        changed_ns = self._folder.stat().st_mtime_ns
        if changed_ns == self._listed_ns:
            return
        entries = os.scandir(self._folder)
        pipes = [e.path for e in entries if e.name.endswith(".wake") and not e.name.startswith(self._own)]
        self._all = {path: self._all.get(path) or Neighbour(Path(path)) for path in pipes}
        # File systems keep coarse time: right after a change, another one may bear the same.
        is_over = time.time_ns() - changed_ns > _COARSE_NS
        self._listed_ns = changed_ns if is_over else 0


class DeadProcess(msgspec.Struct, frozen=True):
    instance: str
    last_received: int
    """The last of its claims whose answer arrived."""
    entry: Path

    def bury(self) -> None:
        """Remove its entries, once its jobs are in other hands for good."""
        for path in (self.entry.with_suffix(".wake"), self.entry):
            path.unlink(missing_ok=True)


def find_dead(folder: Path, own: str) -> list[DeadProcess]:
    """The processes whose entries are here and whose locks are free."""
    return [dead for entry in _others(folder, own) if (dead := _dead_or_none(entry)) is not None]


def _dead_or_none(entry: Path) -> DeadProcess | None:
    try:
        fd = os.open(entry, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None  # buried by another meanwhile
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        raw = os.pread(fd, _NUMBER.size, 0)
    except BlockingIOError:
        return None  # alive
    finally:
        os.close(fd)
    return DeadProcess(entry.stem, _NUMBER.unpack(raw)[0] if len(raw) == _NUMBER.size else 0, entry)


def _others(folder: Path, own: str) -> list[Path]:
    try:
        found = [entry for entry in os.scandir(folder) if not entry.name.startswith(own)]
    except FileNotFoundError:
        return []  # somebody removed the folder: nobody can be told dead, and their leases run out
    return [Path(entry.path) for entry in found if entry.name.endswith(".live") or _is_unborn(entry)]


def _is_unborn(entry: "os.DirEntry[str]") -> bool:
    """Left by a process that died before it was known; one that is about to enter is not locked yet either."""
    if not entry.name.endswith(".new"):
        return False
    try:
        return time.time() - entry.stat().st_mtime > _UNBORN_S
    except FileNotFoundError:
        return False  # it has its name by now
