"""Stopping a worker: what is quick finishes, the rest is handed back whole."""

import asyncio
import contextlib
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from bullpen import Context, CrashKind, Ended, Queue, State, Store, StoreTooNew, StoreUnavailable, Worker, WorkerOptions
from bullpen.stores.base import Notice, WorkerInfo, WorkerState
from bullpen.stores.sqlite import schema
from tests.support.around import StoreAround
from tests.support.places import only_on_sqlite
from tests.worker.conftest import StartWorker
from tests.worker.waiting import until


async def until_begun(folder: Path, count: int) -> None:
    """The handlers are at work: a claim whose answer is still on its way would be handed back."""

    async def look() -> int:
        return len(list(folder.iterdir()))

    await until(look, lambda seen: seen == count)


async def test_sigterm_with_twenty_running_jobs(queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten finish within the grace period; ten are waiting again, no attempt burnt, and another worker does them."""
    monkeypatch.setenv("FLEET_GRACE", "5")
    go = tmp_path / "go"
    begun = tmp_path / "begun"
    begun.mkdir()
    quick = [await queue.add("quick", {"until": str(go), "begun": str(begun)}) for _ in range(10)]
    slow = [await queue.add("slow", {"slow": True, "begun": str(begun)}) for _ in range(10)]
    command = [sys.executable, "-m", "bullpen.worker.process", "tests.worker.fleet:make_worker"]
    process = subprocess.Popen(command)
    try:
        await until_begun(begun, 20)
        process.send_signal(signal.SIGTERM)
        go.touch()
        assert await asyncio.to_thread(process.wait, 60) == 0
    finally:
        process.kill()
        process.wait()
    assert [(await job.record()).state for job in quick] == [State.COMPLETED] * 10
    for job in slow:
        record = await job.record()
        assert (record.state, record.attempts_made, record.stalls) == (State.WAITING, 0, 0)
        assert record.crashes == {CrashKind.DEPLOY: 1}

    async def finish(ctx: Context) -> int:
        return ctx.attempt

    second = Worker(queue.store, {"work": finish})
    working = asyncio.create_task(second.run())
    assert [await job.result(60) for job in slow] == [1] * 10
    second.stop()
    assert await working == Ended.STOPPED


async def test_a_second_signal_hurries(queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET_GRACE", "600")
    begun = tmp_path / "begun"
    begun.mkdir()
    job = await queue.add("slow", {"slow": True, "begun": str(begun)})
    command = [sys.executable, "-m", "bullpen.worker.process", "tests.worker.fleet:make_worker"]
    process = subprocess.Popen(command)
    try:
        await until_begun(begun, 1)

        async def ended_by_one_more() -> int | None:
            """One that comes within a second of the first is the same one, heard again."""
            process.send_signal(signal.SIGTERM)
            return process.poll()

        assert await until(ended_by_one_more, lambda code: code is not None) == 0
    finally:
        process.kill()
        process.wait()
    assert (await job.record()).state == State.WAITING


async def test_a_thread_that_ignores_the_stop_does_not_hold_the_worker(queue: Queue, start_worker: StartWorker) -> None:
    import threading

    started, let_go = threading.Event(), threading.Event()

    def ignore(ctx: Context) -> None:
        started.set()
        let_go.wait(60)

    worker = Worker(queue.store, {"work": ignore}, WorkerOptions(grace=0))
    working = asyncio.create_task(worker.run())
    job = await queue.add("ignore")
    await asyncio.to_thread(started.wait)
    worker.stop()
    await working
    assert (await job.record()).state == State.WAITING
    let_go.set()


async def test_a_cancelled_run_hands_its_jobs_back(queue: Queue) -> None:
    """Whoever embeds a worker may cancel its task: nothing stays claimed."""
    started = asyncio.Event()

    async def wait(ctx: Context) -> None:
        started.set()
        await asyncio.Event().wait()

    worker = Worker(queue.store, {"work": wait})
    working = asyncio.create_task(worker.run())
    job = await queue.add("wait")
    await started.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    record = await job.record()
    assert (record.state, record.attempts_made) == (State.WAITING, 0)


async def test_states_are_listed(queue: Queue, store: Store) -> None:
    started, let_go = asyncio.Event(), asyncio.Event()

    async def wait(ctx: Context) -> None:
        started.set()
        await let_go.wait()

    worker = Worker(store, {"work": wait}, WorkerOptions(concurrency=7))
    assert worker.info().state == WorkerState.INITIALIZING
    working = asyncio.create_task(worker.run())
    await until(store.workers, lambda workers: bool(workers) and workers[0].state == WorkerState.READY)
    job = await queue.add("wait")
    await started.wait()
    assert worker.state == WorkerState.PROCESSING
    worker.stop()
    workers = await until(store.workers, lambda workers: workers[0].state == WorkerState.DRAINING)
    assert (workers[0].queues, workers[0].running) == ({"work": 7}, (job.ref,))
    let_go.set()
    await working
    assert (await store.workers())[0].state == WorkerState.STOPPED


async def test_stopping_twice_is_safe(store: Store) -> None:
    async def never(ctx: Context) -> None: ...

    worker = Worker(store, {"work": never})
    worker.stop()
    worker.stop_now()
    assert await worker.run() == Ended.STOPPED


@only_on_sqlite
async def test_a_worker_ends_when_the_file_becomes_too_new(queue: Queue, tmp_path: Path) -> None:
    """No waiting can help an old worker beside a newer file: it says so and ends."""
    seen = asyncio.Event()

    async def notice(ctx: Context) -> None:
        seen.set()

    worker = Worker(queue.store, {"work": notice})
    working = asyncio.create_task(worker.run())
    await queue.add("notice")
    await seen.wait()
    await until(queue.counts, lambda counts: counts.completed == 1)
    with contextlib.closing(sqlite3.connect(tmp_path / "queue.db")) as newer:
        newer.execute("PRAGMA user_version = 999")
    with pytest.raises(StoreTooNew):
        await asyncio.wait_for(working, 60)
    with contextlib.closing(sqlite3.connect(tmp_path / "queue.db")) as newer:
        newer.execute(f"PRAGMA user_version = {schema.VERSION}")


class _Deaf(StoreAround):
    """Its second beat hangs, and whoever cancels that gets an error instead: as a driver in trouble does."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._beats = 0

    def another(self) -> "_Deaf":
        return _Deaf(self.inner.another())

    async def beat(self, info: WorkerInfo, *, ttl_ms: int) -> None:
        self._beats += 1
        if self._beats == 2:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise StoreUnavailable("the connection was lost") from None
        await self.inner.beat(info, ttl_ms=ttl_ms)


async def test_a_store_that_swallows_a_cancellation_does_not_keep_it(store: Store) -> None:
    worker = Worker(_Deaf(store), {"work": lambda _: None}, WorkerOptions(name="deaf"))
    running = asyncio.create_task(worker.run())
    await until(store.workers, bool)
    worker.stop()
    async with asyncio.timeout(60):
        assert await running == Ended.STOPPED


class _Broken(StoreAround):
    """What the lease thread asks breaks in a way that nobody thought of, once a job is at work."""

    def __init__(self, inner: Store, breaks: threading.Event) -> None:
        super().__init__(inner)
        self._breaks = breaks

    def another(self) -> "_Broken":
        return _Broken(self.inner.another(), self._breaks)

    async def notices(self, worker: str, *, timeout_ms: int) -> Sequence[Notice]:
        if self._breaks.is_set():
            raise ArithmeticError("broken")
        return await self.inner.notices(worker, timeout_ms=50)


async def test_a_worker_whose_lease_thread_failed_finishes_what_it_has(queue: Queue) -> None:
    breaks, let_go = threading.Event(), asyncio.Event()

    async def wait(ctx: Context) -> str:
        breaks.set()
        await let_go.wait()
        return "finished"

    worker = Worker(_Broken(queue.store, breaks), {"work": wait})
    running = asyncio.create_task(worker.run())  # awaited below
    job = await queue.add("wait")

    async def state() -> WorkerState:
        return worker.state

    await until(state, lambda state: state == WorkerState.DRAINING, 20)
    worker._failed_on_a_trip(job.ref)  # as a lane may say at this moment
    let_go.set()
    async with asyncio.timeout(20):
        assert await running == Ended.RECYCLED
    assert await job.result(20) == "finished"
