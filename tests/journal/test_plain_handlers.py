"""Durable steps of plain functions, which run in threads."""

import threading

import pytest

from bullpen import Bullpen, Context, JobFailed, State, StepFailed
from bullpen.job.verdicts import Completed, Failed, Parked, Retry
from bullpen.testing import ManualClock, run_until_empty
from tests.support.drained import verdicts


async def test_a_plain_handler_has_the_same_steps(pen: Bullpen, clock: ManualClock) -> None:
    """It blocks where an async one awaits; functions run in its own thread, and are not called again."""
    threads: list[tuple[int, int]] = []

    @pen.job(attempts=2)
    def order(ctx: Context) -> list[object]:
        def charge(amount: int) -> int:
            threads.append((threading.get_ident(), here))
            assert ctx.step_key
            return amount

        async def fetch() -> str:
            return "fetched"

        here = threading.get_ident()
        charged = ctx.sync.step("charge", charge, 5)
        ctx.sync.sleep(60)
        if ctx.attempt == 1:
            raise ConnectionError
        return [charged, ctx.sync.step("fetch", fetch), ctx.sync.wait_for("approved")]

    job = await order.add()
    assert verdicts(await run_until_empty(pen, clock=clock)) == [Parked, Retry, Parked]
    await job.signal("approved", True)
    await run_until_empty(pen, clock=clock)
    assert await job.result() == [5, "fetched", True]
    assert len(threads) == 1
    assert threads[0][0] == threads[0][1]


async def test_a_plain_saga_is_undone(pen: Bullpen, clock: ManualClock) -> None:
    told: list[str] = []

    @pen.job
    def order(ctx: Context, fails: bool) -> str:
        def ship() -> None:
            if fails:
                raise ConnectionError("no truck")

        with ctx.sync.saga() as saga:
            saga.step("reserve", lambda: "r-1", undo=told.append)
            ctx.sync.sleep(60)
            saga.step("ship", ship)
        return "done"

    good, bad = await order.add(fails=False), await order.add(fails=True)
    report = await run_until_empty(pen, clock=clock)
    assert sorted(map(str, verdicts(report))) == sorted(map(str, [Parked, Parked, Completed, Failed]))
    assert (await good.result(), told) == ("done", ["r-1"])
    with pytest.raises(JobFailed, match="no truck; undone: 'reserve'"):
        await bad.result()


async def test_a_step_of_a_plain_handler_has_its_own_attempts(pen: Bullpen, clock: ManualClock) -> None:
    @pen.job
    def order(ctx: Context) -> str:
        def fail() -> None:
            raise ConnectionError("busy")

        try:
            ctx.sync.step("call", fail, retry=2)
        except StepFailed as failed:
            return str(failed)
        return ""

    job = await order.add()
    assert verdicts(await run_until_empty(pen, clock=clock)) == [Parked, Completed]
    assert await job.result() == "step 'call' was tried 2 times: busy"


async def test_each_way_of_asking_is_for_its_kind_of_handler(pen: Bullpen) -> None:
    """BadStep says which one to use."""

    @pen.job(queue="plain")
    def plain(ctx: Context) -> None:
        ctx.step("charge", str)

    @pen.job(queue="async")
    async def asynchronous(ctx: Context) -> None:
        ctx.sync.step("charge", str)

    @pen.job(queue="nested")
    def nested(ctx: Context) -> None:
        ctx.sync.step("outer", lambda: ctx.sync.step("inner", str))

    jobs = [await plain.add(), await asynchronous.add(), await nested.add()]
    await run_until_empty(pen)
    for job, why in zip(jobs, ["by ctx.sync.step", "would block this event loop", "cannot ask for steps"], strict=True):
        assert (await job.record()).state == State.FAILED
        with pytest.raises(JobFailed, match=why):
            await job.result()
