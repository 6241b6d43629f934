"""A worker and its schedules: each tick adds the next before its handler runs, whoever dies."""

import asyncio
from pathlib import Path

import pytest

from bullpen import Bullpen, Context, Queue, SqliteStore, State, WorkerOptions
from bullpen.errors import BadOption
from bullpen.testing import ManualClock, run_until_empty
from bullpen.worker.worker import Worker
from tests.worker.conftest import StartWorker
from tests.worker.waiting import until


async def test_the_next_tick_is_there_before_the_handler_runs(queue: Queue, start_worker: StartWorker) -> None:
    seen: asyncio.Queue[tuple[str, list[str]]] = asyncio.Queue()

    async def look(ctx: Context) -> None:
        pending = [job.id for job in (await queue.jobs(State.DELAYED)).jobs]
        await seen.put((ctx.id, pending))

    start_worker({"work": look})
    await queue.schedules.upsert("s", "sweep", every=0.2)
    ticks: list[str] = []
    for _ in range(3):
        tick, pending = await asyncio.wait_for(seen.get(), 60)
        assert len(pending) == 1
        assert pending[0] not in [*ticks, tick]
        ticks.append(tick)
    times = [int(tick.rpartition(":")[2]) for tick in ticks]
    assert times == sorted(set(times))
    assert {(later - times[0]) % 200 for later in times} == {0}


async def test_a_tick_is_skipped_while_the_one_before_runs(queue: Queue, start_worker: StartWorker) -> None:
    """Visible and not failed: completed, with a line in its log; the schedule counts it."""
    started, go_on = asyncio.Event(), asyncio.Event()
    runs: list[str] = []

    async def slow(ctx: Context) -> str:
        runs.append(ctx.id)
        started.set()
        await go_on.wait()
        return "ran"

    start_worker({"work": slow})
    await queue.schedules.upsert("s", "sweep", every=0.1)
    await asyncio.wait_for(started.wait(), 60)
    await until(lambda: queue.schedules.get("s"), lambda record: record.skipped >= 2)
    assert len(runs) == 1
    skipped = await until(lambda: queue.jobs(State.COMPLETED), lambda page: len(page.jobs) >= 2)
    job = queue.job(skipped.jobs[0].id)
    assert (await job.record()).result == b"null"
    assert await job.logs() == (f"skipped: {runs[0]} still runs",)
    await queue.schedules.pause("s")
    go_on.set()
    assert await queue.job(runs[0]).result(60) == "ran"


async def test_ticks_overlap_where_that_is_allowed(queue: Queue, start_worker: StartWorker) -> None:
    running: set[str] = set()
    two, go_on = asyncio.Event(), asyncio.Event()

    async def slow(ctx: Context) -> None:
        running.add(ctx.id)
        if len(running) == 2:
            two.set()
        await go_on.wait()

    start_worker({"work": slow})
    await queue.schedules.upsert("s", "sweep", every=0.1, overlap="allow")
    await asyncio.wait_for(two.wait(), 60)
    go_on.set()


async def test_a_retry_waits_for_the_tick_that_runs(queue: Queue, start_worker: StartWorker) -> None:
    """To skip it would hide that its first attempt failed."""
    first_failed, second_runs, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    ends: list[str] = []

    async def work(ctx: Context) -> None:
        if ctx.attempt == 1 and not first_failed.is_set():
            first_failed.set()
            raise ConnectionError("no")
        if not second_runs.is_set():
            second_runs.set()
            await go_on.wait()
        ends.append(ctx.id)

    start_worker({"work": work})
    await queue.schedules.upsert("s", queue.prepare("sweep", attempts=2, backoff=0.5), every=0.1, limit=2)
    await asyncio.wait_for(second_runs.wait(), 60)
    await until(
        lambda: queue.jobs(State.DELAYED), lambda page: any(job.note and "still runs" in job.note for job in page.jobs)
    )
    go_on.set()
    await until(queue.counts, lambda counts: counts.completed == 2)
    assert len(ends) == 2


async def test_a_replica_may_be_forbidden_to_add_ticks(
    queue: Queue, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs what is there; another one, that may, goes on with the schedule."""

    async def work(ctx: Context) -> None: ...

    monkeypatch.setenv("BULLPEN_CRON_ENABLED", "0")
    start_worker({"work": work})
    await queue.schedules.upsert("s", "sweep", every=0.1)
    await until(queue.counts, lambda counts: counts.completed == 1)
    (idle,) = await queue.store.idle_schedules(["work"])
    assert (idle.ticks, (await queue.counts()).unfinished) == (1, 0)
    monkeypatch.setenv("BULLPEN_CRON_ENABLED", "1")
    start_worker({"work": work})
    await until(queue.counts, lambda counts: counts.completed >= 3)


def test_the_variable_is_checked(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_CRON_ENABLED", "perhaps")
    with pytest.raises(BadOption, match="BULLPEN_CRON_ENABLED"):
        Worker(store, {"work": print}, WorkerOptions())


async def test_an_application_schedules_its_job_types(tmp_path: Path) -> None:
    """Tests of users drain ticks like other jobs, with a clock that is moved to each."""
    clock = ManualClock()
    pen = Bullpen(SqliteStore(tmp_path / "jobs.db", clock=clock))
    ran: list[str] = []

    @pen.job(queue="reports")
    async def report(ctx: Context, kind: str = "short") -> None:
        ran.append(kind)

    async with pen:
        await pen.schedule("nightly", report, cron="0 3 * * *", tz="Europe/Berlin", limit=2)
        record = await pen.schedule("weekly", report.prepare(kind="long"), cron="0 9 * * 1", limit=1)
        assert record.schedule.spec.priority == 5
        drained = await run_until_empty(pen, clock=clock)
        assert sorted(ran) == ["long", "short", "short"]
        assert len(drained.check().runs) == 3
        assert [one.ended for one in await pen.queue("reports").schedules.list()] == [True, True]
