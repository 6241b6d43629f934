"""RemoteWorker: the handlers of any worker, run far from the store."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bullpen.errors import RemoteRefused, Unrecoverable
from bullpen.job.record import FailureKind, JobRecord, JobRef
from bullpen.job.spec import NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Settlement
from bullpen.remote.address import server_address
from bullpen.remote.store import RemoteStore
from bullpen.remote.worker import RemoteWorker
from bullpen.stores.base import SettleOutcome, Store
from bullpen.worker.context import Context
from bullpen.worker.handlers import Handlers
from bullpen.worker.options import WorkerOptions
from tests.remote.serving import QUEUE, Served, serving
from tests.support.places import Place, only_on_sqlite
from tests.worker.waiting import until


@contextlib.asynccontextmanager
async def working(
    served: Served, handlers: Handlers, *, token: str | None = None, **options: Any
) -> AsyncIterator[RemoteWorker]:
    """A remote worker at work; at the end of the block it is told to stop, and has ended."""
    worker = RemoteWorker(served.url, handlers, WorkerOptions(**options), token=token or await served.key())
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop(grace=5)
        await running


@contextlib.asynccontextmanager
async def remote_store(served: Served) -> AsyncIterator[RemoteStore]:
    store = RemoteStore(server_address(served.url, token=await served.key()))
    try:
        yield store
    finally:
        await store.close()


async def ended(store: Store, ref: JobRef) -> JobRecord:
    return await until(lambda: store.job(ref), lambda job: job.state in (State.COMPLETED, State.FAILED))


async def test_a_handler_is_given_what_it_would_get_beside_the_store(served: Served) -> None:
    """Its job and data; what it says and returns reaches the job."""

    async def build(ctx: Context) -> dict[str, Any]:
        ctx.log("begun")
        ctx.progress(40)
        return {"n": ctx.data["n"], "attempt": ctx.attempt, "tenant": ctx.tenant}

    ref = await served.add(tenant="acme")
    async with working(served, {QUEUE: build}):
        job = await ended(served.store, ref)
    assert (job.result, job.progress) == (b'{"n":1,"attempt":1,"tenant":"acme"}', b"40")
    assert (await served.store.logs(ref)).lines == ("begun",)


async def test_jobs_that_end_together_with_large_results_run_once_each(served: Served) -> None:
    """Together they are more than the server takes in one call: they come in several."""
    together = asyncio.Barrier(8)
    begun: list[str] = []

    async def build(ctx: Context) -> str:
        begun.append(ctx.job.id)
        await together.wait()
        return "x" * 200_000

    refs = [await served.add() for _ in range(8)]
    async with working(served, {QUEUE: build}, concurrency=8):
        jobs = [await ended(served.store, ref) for ref in refs]
    assert [(job.state, len(job.result or b"")) for job in jobs] == [(State.COMPLETED, 200_002)] * 8
    assert sorted(begun) == sorted(ref.id for ref in refs)


async def test_a_settlement_in_parts_that_is_sent_again_is_done_once(served: Served) -> None:
    """Each part has a request of its own, the same whenever the whole is sent."""
    refs = [await served.add() for _ in range(4)]
    async with remote_store(served) as store:
        claimed = await store.claim({QUEUE: 4}, worker="far", lease_ms=30_000, request="claim")
        ends = [Settlement(one.lease, Completed(b'"' + b"x" * 200_000 + b'"')) for one in claimed.jobs]
        first = await store.settle(ends, request="settle")
        assert await store.settle(ends, request="settle") == first == [SettleOutcome.SETTLED] * 4
    assert [(await served.store.job(ref)).state for ref in refs] == [State.COMPLETED] * 4


async def test_words_about_a_job_with_a_long_id_reach_it(served: Served) -> None:
    """What names a call has 200 characters at most; an id may have 300."""

    async def build(ctx: Context) -> None:
        ctx.log("begun")
        ctx.progress(40)

    new = NewJob(QUEUE, "build", b"{}", id="j" * 300)
    await served.store.add([new], request="add")
    ref = JobRef(QUEUE, "j" * 300)
    async with working(served, {QUEUE: build}):
        assert (await ended(served.store, ref)).progress == b"40"
    assert (await served.store.logs(ref)).lines == ("begun",)


async def test_plain_functions_run_in_threads(served: Served) -> None:
    def build(ctx: Context) -> str:
        ctx.log("from a thread")
        return ctx.name

    ref = await served.add()
    async with working(served, {QUEUE: build}):
        assert (await ended(served.store, ref)).result == b'"build"'


async def test_errors_are_judged_as_beside_the_store(served: Served) -> None:
    """Attempts are used up, or not, and backoffs kept."""

    async def fail(ctx: Context) -> None:
        raise Unrecoverable("no use") if ctx.name == "final" else ValueError("boom")

    refs = [await served.add("usual", attempts=2), await served.add("final", attempts=2)]
    async with working(served, {QUEUE: fail}):
        usual, final = [await ended(served.store, ref) for ref in refs]
    assert (usual.attempts_made, final.attempts_made) == (2, 1)
    assert usual.failure is not None
    assert (usual.failure.type, usual.failure.kind) == ("ValueError", FailureKind.ERROR)


async def test_a_step_is_done_once_though_the_attempt_fails(served: Served) -> None:
    """Its record is in the store, not on the machine that did it."""
    calls: list[int] = []

    async def charge() -> int:
        calls.append(1)
        return 5

    async def pay(ctx: Context) -> int:
        paid = await ctx.step("charge", charge, returns=int)
        if ctx.attempt == 1:
            raise ValueError("boom")
        return paid

    ref = await served.add(attempts=2)
    async with working(served, {QUEUE: pay}):
        assert (await ended(served.store, ref)).result == b"5"
    assert len(calls) == 1


async def test_a_job_waits_for_a_signal_without_a_slot(served: Served) -> None:
    async def review(ctx: Context) -> Any:
        return await ctx.wait_for("approved")

    ref = await served.add()
    async with working(served, {QUEUE: review}):
        await until(lambda: served.store.job(ref), lambda job: job.parked == ("approved",))
        await served.store.signal(ref, "approved", b'"ann"', request="s")
        assert (await ended(served.store, ref)).result == b'"ann"'


async def test_a_cancelled_job_stops_though_its_handler_waits(served: Served) -> None:
    async def wait(ctx: Context) -> None:
        ctx.progress("waiting")
        await asyncio.Event().wait()

    ref = await served.add()
    async with working(served, {QUEUE: wait}):
        await until(lambda: served.store.job(ref), lambda job: job.progress is not None)
        await served.store.cancel(ref, reason="no more")
        job = await ended(served.store, ref)
    assert job.failure is not None
    assert job.failure.kind == FailureKind.CANCELLED


async def test_a_handler_that_blocks_the_loop_keeps_its_job(served: Served) -> None:
    """Heartbeats come from a thread of their own, for longer than the lease lasts."""

    async def block(_: Context) -> str:
        time.sleep(1.0)  # what a handler must not do, and some do
        return "kept"

    key = await served.key()
    ref = await served.add()
    # In a thread: the server's own loop must not be the one that is blocked.
    worker = RemoteWorker(served.url, {QUEUE: block}, WorkerOptions(lease=0.4), token=key)
    running = asyncio.create_task(asyncio.to_thread(asyncio.run, worker.run()))
    job = await ended(served.store, ref)
    assert worker._loop is not None
    worker._loop.call_soon_threadsafe(worker.stop)
    await running
    assert (job.result, job.stalls, job.epoch) == (b'"kept"', 0, 1)


async def test_what_does_not_finish_in_the_grace_period_is_handed_back(served: Served) -> None:
    """No attempt is used, and nothing is held against the job."""
    started = asyncio.Event()

    async def wait(_: Context) -> None:
        started.set()
        await asyncio.Event().wait()

    ref = await served.add()
    async with working(served, {QUEUE: wait}) as worker:
        await started.wait()
        worker.stop_now()
    job = await served.store.job(ref)
    assert (job.state, job.attempts_made, job.stalls) == (State.WAITING, 0, 0)


async def test_a_server_that_restarts_costs_nothing_but_time(served: Served, place: Place, tmp_path: Path) -> None:
    """The job runs on meanwhile, and is settled with the new one."""
    go_on = asyncio.Event()

    async def wait(_: Context) -> str:
        await go_on.wait()
        return "done"

    ref = await served.add()
    async with serving(place, tmp_path / "records.db") as first:
        port = int(first.url.rpartition(":")[2])
        token = await served.key()
        worker = RemoteWorker(first.url, {QUEUE: wait}, token=token)
        running = asyncio.create_task(worker.run())
        await until(lambda: served.store.job(ref), lambda job: job.state == State.ACTIVE)
    go_on.set()
    async with serving(place, tmp_path / "records.db", port):
        job = await ended(served.store, ref)
        worker.stop()
        await running
    assert (job.result, job.epoch) == (b'"done"', 1)


async def test_a_token_that_is_refused_ends_the_worker(served: Served) -> None:
    """Asking again cannot help, and whoever runs it is to know."""
    worker = RemoteWorker(served.url, {QUEUE: print}, token="bp_none_such")
    with pytest.raises(RemoteRefused, match="no such API key"):
        await worker.run()


@only_on_sqlite
async def test_a_queue_that_the_token_is_not_for_ends_the_worker(served: Served) -> None:
    worker = RemoteWorker(served.url, {QUEUE: print}, token=await served.key(queues=("mail",)))
    with pytest.raises(RemoteRefused, match="not for queue"):
        await worker.run()


@only_on_sqlite
@pytest.mark.parametrize("what", ["then", "children"])
async def test_what_needs_the_store_fails_the_job_and_says_so(served: Served, what: str) -> None:
    async def reach(ctx: Context) -> None:
        if what == "children":
            await ctx.children()
        ctx.then(NewJob(QUEUE, "next"))

    ref = await served.add(attempts=3)
    async with working(served, {QUEUE: reach}):
        job = await ended(served.store, ref)
    assert job.failure is not None
    assert "remote worker" in job.failure.message


@only_on_sqlite
async def test_a_remote_worker_is_listed_as_it_works(served: Served) -> None:
    async with working(served, {QUEUE: print}, name="edge-7"):
        (info,) = await until(served.store.workers, bool)
        assert info.name.startswith("edge-7@key:")
