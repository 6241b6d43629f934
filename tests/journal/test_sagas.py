"""Sagas: all done, or all that was done undone, wherever the process dies."""

import itertools

import pytest

from bullpen import (
    Bullpen,
    Context,
    EntryKind,
    FailureKind,
    JobCancelled,
    JobFailed,
    Postpone,
    SagaFailed,
    State,
    StepFailed,
    StepRetry,
    WorkerOptions,
    fixed,
)
from bullpen.job.verdicts import Completed, Failed, Parked, Postponed
from bullpen.testing import ManualClock, run_until_empty
from tests.journal.conftest import AnyHarness
from tests.journal.crashing import Destination, Fuse, run_to_end
from tests.support.drained import verdicts

NAMES = ("reserve", "charge", "ship", "mail")


async def test_a_saga_that_ends_well_undoes_nothing(pen: Bullpen) -> None:
    told: list[str] = []

    @pen.job
    async def order(ctx: Context) -> list[str]:
        async with ctx.saga() as saga:
            a: str = await saga.step("reserve", lambda: "r-1", undo=told.append)
            b: str = await saga.step("charge", lambda: "c-1", undo=told.append)
        return [a, b]

    job = await order.add()
    await run_until_empty(pen)
    assert (await job.result(), told) == (["r-1", "c-1"], [])


async def test_a_failure_undoes_backwards_what_was_done(pen: Bullpen) -> None:
    """Each undo gets its step's result; steps without one, and the one that failed, are passed over."""
    told: list[str] = []

    @pen.job(attempts=3)
    async def order(ctx: Context) -> None:
        def fail() -> None:
            raise ConnectionError("no truck")

        async with ctx.saga() as saga:
            await saga.step("reserve", lambda: "r-1", undo=told.append)
            await saga.step("look up", lambda: "x")
            await saga.step("charge", lambda: "c-1", undo=told.append)
            await saga.step("ship", fail, undo=told.append)

    job = await order.add()
    assert verdicts(await run_until_empty(pen)) == [Failed]
    assert told == ["c-1", "r-1"]
    with pytest.raises(JobFailed, match="no truck; undone: 'charge', 'reserve'"):
        await job.result()
    kinds = [(entry.kind, entry.name) for entry in await job.journal()]
    assert kinds[-3:] == [(EntryKind.TURN, "saga"), (EntryKind.UNDO, "charge"), (EntryKind.UNDO, "reserve")]


async def test_the_error_of_a_saga_is_the_same_in_every_attempt(pen: Bullpen, clock: ManualClock) -> None:
    """A handler may catch it and go on, also after it slept: SagaFailed, with what it failed of."""

    @pen.job
    async def order(ctx: Context) -> list[object]:
        try:
            async with ctx.saga() as saga:
                await saga.step("reserve", str, undo=str)
                raise KeyError("between two steps")
        except SagaFailed as failed:
            await ctx.sleep(60)
            return [str(failed), getattr(failed.failure, "type", None)]

    job = await order.add()
    await run_until_empty(pen, clock=clock)
    assert await job.result() == ["'between two steps'; undone: 'reserve'", "KeyError"]


async def test_a_saga_that_turned_back_does_not_go_forward_again(pen: Bullpen, clock: ManualClock) -> None:
    """Code between steps that raised once need not do so again: the turn is on record."""
    runs = itertools.count(1)
    told: list[str] = []

    @pen.job
    async def order(ctx: Context) -> None:
        def release(_: object) -> None:
            told.append("released")
            if len(told) == 1:
                raise ConnectionError

        async with ctx.saga() as saga:
            await saga.step("reserve", str, undo=release, undo_retry=StepRetry(attempts=2, backoff=fixed(60)))
            if next(runs) == 1:
                raise ConnectionError("for once")
            await saga.step("charge", told.append, "charged")

    job = await order.add()
    assert verdicts(await run_until_empty(pen, clock=clock)) == [Parked, Failed]
    assert told == ["released", "released"]
    with pytest.raises(JobFailed, match="for once; undone: 'reserve'"):
        await job.result()


async def test_an_undo_that_fails_for_good_parks_the_job(pen: Bullpen, clock: ManualClock) -> None:
    """Half undone is no end: the note says what is to be mended, and a promotion goes on from there."""
    works = False
    told: list[str] = []

    @pen.job
    async def order(ctx: Context) -> None:
        def refund(charge: str) -> None:
            if not works:
                raise ConnectionError("the bank is closed")
            told.append(charge)

        async with ctx.saga() as saga:
            await saga.step("reserve", lambda: "r-1", undo=told.append)
            await saga.step("charge", lambda: "c-1", undo=refund, undo_retry=1)
            raise ValueError("no stock")

    job = await order.add()
    assert verdicts(await run_until_empty(pen, clock=clock)) == [Parked]
    record = await job.record()
    assert (record.state, record.run_at_ms) == (State.DELAYED, None)
    assert record.note == "undo of 'charge' failed as often as it may: the bank is closed"
    works = True
    await job.promote()
    assert verdicts(await run_until_empty(pen)) == [Failed]
    assert told == ["c-1", "r-1"]


