"""Durable steps as a handler uses them, on each store."""

import asyncio
import dataclasses
from datetime import timedelta

import pytest

from bullpen import (
    BadStep,
    Bullpen,
    Call,
    Context,
    Delivery,
    EntryKind,
    EntryState,
    FailureKind,
    JobFailed,
    Postpone,
    State,
    StepFailed,
    StepRetry,
    Unrecoverable,
    WaitTimeout,
    WorkerOptions,
    fixed,
)
from bullpen.job.verdicts import Completed, Failed, Parked, Postponed, Retry
from bullpen.testing import Drained, ManualClock, run_until_empty
from tests.journal import elsewhere


def verdicts(report: Drained) -> list[type]:
    return [type(run.verdict) for run in report.runs]


async def test_a_finished_step_is_not_done_again(pen: Bullpen) -> None:
    """A job that failed after a step gets the step's result when it is tried again."""
    calls: list[str] = []

    async def charge(amount: int) -> dict[str, int]:
        calls.append("charge")
        return {"charged": amount}

    @pen.job(attempts=2)
    async def order(ctx: Context, amount: int) -> dict[str, int]:
        receipt: dict[str, int] = await ctx.step("charge", charge, amount)
        if ctx.attempt == 1:
            raise ConnectionError("later")
        return receipt

    job = await order.add(amount=5)
    report = await run_until_empty(pen)
    assert verdicts(report) == [Retry, Completed]
    assert (await job.result(), calls) == ({"charged": 5}, ["charge"])


async def test_a_step_may_be_a_plain_function_a_lambda_or_async(pen: Bullpen) -> None:
    """Whatever it is, it is called in its way, and plain ones do not hold the event loop."""

    async def fetch(n: int) -> int:
        return n

    @pen.job
    async def order(ctx: Context) -> list[int]:
        return [await ctx.step("a", fetch, 1), await ctx.step("b", int, "2"), await ctx.step("c", lambda: fetch(3))]

    job = await order.add()
    await run_until_empty(pen)
    assert await job.result() == [1, 2, 3]


async def test_a_result_is_the_same_at_first_and_from_the_record(pen: Bullpen) -> None:
    """It is what JSON carries, or the type that was asked for; never one thing now and another later."""

    @dataclasses.dataclass
    class Receipt:
        amount: int

    seen: list[object] = []

    @pen.job(attempts=2)
    async def order(ctx: Context) -> None:
        seen.append(await ctx.step("plain", lambda: Receipt(1)))
        seen.append(await ctx.step("typed", lambda: Receipt(2), returns=Receipt))
        if ctx.attempt == 1:
            raise ConnectionError

    await order.add()
    await run_until_empty(pen)
    assert seen == [{"amount": 1}, Receipt(2)] * 2


async def test_a_step_key_is_the_same_in_every_attempt(pen: Bullpen) -> None:
    """A step that was interrupted hands the same key to whatever it calls; each step has its own."""
    keys: list[str] = []

    @pen.job(attempts=2)
    async def order(ctx: Context) -> None:
        def call() -> None:
            keys.append(ctx.step_key)
            if len(keys) == 1:
                raise ConnectionError

        await ctx.step("one", call)
        await ctx.step("two", call)

    await order.add()
    await run_until_empty(pen)
    assert keys[0] == keys[1] != keys[2]
    assert keys[0].startswith("default/1@")


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


# ── a program that no longer fits ────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "then,now,why",
    [
        ("charge", "bill", "step 0 was the step 'charge', and the program asks for the step 'bill'"),
        ("sleep", "charge", "step 0 was the sleep 'sleep', and the program asks for the step 'charge'"),
        ("charge", "nothing", "step 1 was the step 'charge', and the program ends before it"),
    ],
)
async def test_a_program_that_no_longer_fits_is_parked(
    pen: Bullpen, clock: ManualClock, then: str, now: str, why: str
) -> None:
    """It is not failed: the note names the place and both steps, and a program that fits goes on."""
    version = then

    @pen.job
    async def order(ctx: Context) -> str:
        match version:
            case "sleep":
                await ctx.sleep(60)
            case "nothing":
                await ctx.step("charge", str)
            case name:
                await ctx.step(name, str)
                await ctx.step("charge", str)
        if ctx.epoch == 1:
            raise Postpone(3_600)
        return version

    job = await order.add()
    await run_until_empty(pen)
    version = now
    await job.promote()
    await run_until_empty(pen)
    record = await job.record()
    assert (record.state, record.note) == (State.DELAYED, f"the program no longer fits its journal: {why}")
    version = then
    await job.promote()
    await run_until_empty(pen, clock=clock)
    assert await job.result() == then


