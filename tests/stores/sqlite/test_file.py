"""The file itself: made, migrated, opened again, and what stands beside it."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from bullpen import FROM_START, JournalEntry, NewJob, Queue, SqliteStore, State, StoreCorrupt, StoreUnavailable, keep
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.spec import JobSpec
from bullpen.job.verdicts import Completed, Parked, Settlement
from bullpen.stores.base import Counts, Delivery
from bullpen.stores.moving import Cargo, Move, SavedJob, Signal
from bullpen.stores.sqlite import migrating, schema
from bullpen.stores.sqlite.transaction import News
from bullpen.stores.sqlite.turnlock import TurnLock
from bullpen.stores.sqlite.writer import Work, Writer
from bullpen.testing.clock import ManualClock
from tests.support.sqlite_harness import check_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue.db"


def _version(path: Path) -> int:
    db = sqlite3.connect(path)
    try:
        return int(db.execute("PRAGMA user_version").fetchone()[0])
    finally:
        db.close()


async def _add_one(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await Queue(store, "work").add("one")
    assert (await Queue(store, "work").counts()).waiting == 1
    await store.close()


# ── making and migrating ─────────────────────────────────────────────────────────────────


async def test_the_file_and_its_folder_are_made(path: Path) -> None:
    deep = path.parent / "not" / "there" / "yet" / "queue.db"
    await _add_one(deep)
    assert _version(deep) == schema.VERSION


async def test_an_empty_file_becomes_a_store(path: Path) -> None:
    """As `tempfile` and `touch` leave it."""
    path.touch()
    await _add_one(path)
    assert _version(path) == schema.VERSION


async def test_a_file_from_before_schedules_gets_them(path: Path) -> None:
    """What it holds stays, and is worked on as before."""
    db = sqlite3.connect(path)
    db.executescript(
        schema.MIGRATIONS[0]
        + "INSERT INTO queue(id, name, waiting) VALUES(1, 'work', 1); UPDATE sequence SET next = 2;"
        f"INSERT INTO job(key, queue, state, priority, position, added_ms) VALUES(1, 1, {schema.READY}, 0, 1, 0);"
        "INSERT INTO body(key, name, data, spec) VALUES(1, 'one', '{}', '{}'); PRAGMA user_version = 1;"
    )
    db.close()
    store = SqliteStore(path)
    await store.open()
    queue = Queue(store, "work")
    assert (await queue.counts()).waiting == 1
    record = await queue.schedules.upsert("s", "sweep", every=60)
    assert await queue.schedules.list() == [record]
    await store.close()
    assert _version(path) == schema.VERSION
    check_file(path)


async def test_a_database_without_tables_becomes_a_store(path: Path) -> None:
    """Version 0: a file that SQLite made and nobody used."""
    db = sqlite3.connect(path)
    db.execute("VACUUM")
    db.close()
    assert path.stat().st_size > 0
    assert _version(path) == 0
    await _add_one(path)
    assert _version(path) == schema.VERSION


async def test_another_program_s_database_is_left_alone(path: Path) -> None:
    """Nothing is added to it, nor is its journal mode changed."""
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE customer(name TEXT)")
    db.execute("INSERT INTO customer VALUES('Ada')")
    db.commit()
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match=r"queue\.db is no Bullpen file"):
        await SqliteStore(path).open()
    assert path.read_bytes() == before


async def test_an_older_file_is_migrated_with_its_jobs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await _add_one(path)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "ALTER TABLE job ADD COLUMN colour TEXT"))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    store = SqliteStore(path)
    await store.open()
    queue = Queue(store, "work")
    await queue.add("two")
    assert [job.name for job in (await queue.jobs("waiting")).jobs] == ["one", "two"]
    await store.close()
    assert _version(path) == schema.VERSION
    check_file(path)


async def test_a_file_of_the_first_version_gets_journals(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its jobs stay, run, park and record steps; one that has none is forgotten as before."""
    with monkeypatch.context() as older:
        older.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        older.setattr(schema, "VERSION", 1)
        db = sqlite3.connect(path)
        migrating.migrate(db, str(path))
        db.execute("INSERT INTO queue(id, name, waiting) VALUES(1, 'work', 1)")
        db.execute("INSERT INTO job(key, queue, state, priority, position, added_ms) VALUES(1, 1, 0, 0, 1, 1)")
        db.execute("INSERT INTO body VALUES(1, 'old', '{}', '{}')")
        db.execute("UPDATE sequence SET next = 2")
        db.commit()
        db.close()
    store = SqliteStore(path)
    await store.open()
    (claimed,) = (await store.claim({"work": 1}, worker="w", lease_ms=9_000, request="claim")).jobs
    await store.append_journal(claimed.lease.ref, [JournalEntry(0, "charge")], epoch=1)
    await store.settle([Settlement(claimed.lease, Parked(None, ("go",)))], request="park")
    assert await store.signal(claimed.lease.ref, "go", b"1", request="go") == Delivery.WOKEN
    await store.remove(claimed.lease.ref)
    await store.close()
    assert _version(path) == schema.VERSION
    check_file(path)


