"""Whose turn it is to write, between processes: blocking locks on side files.

Waiters sleep in the kernel, where SQLite's busy timeout polls and lets some wait for half a second. The kernel
hands a lock to nobody: it wakes who waits for it, and a busy writer has taken it again before that one is
awake. So whoever waits for the turn holds `-next` meanwhile, and who has had the turn for a while goes
past `-next` again, behind that one. For that while it may go on: to change over costs a wake-up.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

_STREAK_NS = 5_000_000
"""How long others wait for a writer that has more to write."""


class TurnLock:
    def __init__(self, path: Path) -> None:
        self._turn = _opened(path, "-turn")
        self._next = _opened(path, "-next")
        self._since_ns = -_STREAK_NS

    def take(self) -> None:
        if time.monotonic_ns() - self._since_ns < _STREAK_NS and self._taken_at_once():
            return
        fcntl.flock(self._next, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._turn, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._next, fcntl.LOCK_UN)
        self._since_ns = time.monotonic_ns()

    def _taken_at_once(self) -> bool:
        try:
            fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def give(self) -> None:
        fcntl.flock(self._turn, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._turn)
        os.close(self._next)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Take the turn once and close the lock afterwards."""
        try:
            self.take()
            yield
        finally:
            self.close()


def _opened(path: Path, ending: str) -> int:
    return os.open(f"{path}{ending}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
