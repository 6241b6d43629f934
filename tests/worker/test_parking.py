"""Parked jobs and a real worker, in real time."""

import asyncio

from bullpen import Context, CrashKind, CrashLimits, Queue, SqliteStore, State, WorkerOptions
from tests.worker.conftest import StartWorker
from tests.worker.waiting import until


async def test_a_worker_with_one_slot_serves_others_while_jobs_wait(queue: Queue, start_worker: StartWorker) -> None:
    """Those who wait for a signal hold no slot; each goes on when its own comes."""

    async def handle(ctx: Context) -> object:
        if ctx.name == "quick":
            return "quick"
        return await ctx.wait_for("go")

    waiting = [await queue.add("slow") for _ in range(3)]
    quick = await queue.add("quick")
    start_worker({"work": handle}, WorkerOptions(concurrency=1))
    assert await quick.result(timeout=60) == "quick"
    await until(queue.counts, lambda counts: counts.delayed == 3)
    for n, job in enumerate(waiting):
        await job.signal("go", n)
    assert [await job.result(timeout=60) for job in waiting] == [0, 1, 2]


async def test_a_sleep_ends_by_itself(queue: Queue, start_worker: StartWorker) -> None:
    async def handle(ctx: Context) -> str:
        await ctx.sleep(0.05)
        return "awake"

    job = await queue.add("sleeper")
    start_worker({"work": handle})
    assert await job.result(timeout=60) == "awake"


async def test_a_worker_that_lost_its_job_records_no_more(
    queue: Queue, store: SqliteStore, start_worker: StartWorker
) -> None:
    """A handler whose job was taken away is stopped at its next record, whatever it catches."""
    taken, reached = asyncio.Event(), asyncio.Event()
    after: list[str] = []

    async def handle(ctx: Context) -> str:
        if ctx.epoch > 1:
            return "the other one"
        reached.set()
        await taken.wait()
        try:
            await ctx.step("late", str)
        except Exception:
            after.append("caught")
        after.append("went on")
        return "the first one"

    job = await queue.add("one")
    start_worker({"work": handle}, WorkerOptions(concurrency=2))
    await reached.wait()
    (worker,) = await until(store.workers, lambda workers: len(workers) == 1)
    await store.report_crash(worker.name, CrashKind.KILLED, limits=CrashLimits())
    assert await job.result(timeout=60) == "the other one"
    taken.set()
    await asyncio.sleep(0)
    await until(store.workers, lambda workers: not any(one.running for one in workers))
    assert after == []
    assert await job.journal() == []
    assert (await job.record()).state == State.COMPLETED