async def test_what_leaves_for_now_undoes_nothing(pen: Bullpen, clock: ManualClock) -> None:
    """A sleep, a wait and a postponement in a saga are not its failure."""
    told: list[str] = []

    @pen.job
    async def order(ctx: Context) -> str:
        async with ctx.saga() as saga:
            await saga.step("reserve", str, undo=told.append)
            if ctx.epoch == 1:
                raise Postpone(1)
            await ctx.sleep(60)
            answer: str = await ctx.wait_for("approved")
        return answer

    job = await order.add()
    await job.signal("approved", "yes")
    assert verdicts(await run_until_empty(pen, clock=clock)) == [Postponed, Parked, Completed]
    assert (await job.result(), told) == ("yes", [])


async def test_a_step_that_failed_may_have_another_way(pen: Bullpen) -> None:
    """Who catches a failure inside the saga goes on forward."""
    told: list[str] = []

    @pen.job
    async def order(ctx: Context) -> str:
        def fail() -> None:
            raise ConnectionError

        async with ctx.saga() as saga:
            try:
                await saga.step("by truck", fail, undo=told.append)
            except StepFailed:
                return str(await saga.step("by ship", lambda: "ship", undo=told.append))
        return ""

    job = await order.add()
    await run_until_empty(pen)
    assert (await job.result(), told) == ("ship", [])


async def test_a_later_saga_does_not_undo_an_earlier_one(pen: Bullpen) -> None:
    """Each block is whole by itself; parallel steps of one are undone in the reverse of their places."""
    told: list[str] = []

    @pen.job
    async def order(ctx: Context) -> None:
        async with ctx.saga() as first:
            await first.step("one", lambda: "one", undo=told.append)
        async with ctx.saga() as second:
            await ctx.parallel(
                second.step("two", lambda: "two", undo=told.append),
                second.step("three", lambda: "three", undo=told.append),
            )
            raise ValueError

    job = await order.add()
    await run_until_empty(pen)
    with pytest.raises(JobFailed):
        await job.result()
    assert told == ["three", "two"]


async def test_a_job_that_cancels_itself_undoes_its_saga(pen: Bullpen) -> None:
    told: list[str] = []

    @pen.job
    async def order(ctx: Context) -> None:
        async with ctx.saga() as saga:
            await saga.step("one", lambda: "one", undo=told.append)
            raise JobCancelled("changed my mind")

    job = await order.add()
    await run_until_empty(pen)
    failure = (await job.record()).failure
    assert failure is not None
    assert (failure.kind, told) == (FailureKind.UNRECOVERABLE, ["one"])


async def test_a_saga_without_room_to_go_on_goes_back(pen: Bullpen) -> None:
    """A full journal, and a result that JSON cannot carry, are failures like others."""
    told: list[str] = []

    @pen.job
    async def order(ctx: Context, count: int, result: bool) -> None:
        async with ctx.saga() as saga:
            for n in range(count):
                await saga.step(f"step {n}", lambda n=n: f"s-{n}", undo=told.append)
            await saga.step("odd", object if result else str)

    await order.add(count=3, result=False)
    await order.add(count=1, result=True)
    report = await run_until_empty(pen, options=WorkerOptions(max_journal_entries=2))
    assert verdicts(report) == [Failed, Failed]
    assert told == ["s-1", "s-0", "s-0"]


# ── every point at which a process can die ───────────────────────────────────────────────


def _declare(pen: Bullpen, destination: Destination, fails_at: str, *, only_once: bool) -> None:
    """Four steps; one of them fails, or the code after it does."""
    failures: list[str] = []

    def fail_here(point: str) -> None:
        if point == fails_at and not (only_once and failures):
            failures.append(point)
            raise ConnectionError(f"failed at {point}")

    @pen.job(queue="saga")
    async def order(ctx: Context) -> str:
        async def do(name: str) -> str:
            fail_here(name)
            destination.do(name, ctx.step_key)
            return name

        async def undo(name: str) -> None:
            destination.do(f"not {name}", ctx.step_key)

        async with ctx.saga() as saga:
            for name in NAMES:
                await saga.step(name, do, name, undo=undo)
                fail_here(f"after {name}")
        return "done"


FAILURES = ["never", "reserve", "ship", "mail", "after charge", "after mail"]


@pytest.mark.parametrize("only_once", [False, True], ids=["always", "once"])
@pytest.mark.parametrize("fails_at", FAILURES)
async def test_wherever_the_process_dies_all_is_done_or_all_is_undone(
    harness: AnyHarness, fails_at: str, only_once: bool
) -> None:
    """Before and after each effect and each record, forward and backward; the next process goes on rightly."""
    points = 0
    for blows_at in itertools.count():
        fuse = Fuse(blows_at)
        destination = Destination(fuse)
        store = await harness.open()
        pen = Bullpen(store)
        _declare(pen, destination, fails_at, only_once=only_once)
        await pen.types["saga", "order"].add()
        await run_to_end(harness, pen, "saga", fuse)
        _check(destination)
        if not fuse.has_blown:
            break
        points += 1
        if not only_once:
            assert (destination.done[-1:] == ["mail"]) == (fails_at == "never")
    forward, backward = 4, 0
    if fails_at != "never":
        forward = NAMES.index(fails_at.removeprefix("after ")) + fails_at.startswith("after")
        backward = forward
    assert points >= 4 * (forward + backward)


def _check(destination: Destination) -> None:
    done = [what for what in destination.done if not what.startswith("not ")]
    undone = [what.removeprefix("not ") for what in destination.done if what.startswith("not ")]
    assert done in ([*NAMES], [*NAMES[: len(done)]]), "forward, in order, each once"
    assert undone in ([], done[::-1]), "nothing undone, or everything, backwards, each once"
    if not undone:
        assert done in ([*NAMES], []), "neither done nor undone"
