"""Several processes on one file: nothing is lost between them, and they know of each other."""

import asyncio
import json
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from bullpen import CrashLimits, JobRef, NewJob, Queue, SqliteStore, State
from bullpen.stores.base import Notice
from bullpen.stores.sqlite import looking
from tests.support import programs
from tests.support.programs import command, run, start
from tests.support.sqlite_harness import check_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path)
    await store.open()
    yield store
    await store.close()
    check_file(path)


async def _died(process: asyncio.subprocess.Process) -> None:
    assert await asyncio.wait_for(process.wait(), 30) == -signal.SIGKILL


# ── writing together ─────────────────────────────────────────────────────────────────────


async def test_processes_add_at_the_same_time(path: Path) -> None:
    """Four start on a file that none of them has made yet; each of their adds is there, under an id of its own."""
    printed = await asyncio.gather(*[run(command(programs.add_many, path, 300)) for _ in range(4)])
    ids = [job_id for lines in printed for job_id in lines.split()]
    assert len(set(ids)) == len(ids) == 1_200
    store = SqliteStore(path)
    await store.open()
    queue = Queue(store, "work")
    assert (await queue.counts()).waiting == 1_200
    found = (await queue.jobs(State.WAITING, limit=2_000)).jobs
    assert sorted(job.id for job in found) == sorted(ids)
    assert len({job.data for job in found}) == 4
    await store.close()
    check_file(path)


async def test_a_foreign_write_transaction_only_delays_us(store: SqliteStore, path: Path) -> None:
    """Someone looks into the file by hand and holds its write lock: our add waits for its turn and is made."""
    queue = Queue(store, "work")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    adding = asyncio.create_task(queue.add("one"))
    done, _ = await asyncio.wait({adding}, timeout=0.3)
    assert not done
    other.execute("COMMIT")
    other.close()
    job = await asyncio.wait_for(adding, 60)
    assert (await job.record()).state == State.WAITING


# ── waking each other ────────────────────────────────────────────────────────────────────


async def test_an_add_in_another_process_wakes_us(store: SqliteStore, path: Path) -> None:
    """A sleeping worker does not wait for its time to be over."""
    producer = await start(command(programs.add_when_told, path))
    assert producer.stdin is not None
    assert producer.stdout is not None
    assert await producer.stdout.readline() == b"ready\n"
    before = time.monotonic()
    waiting = asyncio.create_task(store.wait(["work"], timeout_ms=60_000))
    producer.stdin.write(b"now\n")
    assert await waiting is True
    assert time.monotonic() - before < 30
    await producer.communicate()


