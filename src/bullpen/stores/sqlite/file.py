"""One file in this process: its writer, its readers and its wake-ups, shared by all stores on it.

The lease thread of a worker has a store of its own, on its own event loop; both speak through
the one writer. Sharing is by path, counted.

A forked child cannot use a file that its parent had open, not even through a connection of its
own: it inherits SQLite's memory of locks that only the parent holds, and what it writes is lost
when the parent closes. So it is refused, and lets go of the locks that it inherited.
"""

import asyncio
import os
import secrets
import select
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TypeVar

from bullpen.clock import Clock
from bullpen.errors import StoreUnavailable
from bullpen.stores.sqlite.connection import Sync, connect_reader, prepare, translate
from bullpen.stores.sqlite.migrating import check_version
from bullpen.stores.sqlite.presence import DeadProcess, Neighbours, Presence, find_dead
from bullpen.stores.sqlite.tokens import ClaimToken
from bullpen.stores.sqlite.transaction import News
from bullpen.stores.sqlite.writer import Writer

T = TypeVar("T")

_READERS = 2
_open_files: dict[Path, "SharedFile"] = {}
_opening = threading.Lock()
_open_at_fork: set[str] = set()
_FORKED = "{}: was open when this process was forked; open it after the fork, or start the process by spawn"


def acquire(path: Path, sync: Sync, clock: Clock) -> "SharedFile":
    """The shared file, opened if need be. Blocks: not for the event loop."""
    if os.path.realpath(path) in _open_at_fork:
        raise StoreUnavailable(_FORKED.format(path))
    with _opening:
        file = _open_files.get(path)
        if file is None:
            file = _open_files[path] = SharedFile(path, sync, clock)
        elif sync == "full":
            # Whoever asked for less gets more: an acknowledged add keeps its promise to each.
            file.writer.sync_fully()
        file.users += 1
        return file


def release(file: "SharedFile") -> None:
    """Close the file with its last user. Blocks: not for the event loop."""
    with _opening:
        file.users -= 1
        if file.users > 0 or _open_files.get(file.path) is not file:
            return
        del _open_files[file.path]
    file.close()


def forget_after_crash(file: "SharedFile") -> None:
    """For the harness: drop the file as a killed process does, with nothing tidied up."""
    with _opening:
        _open_files.pop(file.path, None)
    file.die()


def _after_fork_in_child() -> None:
    global _opening  # noqa: PLW0603 - a thread that is not in this process may hold the old one
    _opening = threading.Lock()
    for file in _open_files.values():
        _open_at_fork.add(os.path.realpath(file.path))
        file.let_go_after_fork()
    _open_files.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)


