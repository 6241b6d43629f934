"""Cancelling running jobs of each kind, from another process."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from bullpen import Context, FailureKind, JobFailed, Queue, Store, Worker, WorkerOptions, in_process
from bullpen.job.verdicts import Settlement
from bullpen.queue.job import Job
from bullpen.stores.base import Exchanged, Notice
from tests.support.around import StoreAround
from tests.worker import in_other_process
from tests.worker.conftest import StartWorker
from tests.worker.waiting import until

_CANCEL = """
import asyncio, sys
from bullpen import Queue
from bullpen.settings import store_from

async def main(job_id):
    store = store_from()
    await store.open()
    print(await Queue(store, "work").job(job_id).cancel("changed my mind"))
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def cancel_from_another_process(job: Job[Any]) -> str:
    command = [sys.executable, "-c", _CANCEL, job.id]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


async def assert_cancelled(job: Job[Any]) -> None:
    """Within two seconds, on a machine that is not busy with other tests."""
    with pytest.raises(JobFailed, match="cancelled: changed my mind"):
        await job.result(10)
    record = await job.record()
    assert record.failure is not None
    assert record.failure.kind == FailureKind.CANCELLED


async def test_an_async_handler_is_interrupted_at_its_await(queue: Queue, start_worker: StartWorker) -> None:
    started, tidied_up = asyncio.Event(), asyncio.Event()

    async def wait(ctx: Context) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            tidied_up.set()

    start_worker({"work": wait})
    job = await queue.add("wait", attempts=3)
    await started.wait()
    assert await cancel_from_another_process(job) == "cancelling"
    await assert_cancelled(job)
    assert tidied_up.is_set()


async def test_a_thread_that_looks_stops(queue: Queue, start_worker: StartWorker) -> None:
    started, told = threading.Event(), threading.Event()

    def look(ctx: Context) -> None:
        started.set()
        while not ctx.cancelled:
            told.wait(0.01)
        ctx.check_cancelled()

    start_worker({"work": look})
    job = await queue.add("look")
    await asyncio.to_thread(started.wait)
    await cancel_from_another_process(job)
    await assert_cancelled(job)


async def test_a_thread_that_does_not_look_keeps_its_slot_and_is_listed(
    queue: Queue, store: Store, start_worker: StartWorker
) -> None:
    """Nothing can end a thread: the job goes on, and whoever lists the workers sees it stuck."""
    started, let_go = threading.Event(), threading.Event()

    def ignore(ctx: Context) -> str:
        started.set()
        let_go.wait(60)
        return "I finished anyway"

    start_worker({"work": ignore}, WorkerOptions(lease=1))
    job = await queue.add("ignore")
    await asyncio.to_thread(started.wait)
    await cancel_from_another_process(job)
    workers = await until(store.workers, lambda workers: any(worker.stuck for worker in workers))
    assert workers[0].stuck == (job.ref,)
    let_go.set()
    assert await job.result(60) == "I finished anyway"


async def test_a_process_that_blocks_is_killed(queue: Queue, start_worker: StartWorker) -> None:
    start_worker({"work": in_process(in_other_process.block)})
    job = await queue.add("block")
    await until(job.logs, lambda lines: lines == ("blocking",))
    await cancel_from_another_process(job)
    await assert_cancelled(job)


async def test_a_waiting_job_is_cancelled_at_once(queue: Queue) -> None:
    job = await queue.add("wait")
    assert await cancel_from_another_process(job) == "cancelled"
    await assert_cancelled(job)


async def test_a_full_worker_hears_of_a_cancellation(queue: Queue, start_worker: StartWorker) -> None:
    """Also when every slot is taken and it claims nothing."""
    started = asyncio.Event()

    async def wait(ctx: Context) -> None:
        started.set()
        await asyncio.Event().wait()

    start_worker({"work": wait}, WorkerOptions(concurrency=1))
    job = await queue.add("wait")
    await started.wait()
    await cancel_from_another_process(job)
    await assert_cancelled(job)


class LateAnswers(StoreAround):
    """Holds back the answer to a claim until the worker was told of a cancellation."""

    def __init__(self, inner: Store, told: threading.Event) -> None:
        super().__init__(inner)
        self._told = told

    def another(self) -> "LateAnswers":
        return LateAnswers(self.inner.another(), self._told)

    async def exchange(self, settlements: Sequence[Settlement], wants: Mapping[str, int], **rest: Any) -> Exchanged:
        answer = await self.inner.exchange(settlements, wants, **rest)
        if answer.claimed.jobs:
            await until(self._was_told, bool)
        return answer

    async def notices(self, worker: str, *, timeout_ms: int) -> Sequence[Notice]:
        notices = await self.inner.notices(worker, timeout_ms=timeout_ms)
        if notices:
            self._told.set()
        return notices

    async def _was_told(self) -> bool:
        return self._told.is_set()


async def test_a_cancellation_that_overtakes_the_claim_s_answer_is_not_lost(queue: Queue) -> None:
    """The worker hears of it before it knows that it has the job."""

    async def wait(ctx: Context) -> None:
        await asyncio.Event().wait()

    worker = Worker(LateAnswers(queue.store, threading.Event()), {"work": wait})
    working = asyncio.create_task(worker.run())
    job = await queue.add("wait")
    await until(queue.counts, lambda counts: counts.active == 1)
    await job.cancel("changed my mind")
    await assert_cancelled(job)
    worker.stop()
    await working
