"""Handlers that block the event loop, for a while and for ever."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator

import pytest

from bullpen import Context, FailureKind, JobFailed, Queue, State, Store, Supervisor, WorkerOptions
from tests.worker.conftest import StartWorker
from tests.worker.waiting import until


async def test_a_blocking_handler_keeps_its_job_and_is_named(queue: Queue, start_worker: StartWorker) -> None:
    """Blocked for three lease times: nobody rescues the job though two look; its log says who blocked, and where."""

    async def resize(ctx: Context) -> int:
        time.sleep(1.5)
        return ctx.epoch

    options = WorkerOptions(lease=0.5, block_warning=0.3)
    start_worker({"work": resize}, options)
    start_worker({"work": resize}, options)
    job = await queue.add("resize")
    assert await job.result(60) == 1
    assert (await job.record()).crashes == {}
    lines = await until(job.logs, lambda lines: any("event loop blocked" in line for line in lines))
    assert all("resize(), test_blocking.py:" in line for line in lines)


@pytest.mark.parametrize(
    "queue_name, data", [("work", {"how": "block for ever"}), ("threads", {"how": "never return"})]
)
async def test_a_handler_that_blocks_for_ever_is_ended_and_its_process_replaced(
    store: Store, queue_name: str, data: dict[str, str]
) -> None:
    """The job fails by its timeout; the same supervisor's next process does the next job."""
    queue = Queue(store, queue_name)
    supervisor = Supervisor("tests.worker.fleet:make_misbehaving_worker", processes=1)
    running = asyncio.create_task(supervisor.run())
    good = await queue.add("good", {"how": "well"})
    first_pid = await good.result(60)
    bad = await queue.add("bad", data, timeout=0.5)
    with pytest.raises(JobFailed, match="timed out"):
        await bad.result(60)
    record = await bad.record()
    assert record.failure is not None
    assert (record.failure.kind, record.attempts_made, record.crashes) == (FailureKind.TIMEOUT, 1, {})
    await until(lambda: _value(supervisor.replaced), lambda replaced: replaced == 1)
    good = await queue.add("good", {"how": "well"})
    assert await good.result(60) not in (first_pid, os.getpid())
    supervisor.stop()
    await running


@contextlib.asynccontextmanager
async def supervised() -> AsyncIterator[Supervisor]:
    supervisor = Supervisor("tests.worker.fleet:make_misbehaving_worker", processes=1)
    running = asyncio.create_task(supervisor.run())
    try:
        yield supervisor
    finally:
        supervisor.stop()
        await running


async def test_a_cancel_ends_a_handler_that_blocks_the_loop(queue: Queue) -> None:
    """Long before its timeout; what else its process was at is done by the next one."""
    other = await queue.add("other", {"how": "wait"})
    bad = await queue.add("bad", {"how": "block for ever"})
    async with supervised() as supervisor:
        await until(bad.record, lambda record: record.state == State.ACTIVE)
        await bad.cancel("changed my mind")
        with pytest.raises(JobFailed, match="cancelled: changed my mind"):
            await bad.result(10)
        await until(lambda: _value(supervisor.replaced), lambda replaced: replaced == 1)
        await until(other.record, lambda record: record.state == State.ACTIVE)
        await other.cancel()
    assert (await other.record()).crashes == {}


async def test_what_had_ended_when_the_loop_was_blocked_is_settled_before_its_process_ends(queue: Queue) -> None:
    """Its verdict could not leave any more."""
    done = await queue.add("done", {"how": "end when told"})
    bad = await queue.add("bad", {"how": "tell, then block for ever"}, timeout=3)
    async with supervised():
        with pytest.raises(JobFailed, match="timed out"):
            await bad.result(20)
        await done.result(20)
    record = await done.record()
    assert (record.crashes, record.epoch) == ({}, 1)


async def test_a_process_is_not_ended_at_once_for_a_loop_that_only_lags(queue: Queue, store: Store) -> None:
    """A thread that goes on after its time has it replaced, once its other jobs are done."""
    async with supervised():
        lagging = await queue.add("lagging", {"how": "lag"})
        bad = await Queue(store, "threads").add("bad", {"how": "never return"}, timeout=0.5)
        with pytest.raises(JobFailed, match="timed out"):
            await bad.result(20)
        await lagging.result(20)
    record = await lagging.record()
    assert (record.crashes, record.epoch) == ({}, 1)


async def _value(value: int) -> int:
    return value
