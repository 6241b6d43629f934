"""What one operation costs its store, counted by the store itself.

On SQLite: the steps of its virtual machine, the statements, and the pages that a connection reads, with an
empty cache and with the one that it has by then. On Redis: the commands that ran, and the server's processor time.
Time is taken apart from this, since counting costs time.
"""

import contextlib
import dataclasses
import re
import sqlite3
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

import redis

from benchmarks.redis.server import HOST
from bullpen.stores.sqlite.file import SharedFile

T = TypeVar("T")
_IO = Path("/proc/thread-self/io")
_VALUE = re.compile(r"[xX]?'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b")
"""What differs between two calls of one statement."""

STEPS, STATEMENTS, PAGES_READ, PAGES_WRITTEN = "VM steps", "statements", "pages read", "pages written"
PAGES_READ_WARM = "pages read, cache kept"
COMMANDS, CPU, IN_SCRIPTS = "commands", "server CPU", "server time"
SQLITE_UNITS = {
    STEPS: "steps",
    STATEMENTS: "statements",
    PAGES_READ: "pages",
    PAGES_READ_WARM: "pages",
    PAGES_WRITTEN: "pages",
}
REDIS_UNITS = {COMMANDS: "commands", CPU: "µs", IN_SCRIPTS: "µs"}


class Gauge(Protocol):
    async def count(self, operation: Callable[[], Awaitable[T]]) -> tuple[T, dict[str, float]]: ...

    def plans(self) -> Sequence[str]:
        """Ways of the statements so far that go through a whole table or sort, which none should."""

    def keep_cache(self) -> bool:
        """From now on count what is read beyond what is known already; False where that makes no difference."""


class RedisGauge:
    def __init__(self, port: int) -> None:
        self._client = redis.Redis(HOST, port)
        empty = [self._between(self._read(), self._read()) for _ in range(20)]
        # What the reading itself is seen to cost, to be taken off.
        self._own = {name: statistics.median(each[name] for each in empty) for name in REDIS_UNITS}

    async def count(self, operation: Callable[[], Awaitable[T]]) -> tuple[T, dict[str, float]]:
        before = self._read()
        answer = await operation()
        found = self._between(before, self._read())
        return answer, {name: found[name] - self._own[name] for name in found}

    def plans(self) -> Sequence[str]:
        return ()

    def keep_cache(self) -> bool:
        return False

    def close(self) -> None:
        self._client.close()

    def _read(self) -> dict[str, Any]:
        return dict(self._client.info("all"))

    def _between(self, before: dict[str, Any], after: dict[str, Any]) -> dict[str, float]:
        def calls(info: dict[str, Any], *, field: str, only: str = "") -> float:
            names = (name for name in info if name.startswith("cmdstat_" + only))
            return float(sum(info[name][field] for name in names if not name.startswith("cmdstat_info")))

        def cpu_us(info: dict[str, Any]) -> float:
            return float((info["used_cpu_user_main_thread"] + info["used_cpu_sys_main_thread"]) * 1e6)

        return {
            COMMANDS: calls(after, field="calls") - calls(before, field="calls"),
            CPU: cpu_us(after) - cpu_us(before),
            IN_SCRIPTS: calls(after, field="usec", only="evalsha") - calls(before, field="usec", only="evalsha"),
        }


@dataclasses.dataclass
class _Counts:
    steps: int = 0
    statements: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    def step(self) -> int:
        self.steps += 1
        return 0


