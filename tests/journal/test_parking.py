"""Steps that park their job: sleeps, waits for signals, and several of them side by side."""

import asyncio
from datetime import timedelta

import pytest

from bullpen import Bullpen, Context, Delivery, JobFailed, State, WaitTimeout
from bullpen.job.verdicts import Completed, Parked
from bullpen.testing import ManualClock, run_until_empty
from tests.support.drained import verdicts

# ── sleeping and waiting ─────────────────────────────────────────────────────────────────


async def test_a_sleep_parks_the_job_for_its_time(pen: Bullpen, clock: ManualClock) -> None:
    """It holds no slot and uses no attempt; what was done before is not done again; `finally` blocks run."""
    done: list[str] = []

    @pen.job
    async def order(ctx: Context) -> int:
        await ctx.step("first", done.append, "first")
        try:
            await ctx.sleep(timedelta(hours=1))
        except Exception:
            done.append("caught")
        finally:
            done.append("finally")
        return ctx.attempt

    job = await order.add()
    await run_until_empty(pen)
    record = await job.record()
    assert (record.state, record.note, record.parked) == (State.DELAYED, "sleeps", ())
    assert record.run_at_ms == clock.now_ms() + 3_600_000
    await run_until_empty(pen, clock=clock)
    assert await job.result() == 1
    assert done == ["first", "finally", "finally"]


async def test_a_job_that_is_woken_too_early_sleeps_on(pen: Bullpen, clock: ManualClock) -> None:
    """A promotion cannot shorten a sleep: its end is on record."""

    @pen.job
    async def order(ctx: Context) -> None:
        await ctx.sleep(60)

    job = await order.add()
    await run_until_empty(pen)
    due = (await job.record()).run_at_ms
    clock.forward(10)
    await job.promote()
    assert verdicts(await run_until_empty(pen)) == [Parked]
    assert (await job.record()).run_at_ms == due


async def test_a_signal_brings_its_payload(pen: Bullpen) -> None:
    """The job waits without a slot until the signal comes; each is received once."""

    @pen.job
    async def order(ctx: Context) -> list[object]:
        return [await ctx.wait_for("approved"), await ctx.wait_for("approved")]

    job = await order.add()
    await run_until_empty(pen)
    record = await job.record()
    assert (record.note, record.parked, record.run_at_ms) == ("waits for 'approved'", ("approved",), None)
    assert await job.signal("approved", {"by": "ada"}) == Delivery.WOKEN
    await run_until_empty(pen)
    assert await job.signal("rejected") == Delivery.KEPT
    assert await job.signal("approved", 2) == Delivery.WOKEN
    await run_until_empty(pen)
    assert await job.result() == [{"by": "ada"}, 2]


async def test_a_signal_that_does_not_come_in_time(pen: Bullpen, clock: ManualClock) -> None:
    """WaitTimeout is on record: a signal that comes later does not change what the program did."""

    @pen.job
    async def order(ctx: Context) -> str:
        try:
            await ctx.wait_for("approved", timeout=60)
        except WaitTimeout as late:
            await ctx.sleep(60)
            return str(late)
        return ""

    job = await order.add()
    report = await run_until_empty(pen, clock=clock)
    assert verdicts(report) == [Parked, Parked, Completed]
    assert await job.result() == "the signal 'approved' did not come in time"


async def test_a_job_signals_to_another(pen: Bullpen) -> None:
    @pen.job(queue="orders")
    async def order(ctx: Context) -> object:
        return await ctx.wait_for("paid")

    @pen.job(queue="payments")
    async def pay(ctx: Context, order_id: str) -> None:
        await ctx.step("tell", ctx.signal, "orders", order_id, "paid", {"amount": 5})

    job = await order.add()
    await run_until_empty(pen)
    await pay.add(order_id=job.id)
    await run_until_empty(pen)
    assert await job.result() == {"amount": 5}


# ── side by side ─────────────────────────────────────────────────────────────────────────


async def test_parallel_steps_have_the_same_places_in_any_order(pen: Bullpen) -> None:
    """Places follow the program, not who ends first."""
    second = asyncio.Event()

    @pen.job(attempts=2)
    async def order(ctx: Context) -> list[str]:
        async def slow() -> str:
            await second.wait()
            return "slow"

        async def quick() -> str:
            second.set()
            return "quick"

        results: list[str] = await ctx.parallel(ctx.step("slow", slow), ctx.step("quick", quick))
        if ctx.attempt == 1:
            raise ConnectionError
        return results

    job = await order.add()
    await run_until_empty(pen)
    assert await job.result() == ["slow", "quick"]
    assert [(entry.place, entry.name) for entry in await job.journal()] == [(0, "slow"), (1, "quick")]


async def test_parallel_waits_for_all_and_raises_the_first_failure(pen: Bullpen) -> None:
    """What could be done is on record, though another step failed."""

    @pen.job
    async def order(ctx: Context) -> None:
        def fail(word: str) -> None:
            raise ValueError(word)

        await ctx.parallel(ctx.step("a", fail, "first"), ctx.step("b", str, 1), ctx.step("c", fail, "second"))

    job = await order.add()
    await run_until_empty(pen)
    with pytest.raises(JobFailed, match="first"):
        await job.result()
    assert [entry.name for entry in await job.journal()] == ["b"]


async def test_parallel_sleeps_and_waits_park_once(pen: Bullpen, clock: ManualClock) -> None:
    """Until the first of the times, for any of the signals."""

    @pen.job
    async def order(ctx: Context) -> list[object]:
        return await ctx.parallel(
            ctx.sleep(60), ctx.wait_for("a", timeout=3_600), ctx.wait_for("b"), ctx.step("now", str, 1)
        )

    job = await order.add()
    await run_until_empty(pen)
    record = await job.record()
    assert (record.parked, record.run_at_ms) == (("a", "b"), clock.now_ms() + 60_000)
    await job.signal("a", 1)
    await job.signal("b", 2)
    await run_until_empty(pen, clock=clock)
    assert await job.result() == [None, 1, 2, "1"]


async def test_a_task_group_around_steps_parks_too(pen: Bullpen, clock: ManualClock) -> None:
    """What a task group makes of a suspension is one still."""

    @pen.job
    async def order(ctx: Context) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_awaited(ctx.sleep(60)))

    job = await order.add()
    assert verdicts(await run_until_empty(pen)) == [Parked]
    await run_until_empty(pen, clock=clock)
    assert (await job.record()).state == State.COMPLETED


async def _awaited(step: object) -> None:
    await step  # type: ignore[misc]  # any awaitable


async def test_a_handler_that_catches_everything_parks_all_the_same(pen: Bullpen) -> None:
    """A suspension that was swallowed must not become a completion."""

    @pen.job
    async def order(ctx: Context) -> None:
        try:
            await ctx.sleep(60)
        except BaseException:
            pass

    await order.add()
    assert verdicts(await run_until_empty(pen)) == [Parked]