# ── where and how ────────────────────────────────────────────────────────────────────────


async def test_a_step_inside_a_step_is_refused(pen: Bullpen) -> None:
    """Its place would be gone once the outer one is on record."""

    @pen.job
    async def order(ctx: Context) -> None:
        async def outer() -> None:
            await ctx.step("inner", str)

        await ctx.step("outer", outer)

    job = await order.add()
    await run_until_empty(pen)
    with pytest.raises(JobFailed, match="a step cannot ask for steps"):
        await job.result()


async def test_steps_are_refused_where_they_cannot_be(pen: Bullpen) -> None:
    """In a batch, in a process of its own, and without a function: BadStep, which fails the job at once."""

    @pen.job(queue="batch")
    async def batched(ctx: Context) -> None: ...

    @batched.batch(1)
    async def all_of(calls: list[Call]) -> list[None]:
        await calls[0].context.step("charge", str)
        return [None]

    @pen.job(queue="wrong", attempts=3)
    async def wrong(ctx: Context) -> None:
        await ctx.step("charge", "not a function")  # type: ignore[call-overload]  # wrong on purpose

    jobs = [await batched.add(), await wrong.add()]
    await run_until_empty(pen, queues=["batch", "wrong"])
    with elsewhere.pen.using(pen.store):
        jobs.append(await elsewhere.ask_for_a_step.add())
        await run_until_empty(elsewhere.pen)
    for job, why in zip(jobs, ["worker's own process", "is not callable", "worker's own process"], strict=True):
        with pytest.raises(JobFailed, match=why):
            await job.result()


async def test_a_journal_has_a_limit(pen: Bullpen) -> None:
    """One step too many, or one too large, fails the job with an error that says so."""

    @pen.job(attempts=3)
    async def order(ctx: Context, size: int, count: int) -> None:
        for n in range(count):
            await ctx.step(f"step {n}", lambda: "x" * size)

    many = await order.add(size=1, count=4)
    large = await order.add(size=700, count=3)
    one = await order.add(size=2_000, count=1)
    options = WorkerOptions(max_journal_entries=3, max_journal_bytes=2_000, max_result_bytes=1_000)
    report = await run_until_empty(pen, options=options)
    assert verdicts(report) == [Failed] * 3
    for job, why in ((many, "would be step 4"), (large, "over 2,000 bytes"), (one, "2,002 bytes as JSON")):
        with pytest.raises(JobFailed, match=why):
            await job.result()


async def test_kinds_and_times_are_on_record(pen: Bullpen, clock: ManualClock) -> None:
    """The journal says what each step was, when it began and when it ended."""

    @pen.job
    async def order(ctx: Context) -> None:
        async def slow() -> None:
            clock.forward(2)

        await ctx.step("slow", slow)
        await ctx.sleep(60, name="cool down")
        await ctx.wait_for("go")

    job = await order.add()
    start = clock.now_ms()
    await job.signal("go")
    await run_until_empty(pen, clock=clock)
    told = [
        (one.kind, one.name, one.started_ms - start, one.ended_ms and one.ended_ms - start)
        for one in await job.journal()
    ]
    assert told == [
        (EntryKind.STEP, "slow", 0, 2_000),
        (EntryKind.SLEEP, "cool down", 2_000, 0),
        (EntryKind.WAIT, "go", 62_000, 62_000),
    ]


def test_a_key_is_there_only_inside_a_step() -> None:
    from bullpen.testing import test_context as context

    with pytest.raises(BadStep):
        _ = context().step_key
