"""What a claim costs as the line grows: work, not time, so it is the same on every machine.

`claim_cost` asks SQLite itself: its plan for the claim's SELECT, the steps of its virtual
machine, and the bytes that a connection with an empty cache reads from the file.
"""

import dataclasses
import sqlite3
from pathlib import Path

from bullpen.stores.sqlite.claiming import NEXT_IN_LINE

_IO = Path("/proc/thread-self/io")


@dataclasses.dataclass(frozen=True, slots=True)
class ClaimCost:
    plan: tuple[str, ...]
    vm_steps: int
    bytes_read: int | None
    """None where the system does not count reads for each thread."""

    @property
    def follows_the_line(self) -> bool:
        """Whether jobs are found in the order of the index of runnable jobs, with no scan and no sort."""
        detours = [step for step in self.plan if "SCAN" in step or "TEMP B-TREE" in step]
        return not detours and any("INDEX job_ready" in step for step in self.plan)


def claim_cost(path: Path, *, queue: str | None = None, slots: int = 50) -> ClaimCost:
    """The cost of choosing the next jobs in line; of the longest line, if no queue is named."""
    _empty_the_log(path)
    number = _queue_number(path, queue)
    return ClaimCost(_plan(path, number, slots), _vm_steps(path, number, slots), _bytes_read(path, number, slots))


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA query_only = 1")
    db.execute("SELECT id FROM queue LIMIT 1").fetchall()  # the schema is read now, not while we count
    return db


def _empty_the_log(path: Path) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()


def _queue_number(path: Path, queue: str | None) -> int:
    db = _connect(path)
    try:
        row = db.execute(
            "SELECT id FROM queue WHERE name = coalesce(?, name) ORDER BY waiting + prioritized DESC LIMIT 1", (queue,)
        ).fetchone()
    finally:
        db.close()
    if row is None:
        raise LookupError(f"{path} has no queue {queue or ''}")
    return int(row[0])


def _claim(number: int, slots: int) -> dict[str, int | str]:
    return {"queue": number, "slots": slots, "now_ms": 0, "worker": "nobody"}


def _plan(path: Path, number: int, slots: int) -> tuple[str, ...]:
    db = _connect(path)
    try:
        return tuple(str(row[3]) for row in db.execute(f"EXPLAIN QUERY PLAN {NEXT_IN_LINE}", _claim(number, slots)))
    finally:
        db.close()


def _vm_steps(path: Path, number: int, slots: int) -> int:
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    db = _connect(path)
    try:
        db.set_progress_handler(step, 1)
        db.execute(NEXT_IN_LINE, _claim(number, slots)).fetchall()
    finally:
        db.close()
    return steps


def _bytes_read(path: Path, number: int, slots: int) -> int | None:
    if not _IO.exists():
        return None
    db = _connect(path)
    try:
        before, start = _read_so_far(), _read_so_far()
        db.execute(NEXT_IN_LINE, _claim(number, slots)).fetchall()
        end = _read_so_far()
    finally:
        db.close()
    asking = start - before  # reading the counter is itself counted
    return end - start - asking


def _read_so_far() -> int:
    return int(_IO.read_text().split()[1])
