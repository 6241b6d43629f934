"""`run_until_empty`: what it runs, in which order, and what it leaves behind."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from bullpen import (
    BadHandler,
    BadOption,
    Bullpen,
    Context,
    State,
    fixed,
)
from bullpen.job.verdicts import Completed, Retry
from bullpen.testing import ManualClock, run_until_empty
from tests.support.drained import verdicts
from tests.testing import elsewhere

MINUTE_MS = 60_000


async def test_it_runs_what_waits_in_order_and_reports_it(pen: Bullpen) -> None:
    """A report has each run with its job, its verdict and the result as the hint says."""

    @pen.job
    async def double(ctx: Context, n: int) -> tuple[int, int]:
        return n, 2 * n

    jobs = [await double.add(n=n) for n in range(3)]
    report = await run_until_empty(pen)
    assert [run.ref for run in report.runs] == [job.ref for job in jobs]
    assert [run.result for run in report.runs] == [(0, 0), (1, 2), (2, 4)]
    assert report.of(double) == report.of("double") == report.completed == report.runs
    assert [await job.result() for job in jobs] == [run.result for run in report.runs]


async def test_an_app_with_nothing_to_do_gives_an_empty_report(pen: Bullpen) -> None:
    @pen.job
    async def idle(ctx: Context) -> None: ...

    assert len(await run_until_empty(pen)) == 0


async def test_jobs_that_jobs_add_run_too(pen: Bullpen) -> None:
    """Both ways: added by the handler itself, and with its completion."""

    @pen.job(queue="a")
    async def first(ctx: Context) -> None:
        await second.add(by="add")
        ctx.then(second.prepare(by="then"))

    @pen.job(queue="b")
    def second(ctx: Context, by: str) -> str:
        return by

    await first.add()
    report = await run_until_empty(pen)
    assert [run.result for run in report.of(second)] == ["add", "then"]


async def test_queues_take_turns(pen: Bullpen) -> None:
    @pen.job(queue="a")
    async def one(ctx: Context) -> None: ...

    @pen.job(queue="b")
    async def other(ctx: Context) -> None: ...

    for job_type in (other, other, one, one):
        await job_type.add()
    assert [run.ref.queue for run in (await run_until_empty(pen)).runs] == ["a", "b", "a", "b"]


async def test_only_the_queues_that_are_named(pen: Bullpen) -> None:
    @pen.job(queue="a")
    async def one(ctx: Context) -> None: ...

    @pen.job(queue="b")
    async def other(ctx: Context) -> None: ...

    await one.add()
    await other.add()
    assert [run.name for run in (await run_until_empty(pen, queues=["b"])).runs] == ["other"]
    assert (await pen.queue("a").counts()).prioritized == 1


async def test_delayed_jobs_are_left_alone(pen: Bullpen) -> None:
    """Without a clock no time passes: neither a delay nor a backoff ends."""

    @pen.job(attempts=2, backoff=fixed(60))
    async def flaky(ctx: Context) -> None:
        raise ConnectionError("away")

    await flaky.add()
    await flaky.options(delay=5).add()
    report = await run_until_empty(pen)
    assert verdicts(report) == [Retry]
    assert report.delayed == 2
    assert str(report).endswith("\n1 run, 2 jobs still delayed")


async def test_a_clock_is_moved_to_each_due_time(pen: Bullpen, bullpen_clock: ManualClock) -> None:
    """Delays, backoffs and postponements pass at once, each at its own time."""
    start_ms = bullpen_clock.now_ms()
    seen: list[int] = []

    @pen.job(attempts=3, backoff=fixed(60))
    async def flaky(ctx: Context) -> str:
        seen.append(bullpen_clock.now_ms() - start_ms)
        if ctx.attempt < 3:
            raise ConnectionError("away")
        return "at last"

    await flaky.options(delay=30).add()
    report = await run_until_empty(pen, clock=bullpen_clock)
    assert seen == [30_000, 90_000, 150_000]
    assert verdicts(report) == [Retry, Retry, Completed]
    assert report.delayed == 0


async def test_delayed_jobs_can_be_included_without_a_clock(pen: Bullpen, bullpen_clock: ManualClock) -> None:
    """They run in the order of their due times, and no time passes."""
    start_ms = bullpen_clock.now_ms()

    @pen.job(queue="a")
    async def late(ctx: Context) -> None: ...

    @pen.job(queue="b", attempts=2, backoff=fixed(60))
    async def soon(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise ConnectionError("away")

    await late.options(delay=3600).add()
    await soon.options(delay=5).add()
    report = await run_until_empty(pen, include_delayed=True)
    assert [(run.name, run.attempt) for run in report.runs] == [("soon", 1), ("soon", 2), ("late", 1)]
    assert bullpen_clock.now_ms() == start_ms


async def test_a_clock_that_the_store_does_not_know_is_refused(pen: Bullpen) -> None:
    """It would be moved in vain."""
    with pytest.raises(BadOption, match="another clock"):
        await run_until_empty(pen, clock=ManualClock())


async def test_a_paused_queue_stays_as_it_is(pen: Bullpen, bullpen_clock: ManualClock) -> None:
    @pen.job
    async def held(ctx: Context) -> None: ...

    await held.options(delay=5).add()
    await pen.queue("default").pause()
    assert len(await run_until_empty(pen, clock=bullpen_clock)) == 0


async def test_jobs_without_end_are_an_error(pen: Bullpen) -> None:
    """A job that adds itself must not hang the test; what was claimed last is handed back."""

    @pen.job
    async def again(ctx: Context) -> None:
        ctx.then(again.prepare())

    await again.add()
    with pytest.raises(AssertionError, match="10 runs and still more to do"):
        await run_until_empty(pen, limit=10)
    counts = await pen.queue("default").counts()
    assert (counts.active, counts.prioritized) == (0, 1)


async def test_a_job_that_nobody_handles_is_an_error(pen: Bullpen) -> None:
    @pen.job(queue="mail")
    async def known(ctx: Context) -> None: ...

    await pen.open()
    await pen.queue("mail").add("unknown")
    with pytest.raises(BadHandler, match="no job type 'unknown' on queue 'mail', which has known"):
        await run_until_empty(pen)
    assert (await pen.queue("mail").counts()).waiting == 1


async def test_check_raises_with_the_stack_of_what_failed(pen: Bullpen) -> None:
    @pen.job
    async def broken(ctx: Context, ok: bool) -> None:
        if not ok:
            raise ValueError("this is why")

    await broken.add(ok=True)
    report = await run_until_empty(pen)
    assert report.check() is report
    await broken.add(ok=False)
    with pytest.raises(AssertionError) as raised:
        (await run_until_empty(pen)).check()
    assert "1 of 1 runs failed for good" in str(raised.value)
    assert 'raise ValueError("this is why")' in str(raised.value)


async def test_a_cancelled_drain_hands_its_job_back(pen: Bullpen) -> None:
    """When the test itself is stopped, no lease and no task is left."""
    started = asyncio.Event()

    @pen.job
    async def hang(ctx: Context) -> None:
        started.set()
        await asyncio.Event().wait()

    job = await hang.add()
    draining = asyncio.create_task(run_until_empty(pen))
    await started.wait()
    draining.cancel()
    with pytest.raises(asyncio.CancelledError):
        await draining
    record = await job.record()
    assert (record.state, record.attempts_made) == (State.PRIORITIZED, 0)


async def test_threads_end_with_the_drain(pen: Bullpen) -> None:
    names: list[str] = []

    @pen.job
    def plain(ctx: Context) -> None:
        names.append(threading.current_thread().name)

    await plain.add()
    await run_until_empty(pen)
    for thread in threading.enumerate():
        if thread.name == names[0]:
            thread.join(10)
    assert names[0] not in {thread.name for thread in threading.enumerate()}


async def test_processes_work_too(bullpen_use: Callable[[Bullpen], Bullpen]) -> None:
    """A job type that runs in a process of its own is drained like any other."""
    bullpen_use(elsewhere.pen)
    await elsewhere.process_id.add()
    (run,) = (await run_until_empty(elsewhere.pen)).check().runs
    assert run.result != elsewhere.OUR_PROCESS


async def test_a_skipped_job_reports_what_is_there(pen: Bullpen) -> None:
    """Its result is None, though the hint says otherwise."""

    @pen.job(skip_if=lambda n: n == 1)
    async def count(ctx: Context, n: int) -> int:
        return n

    await count.add(n=1)
    assert [run.result for run in (await run_until_empty(pen)).completed] == [None]