class SqliteGauge:
    """Counts on the connections of an open file: the writer's, and those of its readers."""

    def __init__(self, file: SharedFile) -> None:
        self._counts: _Counts | None = None
        self._keeps_cache = False
        self._said: dict[str, str] = {}
        self._path = file.path
        self._page_size = int(file.writer._db.execute("PRAGMA page_size").fetchone()[0])
        commit, read = file.writer._commit, file._read
        file.writer._commit = lambda group: self._watch(  # type: ignore[method-assign]  # on this instance only
            file.writer._db, lambda: commit(group)
        )
        file._read = lambda look: read(  # type: ignore[method-assign]
            lambda db: self._watch(db, lambda: look(db))
        )
        # What is dropped now and then would be counted for whichever operation meets it.
        file.writer._forget_now_and_then = lambda tx: None  # type: ignore[method-assign]  # noqa: ARG005

    async def count(self, operation: Callable[[], Awaitable[T]]) -> tuple[T, dict[str, float]]:
        self._counts = found = _Counts()
        answer = await operation()
        self._counts = None
        if self._keeps_cache:
            return answer, {PAGES_READ_WARM: found.bytes_read // self._page_size}
        return answer, {
            STEPS: found.steps,
            STATEMENTS: found.statements,
            PAGES_READ: found.bytes_read // self._page_size,
            PAGES_WRITTEN: found.bytes_written // self._page_size,
        }

    def plans(self) -> Sequence[str]:
        """Explained at the end, with the tables as they are then."""
        db = sqlite3.connect(self._path)
        try:
            detours = []
            for shape, statement in self._said.items():
                plan = [str(row[3]) for row in db.execute(f"EXPLAIN QUERY PLAN {statement}")]
                detours += [f"{step}: {shape}" for step in plan if _is_detour(step)]
            return sorted(set(detours))
        finally:
            db.close()

    def keep_cache(self) -> bool:
        self._keeps_cache = True
        return True

    def _watch(self, db: sqlite3.Connection, work: Callable[[], T]) -> T:
        """In the thread that does the work; counts only while an operation is counted."""
        counts = self._counts
        if counts is None:
            return work()

        def said(statement: str) -> None:
            counts.statements += 1
            if statement.startswith(("SELECT", "UPDATE", "DELETE", "INSERT")):
                self._said.setdefault(_VALUE.sub("?", statement), statement)

        if not self._keeps_cache:
            db.execute("PRAGMA shrink_memory")
        db.set_trace_callback(said)
        db.set_progress_handler(counts.step, 1)
        try:
            with _reads(counts):
                return work()
        finally:
            db.set_progress_handler(None, 0)
            db.set_trace_callback(None)


def _is_detour(step: str) -> bool:
    # A list that the statement brings along, or a table of one row, is no table that grows; nor does what is
    # equal in the first part of an order: the jobs of one claim.
    harmless = ("json_each", "CONSTANT ROW", "sequence", "fresh", "done", "SUBQUERY", "VIRTUAL", "RIGHT PART")
    return ("SCAN" in step or "TEMP B-TREE" in step) and not any(word in step for word in harmless)


@contextlib.contextmanager
def _reads(counts: _Counts) -> Iterator[None]:
    """Bytes that this thread reads and writes meanwhile, where the system counts them for each thread."""
    if not _IO.exists():
        yield
        return
    read, written = _io()
    own = _io()[0] - read
    try:
        yield
    finally:
        end = _io()
        # Reading the counter is itself counted.
        counts.bytes_read += end[0] - read - 2 * own
        counts.bytes_written += end[1] - written


def _io() -> tuple[int, int]:
    lines = _IO.read_text().split()
    return int(lines[1]), int(lines[3])


def deepest_tree(path: Path) -> int:
    """Levels of the deepest tree in a file: what a look-up reads, and all of it that grows with the size."""
    db = sqlite3.connect(path)
    try:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        page_size = int(db.execute("PRAGMA page_size").fetchone()[0])
        roots = [int(root) for (root,) in db.execute("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0")]
    finally:
        db.close()
    with path.open("rb") as content:
        return max(_levels(content, root, page_size) for root in roots)


def _levels(content: BinaryIO, page: int, page_size: int) -> int:
    content.seek((page - 1) * page_size)
    header = content.read(12)
    is_interior = header[0] in (2, 5)  # of an index, of a table
    return 1 + _levels(content, int.from_bytes(header[8:12]), page_size) if is_interior else 1


def thread_cpu_ns(ident: int) -> int:
    """What a thread of this process has used."""
    return time.clock_gettime_ns(time.pthread_getcpuclockid(ident))
