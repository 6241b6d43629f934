"""How processes on one file know of each other: who lives, and how to wake them.

Beside the file stands a folder `<file>-live` with two entries for each open store:

    <instance>.live   locked as long as the process lives. The kernel drops the lock at any
                      death, so whoever can take it knows that its owner is dead. It holds one
                      number, mapped into memory: the last claim whose answer arrived. What a
                      dead process claimed after that never started, and is no crash.
    <instance>.wake   a pipe. A writer that has news drops a byte into each; a sleeping
                      process wakes within a fraction of a millisecond.
"""

import contextlib
import fcntl
import mmap
import os
import struct
import time
from pathlib import Path

import msgspec

_NUMBER = struct.Struct("<q")
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
        self._received = mmap.mmap(self._fd, _NUMBER.size)
        os.mkfifo(self._wake, 0o600)
        # Open for both ends: a pipe whose last writer left would read as ended, over and over.
        self.wake_fd = os.open(self._wake, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def mark_received(self, claim: int) -> None:
        """Note that the answer to this claim arrived; a memory write, which outlives a kill."""
        if claim > _NUMBER.unpack_from(self._received)[0]:
            _NUMBER.pack_into(self._received, 0, claim)

    def drain_wakeups(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while len(os.read(self.wake_fd, 4096)) == 4096:
                pass

    def close(self) -> None:
        for path in (self._wake, self._live):
            path.unlink(missing_ok=True)
        self.let_go()

    def let_go(self) -> None:
        """Close without tidying up, as a killed process does."""
        self._received.close()
        os.close(self.wake_fd)
        os.close(self._fd)


def _enter(unnamed: Path, live: Path) -> int:
    """Locked before it has its name: an unlocked `.live` file means a dead process to all others."""
    while True:
        fd = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            # Written, not only sized: on a full disk the first touch of an empty page would kill the process.
            os.write(fd, bytes(_NUMBER.size))
            unnamed.rename(live)
        except FileNotFoundError:
            os.close(fd)  # we were so slow that another took it for a dead process's and removed it
        except BaseException:
            os.close(fd)
            raise
        else:
            return fd


class Neighbours:
    """The pipes of the other processes on this file; listed again when the folder has changed."""

    def __init__(self, folder: Path, own: str) -> None:
        self._folder = folder
        self._own = own
        self._listed_ns = 0
        """The folder's time when its list was made; 0 if the list cannot be trusted."""
        self._pipes: list[str] = []

    def wake(self) -> None:
        """Drop a byte into the pipe of every other process; a full pipe is awake already."""
        try:
            self._look()
        except OSError:
            return  # no folder, or no file handle left: sleepers look for themselves when their time is over
        for path in self._pipes:
            try:
                pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:
                continue  # its owner is gone; whoever rescues its jobs removes the pipe
            try:
                os.write(pipe, b"!")
            except OSError:
                pass  # full: the owner has not yet read earlier wake-ups, and will look
            finally:
                os.close(pipe)

    def _look(self) -> None:
        changed_ns = self._folder.stat().st_mtime_ns
        if changed_ns == self._listed_ns:
            return
        entries = os.scandir(self._folder)
        self._pipes = [e.path for e in entries if e.name.endswith(".wake") and not e.name.startswith(self._own)]
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