async def test_an_idle_worker_writes_nothing_for_a_neighbour_s_jobs(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """News from another process are looked into: a claim each time would be a synced write for each of its commits."""
    looked = asyncio.Queue[int | None]()
    look, loop = looking.runnable_from_ms, asyncio.get_running_loop()

    def noted(db: sqlite3.Connection, names: Sequence[str], now_ms: int) -> int | None:
        found = look(db, names, now_ms)
        loop.call_soon_threadsafe(looked.put_nowait, found)
        return found

    monkeypatch.setattr(looking, "runnable_from_ms", noted)
    producer = await start(command(programs.add_when_told, path))
    wants = {"elsewhere": 5}
    waiting = asyncio.create_task(
        store.wait_and_claim(wants, worker="w", lease_ms=30_000, request="r", timeout_ms=60_000)
    )
    async with asyncio.timeout(30):
        assert await looked.get() is None
        before = store._file.writer.commits
        await producer.communicate(b"now\n")
        assert await looked.get() is None
        assert store._file.writer.commits == before
        await Queue(store, "elsewhere").add("one")
        assert len((await waiting).claimed.jobs) == 1


async def test_who_waits_for_cancels_does_not_look_for_a_neighbour_s_jobs(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each worker always waits for cancels: looking at each commit of the others, they would hold each other up."""
    looked = asyncio.Event()
    look, looks = looking.notices, []

    def noted(db: sqlite3.Connection, worker: str) -> list[Notice]:
        looks.append(worker)
        loop.call_soon_threadsafe(looked.set)
        return look(db, worker)

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(looking, "notices", noted)
    producer = await start(command(programs.add_when_told, path))
    start_of_log = (await store.events("work", after=None, limit=1, timeout_ms=0)).cursor
    waiting = asyncio.create_task(store.notices("w", timeout_ms=60_000))
    async with asyncio.timeout(30):
        await looked.wait()
        hearing = asyncio.create_task(store.events("work", after=start_of_log, limit=1, timeout_ms=60_000))
        await producer.communicate(b"now\n")
        assert (await hearing).events
        assert looks == ["w"]
        await store.add([NewJob("work", "two", id="two")], request="add")
        (job,) = (await store.claim({"work": 1}, worker="w", lease_ms=30_000, request="claim")).jobs
        await store.cancel(job.lease.ref, reason="enough")
        assert [notice.reason for notice in await waiting] == ["enough"]


async def test_the_folder_of_presences_may_vanish(store: SqliteStore) -> None:
    """Waking others is a courtesy: an add is made and answered though its way is blocked."""
    folder = store._file.presence.folder
    for entry in folder.iterdir():
        entry.unlink()
    folder.rmdir()
    queue = Queue(store, "work")
    for _ in range(2):
        await asyncio.wait_for(queue.add("one"), 60)
    assert (await queue.counts()).waiting == 2


async def test_an_add_is_answered_though_no_file_handle_is_left(path: Path) -> None:
    assert (await run(command(programs.run_out_of_files, path))).split() == ["2"]


# ── dying ────────────────────────────────────────────────────────────────────────────────


async def test_a_killed_process_is_noticed_at_once(store: SqliteStore, path: Path) -> None:
    """Its lease has an hour to go, but the kernel tells that it is dead; a crash is counted, no attempt."""
    job = await Queue(store, "work").add("one", id="held")
    await _died(await start(command(programs.claim_and_die, path)))
    assert (await job.record()).state == State.ACTIVE
    rescued = await store.rescue(["work"], limits=CrashLimits())
    assert rescued.recovered == (JobRef("work", "held"),)
    record = await job.record()
    assert (record.state, record.crashes, record.attempts_made) == (State.WAITING, {"killed": 1}, 0)


async def test_a_claim_that_was_never_answered_is_no_crash(store: SqliteStore, path: Path) -> None:
    """The process died before it knew of the job, so the job did not kill it."""
    job = await Queue(store, "work").add("one", id="held")
    await _died(await start(command(programs.claim_and_die_before_the_answer, path)))
    assert (await job.record()).state == State.ACTIVE
    rescued = await store.rescue(["work"], limits=CrashLimits(total=0, killed=0))
    assert rescued.recovered == (JobRef("work", "held"),)
    record = await job.record()
    assert (record.state, record.crashes) == (State.WAITING, {})


async def test_what_a_dead_process_left_beside_the_file_is_removed(store: SqliteStore, path: Path) -> None:
    await Queue(store, "work").add("one")
    await _died(await start(command(programs.claim_and_die, path)))
    folder = store._file.presence.folder
    assert len(list(folder.iterdir())) == 4
    await store.rescue(["work"], limits=CrashLimits())
    assert {entry.stem for entry in folder.iterdir()} == {store._file.presence.instance}


async def test_a_live_process_is_left_alone(store: SqliteStore, path: Path) -> None:
    producer = await start(command(programs.add_when_told, path))
    assert producer.stdout is not None
    await producer.stdout.readline()
    entries = set(store._file.presence.folder.iterdir())
    assert (await store.rescue(["work"], limits=CrashLimits())).recovered == ()
    assert set(store._file.presence.folder.iterdir()) == entries
    await producer.communicate(b"now\n")
    assert (await Queue(store, "work").counts()).waiting == 1


# ── forking ──────────────────────────────────────────────────────────────────────────────


async def test_a_forked_child_is_told_that_it_cannot_use_its_parent_s_file(path: Path) -> None:
    """It would write into what its parent believes to be its own; it neither hangs nor does harm."""
    met = json.loads(await run(command(programs.fork_while_open, path)))
    for way in ("write", "read", "open"):
        assert met[way]["code"] == "store-unavailable", way
    assert str(path) in met["open"]["message"]
    assert "forked" in met["open"]["message"]
    assert met["other file"] is None
    store = SqliteStore(path)
    await store.open()
    assert [job.id for job in (await Queue(store, "work").jobs("waiting")).jobs] == ["before-fork", "after-fork"]
    await store.close()
    check_file(path)


async def test_a_file_that_was_closed_before_the_fork_is_free_for_both(path: Path) -> None:
    await run(command(programs.fork_before_open, path))
    store = SqliteStore(path)
    await store.open()
    found = {job.id for job in (await Queue(store, "work").jobs("waiting")).jobs}
    assert found == {"before-fork", "of-the-child", "of-the-parent"}
    await store.close()


async def test_a_killed_process_is_noticed_though_its_forked_child_lives(store: SqliteStore, path: Path) -> None:
    """A child inherits its parent's locks; it must let them go, or the parent would seem to live."""
    await Queue(store, "work").add("one", id="held")
    process = await start(command(programs.claim_and_fork_and_die, path))
    await _died(process)
    rescued = await store.rescue(["work"], limits=CrashLimits())
    assert rescued.recovered == (JobRef("work", "held"),)
    assert process.stdin is not None
    process.stdin.close()