class Waiter:
    """One who waits for news about something, on its own event loop."""

    def __init__(self, topic: int, concerns: Callable[[News], bool]) -> None:
        self.topic = topic
        self.concerns = concerns
        self.since = 0
        """The last commit before it came: what that told is old by now."""
        self.knows = False
        """Whether news that concerns it woke it, and not only that a neighbour has some on its topic."""
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()

    def wake(self, *, knows: bool = False) -> None:
        """From any thread."""
        try:
            self._loop.call_soon_threadsafe(self._hear, knows)
        except RuntimeError:
            pass  # that loop has ended, and its waiters with it

    def _hear(self, knows: bool) -> None:
        self.knows = self.knows or knows
        self._news.set()

    async def sleep(self, seconds: float) -> bool:
        """Until news or the time is over; whether there was news."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True


class SharedFile:
    def __init__(self, path: Path, sync: Sync, clock: Clock) -> None:
        self.path = path
        self.clock = clock
        self.users = 0
        self._forked = False
        db = prepare(path, sync)
        try:
            self.presence = Presence(path, secrets.token_hex(5))
        except OSError as error:
            db.close()
            raise translate(error, path) from error
        self._neighbours = Neighbours(self.presence.folder, self.presence.instance)
        self.writer = Writer(path, db, clock, self._on_commit)
        self._claims = 0
        self._waiters: set[Waiter] = set()
        self._joining = threading.Lock()
        self._someone_waits = threading.Event()
        self._closing = threading.Event()
        self._readers = ThreadPoolExecutor(_READERS, "bullpen-reader")
        self._idle: list[sqlite3.Connection] = []
        self._waker = threading.Thread(target=self._watch_pipe, name="bullpen-waker", daemon=True)
        self._waker.start()

    # ── reading ──────────────────────────────────────────────────────────────────────────

    async def read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """Look at the file as of its last commit, apart from the event loop and the writer."""
        if self._forked:
            raise StoreUnavailable(_FORKED.format(self.path))
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, look)
        except sqlite3.Error as error:
            raise translate(error, self.path) from error
        except RuntimeError as error:
            raise StoreUnavailable(f"{self.path}: the store is closed") from error

    def _read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        db = self._idle.pop() if self._idle else connect_reader(self.path)
        try:
            db.execute("BEGIN")  # all that one look reads is of one commit
            check_version(db, str(self.path))
            return look(db)
        finally:
            if db.in_transaction:
                db.execute("COMMIT")
            self._idle.append(db)

    # ── claims ───────────────────────────────────────────────────────────────────────────

    def next_claim(self, *, held_elsewhere: bool = False) -> ClaimToken:
        self._claims += 1
        # An instance that has no `.live` entry is never found dead.
        instance = f"{self.presence.instance}~" if held_elsewhere else self.presence.instance
        return ClaimToken(instance, self._claims)

    def find_dead(self) -> list[DeadProcess]:
        return find_dead(self.presence.folder, self.presence.instance)

    # ── news ─────────────────────────────────────────────────────────────────────────────

    def join(self, waiter: Waiter) -> None:
        waiter.since = self.writer.commits
        with self._joining:
            self._waiters.add(waiter)
            self._show_topics()
            self._someone_waits.set()

    def leave(self, waiter: Waiter) -> None:
        # Under the lock: whoever joins on another event loop in between would wait unwatched.
        with self._joining:
            self._waiters.discard(waiter)
            self._show_topics()
            if not self._waiters:
                self._someone_waits.clear()

    def _show_topics(self) -> None:
        self.presence.wait_for(reduce(or_, {waiter.topic for waiter in self._waiters}, 0))

    def _on_commit(self, news: News) -> None:
        for waiter in self._all_waiters():
            if news.number > waiter.since and waiter.concerns(news):
                waiter.wake(knows=True)
        self._neighbours.wake(news.topics)

    def _watch_pipe(self) -> None:
        """Wake everyone when another process has news; while nobody waits, let the pipe fill."""
        pipe = select.poll()  # unlike select, it takes descriptors above 1,023
        pipe.register(self.presence.wake_fd, select.POLLIN)
        while not self._closing.is_set():
            self._someone_waits.wait()
            pipe.poll()
            topics = self.presence.drain_wakeups()
            for waiter in self._all_waiters():
                if waiter.topic & topics:
                    waiter.wake()

    def _all_waiters(self) -> tuple[Waiter, ...]:
        with self._joining:
            return tuple(self._waiters)

    # ── the end ──────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        self.writer.close()
        self._stop_threads()
        self.presence.close()

    def die(self) -> None:
        self.writer.close()
        self._stop_threads()
        self.presence.let_go()

    def let_go_after_fork(self) -> None:
        """In a forked child: hold none of the parent's locks, or nobody would see the parent die."""
        self._forked = True
        self.writer.let_go_after_fork()
        self.presence.let_go()

    def _stop_threads(self) -> None:
        self._readers.shutdown()
        for db in self._idle:
            db.close()
        self._closing.set()
        self._someone_waits.set()
        os.write(self.presence.wake_fd, b"\0")
        self._waker.join()