async def test_a_move_that_an_older_bullpen_began_goes_on(path: Path) -> None:
    """Its table of arrivals knows nothing of signals; the older one may still have the file open and write there."""
    store = SqliteStore(path)
    await store.open()
    await store.begin_move("work", Move(origin="old", run="old", last_id=9, paused=False))
    db = sqlite3.connect(path)
    db.executescript(
        "ALTER TABLE arrival DROP COLUMN signals; INSERT INTO arrival(queue, id) SELECT queue, '1' FROM move"
    )
    await store.begin_move("work", Move(origin="old", run="new", last_id=9, paused=False))
    db.execute("INSERT INTO arrival(queue, id) SELECT queue, '2' FROM move")
    db.commit()
    db.close()
    saved = [_saved("1"), _saved("2"), _saved("3")]
    assert await store.restore("work", Cargo(jobs=tuple(saved)), run="new") == 1
    assert await store.counts("work") == Counts(waiting=1)
    await store.close()


def _saved(job_id: str) -> SavedJob:
    record = JobRecord(JobRef("work", job_id), "one", b"{}", State.WAITING, JobSpec())
    return SavedJob(record, entered_ms=1, signals=(Signal("approved", b"1"),))


async def test_a_migration_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await _add_one(path)
    before = path.read_bytes()
    with monkeypatch.context() as newer:
        newer.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, "CREATE TABLE extra(a); CREATE TABLE job(a)"))
        newer.setattr(schema, "VERSION", schema.VERSION + 1)
        with pytest.raises(StoreUnavailable, match="job already exists"):
            await SqliteStore(path).open()
    assert path.read_bytes() == before
    store = SqliteStore(path)
    await store.open()
    assert (await Queue(store, "work").counts()).waiting == 1
    await store.close()


# ── closing and opening again ────────────────────────────────────────────────────────────


async def test_everything_is_there_after_opening_again(path: Path) -> None:
    """Jobs in every state, logs, events, counters, the pause and remembered ids."""
    clock = ManualClock()
    store = SqliteStore(path, clock=clock)
    await store.open()
    queue = Queue(store, "work", clock=clock)
    await queue.add("done", id="done")
    await queue.add("gone", id="gone", keep_completed=keep(0))
    claimed = await store.claim({"work": 2}, worker="w", lease_ms=30_000, request="1")
    await store.settle([Settlement(one.lease, Completed(b"7")) for one in claimed.jobs], request="2")
    await queue.add("held", id="held")
    await store.claim({"work": 1}, worker="w", lease_ms=30_000, request="3")
    await queue.add("first", id="first", priority=3)
    await queue.add("plain", id="plain")
    await queue.add("later", id="later", delay=60)
    await queue.job("plain").log("a line")
    await queue.pause()
    states = ("completed", "active", "waiting", "prioritized", "delayed")
    before = {state: (await queue.jobs(state)).jobs for state in states}
    counts = await queue.counts()
    events = await store.events("work", after=FROM_START, limit=1_000, timeout_ms=0)
    await store.close()

    store = SqliteStore(path, clock=clock)
    await store.open()
    queue = Queue(store, "work", clock=clock)
    assert {state: (await queue.jobs(state)).jobs for state in states} == before
    assert all(len(jobs) == 1 for jobs in before.values())
    assert await queue.counts() == counts
    assert counts.paused
    assert await store.events("work", after=FROM_START, limit=1_000, timeout_ms=0) == events
    assert await queue.job("plain").logs() == ("a line",)
    assert (await queue.add("gone", id="gone")).outcome == "duplicate"
    fresh = await queue.add("new")
    assert int(fresh.id) > 6
    await store.close()
    check_file(path)


async def test_a_clean_close_leaves_no_side_files(path: Path) -> None:
    """Only the locks of turns and the empty folder of presences stay; the log is folded into the file."""
    stores = [SqliteStore(path), SqliteStore(path)]
    for store in stores:
        await store.open()
        await Queue(store, "work").add("one")
    for store in stores:
        await store.close()
    left = {entry.name for entry in path.parent.iterdir()}
    assert left == {"queue.db", "queue.db-turn", "queue.db-next", "queue.db-live"}
    assert list((path.parent / "queue.db-live").iterdir()) == []


async def test_closing_twice_and_using_a_closed_store(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await Queue(store, "work").add("one")
    await store.close()
    await store.close()
    for asked in (Queue(store, "work").add("two"), Queue(store, "work").counts()):
        with pytest.raises(StoreUnavailable, match=r"queue\.db: the store is not open"):
            await asked


# ── group commit ─────────────────────────────────────────────────────────────────────────


async def test_what_is_asked_meanwhile_shares_a_commit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the turn is another's, a hundred adds gather; they take two commits at most, and each its own answer."""
    sizes: list[int] = []
    commit = Writer._commit

    def counted(writer: Writer, group: list[Work]) -> News:
        sizes.append(len(group))
        return commit(writer, group)

    store = SqliteStore(path)
    await store.open()
    monkeypatch.setattr(Writer, "_commit", counted)
    turn = TurnLock(path)
    turn.take()
    adds = [asyncio.ensure_future(store.add([NewJob("work", f"job {n}")], request=f"{n}")) for n in range(100)]
    await asyncio.sleep(0)  # each of them reaches the writer's inbox
    turn.give()
    answers = await asyncio.gather(*adds)
    turn.close()
    assert len(sizes) <= 2
    assert sum(sizes) == 100
    ids = [added.id for (added,) in answers]
    assert len(set(ids)) == 100
    names = {job.id: job.name for job in (await store.jobs("work", State.WAITING, limit=200)).jobs}
    assert [names[job_id] for job_id in ids] == [f"job {n}" for n in range(100)]
    await store.close()
