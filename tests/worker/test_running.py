"""What becomes of a job, by what its handler does."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

import pytest

from bullpen import (
    Context,
    CrashKind,
    FailureKind,
    JobFailed,
    Queue,
    State,
    WorkerOptions,
    in_process,
)
from tests.worker import in_other_process
from tests.worker.conftest import StartWorker
from tests.worker.waiting import until


async def test_an_async_handler_returns_its_result(queue: Queue, start_worker: StartWorker) -> None:
    async def double(ctx: Context) -> int:
        await asyncio.sleep(0)
        return int(ctx.data["n"]) * 2

    start_worker({"work": double})
    job = await queue.add("double", {"n": 21})
    assert await job.result(60) == 42


async def test_a_sync_handler_runs_in_a_thread(queue: Queue, start_worker: StartWorker) -> None:
    def where(ctx: Context) -> bool:
        return threading.current_thread() is threading.main_thread()

    start_worker({"work": where})
    job = await queue.add("where")
    assert await job.result(60) is False


async def test_sync_handlers_run_side_by_side(queue: Queue, start_worker: StartWorker) -> None:
    """As many threads as slots: each waits for the other, so one after the other would never end."""
    both = threading.Barrier(2, timeout=60)

    start_worker({"work": lambda ctx: both.wait() >= 0}, WorkerOptions(concurrency=2))
    jobs = [await queue.add("meet"), await queue.add("meet")]
    assert [await job.result(60) for job in jobs] == [True, True]


async def test_a_process_handler_runs_in_another_process(queue: Queue, start_worker: StartWorker) -> None:
    import os

    start_worker({"work": in_process(in_other_process.describe)})
    job = await queue.add("describe", {"n": 3})
    result = await job.result(60)
    assert result["n"] == 3
    assert result["pid"] != os.getpid()
    assert await job.logs() == ("hello from the other process",)
    assert (await job.record()).progress == b'{"done":1}'


async def test_a_process_handler_s_error_is_told_with_its_stack(queue: Queue, start_worker: StartWorker) -> None:
    start_worker({"work": in_process(in_other_process.fail)})
    job = await queue.add("fail")
    with pytest.raises(JobFailed, match="no such luck"):
        await job.result(60)
    record = await job.record()
    assert record.failure is not None
    assert record.failure.type == "LookupError"
    assert "in fail" in record.stacks[0]


async def test_a_process_that_dies_is_a_crash_not_an_attempt(queue: Queue, start_worker: StartWorker) -> None:
    """A segfault is counted by its kind until the limit, whatever attempts there are."""
    start_worker({"work": in_process(in_other_process.die)}, WorkerOptions(max_stalled=1))
    job = await queue.add("die", attempts=5)
    with pytest.raises(JobFailed, match="lost its worker 2 times"):
        await job.result(60)
    record = await job.record()
    assert record.failure is not None
    assert (record.failure.kind, record.attempts_made) == (FailureKind.STALLED, 0)
    assert record.crashes == {CrashKind.KILLED: 2}
    assert await job.logs() == ("its process was ended by SIGSEGV",) * 2


async def test_a_job_nobody_handles_is_parked(queue: Queue, start_worker: StartWorker) -> None:
    """It is delayed, says why, and its attempts are whole."""

    async def known(ctx: Context) -> None: ...

    start_worker({"work": {"known": known}})
    job = await queue.add("unknown")
    record = await until(job.record, lambda record: record.state == State.DELAYED)
    assert record.note == "no handler for 'unknown' on this worker"
    assert record.attempts_made == 0


async def test_follow_up_jobs_come_with_the_completion(queue: Queue, start_worker: StartWorker) -> None:
    async def first(ctx: Context) -> None:
        ctx.then(queue.prepare("second", {"after": ctx.id}, id="follow-up"))

    async def second(ctx: Context) -> str:
        return str(ctx.data["after"])

    start_worker({"work": {"first": first, "second": second}})
    job = await queue.add("first")
    await job.result(60)
    assert await queue.job("follow-up").result(60) == job.id


async def test_words_reach_the_store_before_the_verdict(queue: Queue, start_worker: StartWorker) -> None:
    async def talk(ctx: Context) -> None:
        ctx.log("one")
        ctx.progress(50)
        ctx.log("two")

    start_worker({"work": talk})
    job = await queue.add("talk")
    await job.result(60)
    assert await job.logs() == ("one", "two")
    assert (await job.record()).progress == b"50"


async def test_an_async_handler_is_timed_out_at_its_await(queue: Queue, start_worker: StartWorker) -> None:
    async def slow(ctx: Context) -> None:
        await asyncio.Event().wait()

    start_worker({"work": slow})
    job = await queue.add("slow", timeout=0.05)
    with pytest.raises(JobFailed, match=r"timed out after 0\.05 s"):
        await job.result(60)
    record = await job.record()
    assert record.failure is not None
    assert (record.failure.kind, record.attempts_made) == (FailureKind.TIMEOUT, 1)


async def test_a_process_is_killed_at_its_timeout(queue: Queue, start_worker: StartWorker) -> None:
    start_worker({"work": in_process(in_other_process.block)})
    job = await queue.add("block", timeout=0.5)
    with pytest.raises(JobFailed, match="timed out"):
        await job.result(60)


async def test_a_thread_that_looks_stops_at_its_timeout(queue: Queue, start_worker: StartWorker) -> None:
    def polite(ctx: Context) -> None:
        while True:
            ctx.check_cancelled()
            time.sleep(0.001)

    start_worker({"work": polite})
    job = await queue.add("polite", timeout=0.05)
    with pytest.raises(JobFailed, match="timed out"):
        await job.result(60)


async def test_slots_are_not_exceeded(queue: Queue, start_worker: StartWorker) -> None:
    running = peak = 0

    async def count(ctx: Context) -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0.001)
        running -= 1

    start_worker({"work": count}, WorkerOptions(concurrency=3))
    jobs = await queue.add_bulk([queue.prepare("count") for _ in range(50)])
    for job in jobs:
        await job.result(60)
    assert peak == 3


async def test_one_worker_serves_several_queues(queue: Queue, start_worker: StartWorker) -> None:
    other = Queue(queue.store, "other")

    async def name_of_queue(ctx: Context) -> str:
        return ctx.job.queue

    start_worker({"work": name_of_queue, "other": name_of_queue}, WorkerOptions(concurrency={"work": 1, "other": 2}))
    assert await (await queue.add("x")).result(60) == "work"
    assert await (await other.add("x")).result(60) == "other"


async def test_a_paused_worker_leaves_jobs_to_others(queue: Queue, start_worker: StartWorker) -> None:
    """Also one that comes in the very moment, which may have been on its way to the paused one."""

    def on(name: str) -> Callable[[Context], Awaitable[str]]:
        async def work(ctx: Context) -> str:
            return name

        return work

    paused = start_worker({"work": on("paused")}, WorkerOptions(name="paused"))
    assert await (await queue.add("x")).result(60) == "paused"
    paused.pause()
    job = await queue.add("x")
    other = start_worker({"work": on("other")}, WorkerOptions(name="other"))
    assert await job.result(60) == "other"
    assert ((await job.record()).attempts_made, (await job.record()).stalls) == (1, 0)
    other.pause()
    job = await queue.add("x")
    paused.resume()
    assert await job.result(60) == "paused"
