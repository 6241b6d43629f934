"""Durable steps of a handler that a test calls itself."""

import pytest

from bullpen import Context, JobRef, SagaFailed, StepRetry, WaitTimeout, fixed
from bullpen.testing import test_context as context


async def order(ctx: Context, amount: int) -> list[object]:
    charged = await ctx.step("charge", lambda: {"amount": amount, "key": ctx.step_key})
    await ctx.sleep(3_600)
    approval = await ctx.wait_for("approved", timeout=60)
    await ctx.signal("mail", "7", "paid")
    return [charged["amount"], approval, *await ctx.parallel(ctx.step("a", str, 1), ctx.step("b", str, 2))]


async def test_steps_run_in_a_direct_call() -> None:
    """A sleep takes no time, and a signal that the test gave is there."""
    ctx = context(signals={"approved": {"by": "ada"}})
    assert await order(ctx, 5) == [5, {"by": "ada"}, "1", "2"]
    assert ctx.sent_signals == [(JobRef("mail", "7"), "paid", None)]


async def test_a_signal_that_was_not_given_times_out_or_is_asked_for() -> None:
    """With a timeout the handler sees WaitTimeout; without one the test is told what to give."""
    with pytest.raises(WaitTimeout):
        await order(context(), 5)

    async def wait(ctx: Context) -> None:
        await ctx.wait_for("approved")

    with pytest.raises(AssertionError, match="waits for 'approved' and would park"):
        await wait(context())


async def test_retries_of_a_step_take_no_time() -> None:
    tries: list[int] = []

    async def flaky(ctx: Context) -> str:
        def call() -> str:
            tries.append(1)
            if len(tries) < 3:
                raise ConnectionError
            return "ok"

        answer: str = await ctx.step("call", call, retry=StepRetry(attempts=3, backoff=fixed(600)))
        return answer

    assert await flaky(context()) == "ok"


async def test_a_saga_is_undone_in_a_direct_call() -> None:
    told: list[str] = []

    async def saga(ctx: Context) -> None:
        async with ctx.saga() as saga:
            await saga.step("reserve", lambda: "r-1", undo=told.append)
            raise ValueError("no stock")

    with pytest.raises(SagaFailed, match="no stock"):
        await saga(context())
    assert told == ["r-1"]
