"""What a claim or a page of jobs costs does not grow with the number of jobs."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen import NewJob, SqliteStore, State
from bullpen.job.record import JobRef
from bullpen.job.schedule import Schedule, Timing
from bullpen.stores.sqlite import looking, steering
from bullpen.stores.sqlite.claiming import Claimant, claim
from bullpen.stores.sqlite.tokens import ClaimToken
from bullpen.stores.sqlite.transaction import QueueBook, Transaction

_BATCH = 10


async def _file_with(path: Path, waiting: int) -> Path:
    store = SqliteStore(path, sync="normal")
    await store.open()
    for start in range(0, waiting, 1_000):
        batch = [NewJob("work", "one")] * min(1_000, waiting - start)
        await store.add(batch, request=f"{start}")
    await store.close()
    return path


class _Watched:
    """One claim on a connection of our own: its statements, and the steps that SQLite's machine made."""

    def __init__(self, path: Path) -> None:
        self.statements: list[str] = []
        self.plans: list[str] = []
        self.steps = 0
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        db.set_trace_callback(self.statements.append)
        db.set_progress_handler(self._step, 1)
        tx = Transaction(db, QueueBook(), now_ms=1_750_000_000_000)
        claimed = claim(tx, {"work": _BATCH}, Claimant("w", 30_000, ClaimToken("i", 1)))
        db.set_progress_handler(None, 0)
        db.set_trace_callback(None)
        assert len(claimed.jobs) == _BATCH
        for statement in self.statements:
            self.plans += [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}")]
        db.execute("ROLLBACK")
        db.close()

    def _step(self) -> int:
        self.steps += 1
        return 0


async def test_a_claim_takes_the_same_steps_with_a_hundred_and_with_twenty_thousand_waiting(tmp_path: Path) -> None:
    few = _Watched(await _file_with(tmp_path / "few.db", 100))
    many = _Watched(await _file_with(tmp_path / "many.db", 20_000))
    assert few.steps > 0
    assert many.steps == few.steps


async def test_a_claim_reads_the_line_from_its_index(tmp_path: Path) -> None:
    """In order, without sorting, and without a walk through a table."""
    plans = _Watched(await _file_with(tmp_path / "queue.db", 100)).plans
    assert any("USING INDEX job_ready" in plan for plan in plans)
    assert not [plan for plan in plans if "TEMP B-TREE" in plan]
    scans = [plan for plan in plans if plan.startswith("SCAN") and "json_each" not in plan]
    assert not scans


_MOVE_ALL = {
    State.WAITING: "state = 0",
    State.PRIORITIZED: "state = 0, priority = 1",
    State.DELAYED: "state = 1, due_ms = key / 10",
    State.COMPLETED: "state = 4, finished_ms = key / 10",
    State.FAILED: "state = 5, finished_ms = key / 10",
}


def _steps_of_middle_page(path: Path, state: State, *, newest_first: bool) -> int:
    """Put all jobs of the file into one state and read a page from its middle."""
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    db.execute(f"UPDATE job SET {_MOVE_ALL[state]}")
    major, minor = looking.ORDER[state]
    cursor = db.execute(
        f"SELECT {major} || ',' || {minor} FROM job ORDER BY {major}, {minor}"
        " LIMIT 1 OFFSET (SELECT count(*) / 2 FROM job)"
    ).fetchone()[0]
    db.set_progress_handler(step, 1)
    page = looking.jobs(db, "work", state, 10, cursor, newest_first=newest_first)
    db.set_progress_handler(None, 0)
    assert len(page.jobs) == 10
    db.execute("ROLLBACK")
    db.close()
    return steps


@pytest.mark.parametrize("newest_first", [False, True], ids=["oldest first", "newest first"])
@pytest.mark.parametrize("state", list(_MOVE_ALL))
async def test_a_page_takes_the_same_steps_in_a_short_and_in_a_long_list(
    tmp_path: Path, state: State, newest_first: bool
) -> None:
    """It is entered at the cursor, nothing before it is read and nothing after it is sorted."""
    few = await _file_with(tmp_path / "few.db", 100)
    many = await _file_with(tmp_path / "many.db", 5_000)
    allowed = _steps_of_middle_page(few, state, newest_first=newest_first) * 1.5
    assert _steps_of_middle_page(many, state, newest_first=newest_first) <= allowed


async def _steps_of_a_removal(path: Path, schedules: int) -> int:
    store = SqliteStore(path, sync="normal")
    await store.open()
    for n in range(schedules):
        schedule = Schedule(queue="work", id=f"s{n}", name="tick", timing=Timing(every_ms=60_000))
        await store.put_schedule(schedule, next_ms=2_000_000_000_000, seen_ms=None)
    await store.add([NewJob("work", "one", id="chosen")], request="add")
    await store.close()
    return _steps_of(path, lambda tx: steering.remove(tx, JobRef("work", "chosen")))


def _steps_of(path: Path, move: Callable[[Transaction], object], *, first: str = "") -> int:
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    db.execute(first)
    db.set_progress_handler(step, 1)
    move(Transaction(db, QueueBook(), now_ms=1_750_000_000_000))
    db.set_progress_handler(None, 0)
    db.execute("ROLLBACK")
    db.close()
    return steps


@pytest.mark.parametrize("state", [State.WAITING, State.PRIORITIZED, State.DELAYED])
async def test_a_portion_of_a_clean_takes_the_same_steps_in_a_short_and_in_a_long_line(
    tmp_path: Path, state: State
) -> None:
    """It goes down the line as it stands: sorted by age, each portion would read all that is left."""

    async def steps(name: str, waiting: int) -> int:
        path = await _file_with(tmp_path / name, waiting)
        first = f"UPDATE job SET entered_ms = 0, {_MOVE_ALL[state]}"
        return _steps_of(path, lambda tx: steering.clean(tx, "work", state, 1_000, 10), first=first)

    assert await steps("many.db", 5_000) <= await steps("few.db", 100) * 1.5


async def test_a_removal_takes_the_same_steps_beside_few_and_beside_many_schedules(tmp_path: Path) -> None:
    """Whether the job is a schedule's next tick is looked up, not searched for among all of them."""
    few = await _steps_of_a_removal(tmp_path / "few.db", 2)
    assert await _steps_of_a_removal(tmp_path / "many.db", 200) == few
