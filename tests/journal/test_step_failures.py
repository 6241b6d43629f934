"""Steps that fail: attempts of their own, failures on record, and retries by hand."""

import asyncio

import pytest

from bullpen import (
    Bullpen,
    Context,
    EntryState,
    FailureKind,
    JobFailed,
    Postpone,
    StepFailed,
    StepRetry,
    Unrecoverable,
    fixed,
)
from bullpen.job.verdicts import Completed, Failed, Parked, Postponed, Retry
from bullpen.testing import ManualClock, run_until_empty
from tests.support.drained import verdicts


async def test_without_a_policy_a_failure_is_the_job_s(pen: Bullpen) -> None:
    """The error itself is raised, nothing is recorded, and the job's attempts go on."""
    tries: list[int] = []

    @pen.job(attempts=3)
    async def order(ctx: Context) -> None:
        def call() -> None:
            tries.append(1)
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await ctx.step("call", call)
        await ctx.step("call again", call)

    job = await order.add()
    report = await run_until_empty(pen)
    assert verdicts(report) == [Retry, Retry, Failed]
    assert (len(tries), await job.journal()) == (6, [])


async def test_a_step_has_attempts_of_its_own(pen: Bullpen, clock: ManualClock) -> None:
    """It is tried again after its backoff while the job is parked; the job's attempts are not used."""
    tries: list[int] = []

    @pen.job
    async def order(ctx: Context) -> str:
        def call() -> str:
            tries.append(clock.now_ms())
            if len(tries) < 3:
                raise ConnectionError("busy")
            return "ok"

        answer: str = await ctx.step("call", call, retry=StepRetry(attempts=3, backoff=fixed(60)))
        return answer

    job = await order.add()
    start = clock.now_ms()
    report = await run_until_empty(pen, clock=clock)
    assert verdicts(report) == [Parked, Parked, Completed]
    assert [at - start for at in tries] == [0, 60_000, 120_000]
    (entry,) = await job.journal()
    assert (entry.state, entry.attempts, (await job.record()).attempts_made) == (EntryState.DONE, 3, 1)


async def test_a_step_that_failed_for_good_is_on_record(pen: Bullpen, clock: ManualClock) -> None:
    """StepFailed is raised now and in every later attempt, so that what the program did about it stays right."""
    tries: list[int] = []

    @pen.job
    async def order(ctx: Context) -> str:
        def call() -> None:
            tries.append(1)
            raise ConnectionError("busy")

        try:
            await ctx.step("call", call, retry=2)
        except StepFailed as failed:
            await ctx.sleep(60)
            return f"{failed.step}: {failed}"
        return ""

    job = await order.add()
    await run_until_empty(pen, clock=clock)
    assert await job.result() == "call: step 'call' was tried 2 times: busy"
    assert len(tries) == 2


@pytest.mark.parametrize("by", ["job", "dead letters"])
async def test_a_retry_by_hand_tries_a_step_again_that_failed_last(pen: Bullpen, clock: ManualClock, by: str) -> None:
    """A dead letter is retried with its journal: what is done stays done, what it failed of has another chance."""
    works = False
    done: list[str] = []

    @pen.job(attempts=5)
    async def order(ctx: Context) -> str:
        def call() -> str:
            if not works:
                raise ConnectionError("busy")
            return "ok"

        await ctx.step("first", done.append, "first")
        answer: str = await ctx.step("call", call, retry=StepRetry(attempts=2, backoff=fixed(0)))
        return answer

    job = await order.add()
    report = await run_until_empty(pen, clock=clock)
    assert verdicts(report) == [Failed]
    with pytest.raises(JobFailed) as failed:
        await job.result()
    assert getattr(failed.value.failure, "kind", None) == FailureKind.UNRECOVERABLE
    works = True
    if by == "job":
        await job.retry()
    else:
        assert await pen.dead_letters.retry() == 1
    await run_until_empty(pen, clock=clock)
    assert (await job.result(), done) == ("ok", ["first"])


async def test_an_error_that_cannot_be_mended_is_not_tried_again(pen: Bullpen) -> None:
    tries: list[int] = []

    @pen.job
    async def order(ctx: Context) -> None:
        def call() -> None:
            tries.append(1)
            raise Unrecoverable("card declined")

        await ctx.step("call", call, retry=5)

    await order.add()
    assert verdicts(await run_until_empty(pen)) == [Failed]
    assert len(tries) == 1


async def test_a_step_that_takes_too_long_fails(pen: Bullpen) -> None:
    @pen.job
    async def order(ctx: Context) -> None:
        await ctx.step("call", asyncio.sleep, 60, timeout=0.01)

    job = await order.add()
    await run_until_empty(pen)
    with pytest.raises(JobFailed, match=r"step 'call' took longer than 0\.01 s"):
        await job.result()


async def test_a_postponement_inside_a_step_is_the_job_s(pen: Bullpen) -> None:
    """Signals that steer a job do so from inside a step too."""

    @pen.job
    async def order(ctx: Context) -> None:
        def call() -> None:
            raise Postpone(60)

        await ctx.step("call", call, retry=5)

    await order.add()
    assert verdicts(await run_until_empty(pen)) == [Postponed]
