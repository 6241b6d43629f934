"""Durable steps as a handler uses them, on each store."""

import dataclasses

import pytest

from bullpen import BadStep, Bullpen, Call, Context, EntryKind, JobFailed, Postpone, State, WorkerOptions
from bullpen.job.verdicts import Completed, Failed, Retry
from bullpen.testing import ManualClock, run_until_empty
from tests.journal import elsewhere
from tests.support.drained import verdicts


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
