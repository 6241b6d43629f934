"""Flows as their users have them: job types, a worker, results."""

import pytest

from bullpen import (
    BadOption,
    Bullpen,
    ChildState,
    Context,
    FailureKind,
    JobFailed,
    OnFailure,
    State,
    Unrecoverable,
    UsageError,
    chain,
    group,
)
from bullpen.job.record import Failure
from bullpen.testing import run_until_empty, test_context
from tests.flows.conftest import StartWorker
from tests.worker.waiting import until

_PATIENCE_S = 60


async def test_a_parent_gets_the_results_of_its_children_in_order(pen: Bullpen, start_worker: StartWorker) -> None:
    """Over several queues, in the order in which they were given."""

    @pen.job(queue="odd")
    async def odd(ctx: Context, number: int) -> int:
        return number

    @pen.job(queue="even")
    async def even(ctx: Context, number: int) -> int:
        return number

    @pen.job(queue="sums")
    async def gather(ctx: Context, word: str) -> list[int]:
        assert word == "all"
        return list((await ctx.child_results()).values())

    start_worker()
    parts = [(odd if n % 2 else even).prepare(n) for n in range(20)]
    job = await gather.after(*parts).add("all")
    assert await job.result(_PATIENCE_S) == list(range(20))
    same = await pen.flow(gather.prepare("all"), parts)
    assert await same.result(_PATIENCE_S) == list(range(20))


async def test_a_chain_hands_each_result_on(pen: Bullpen, start_worker: StartWorker) -> None:
    @pen.job
    async def first(ctx: Context) -> int:
        return 1

    @pen.job(queue="other")
    async def plus(ctx: Context, number: int) -> int:
        return int(await ctx.previous()) + number

    start_worker()
    job = await pen.flow(chain(first.prepare(), plus.prepare(10), plus.prepare(100)))
    assert await job.result(_PATIENCE_S) == 111


async def test_a_chain_fails_as_a_whole(pen: Bullpen) -> None:
    """What comes after the step that failed does not run."""
    ran: list[str] = []

    @pen.job
    async def breaks(ctx: Context) -> None:
        raise Unrecoverable("no")

    @pen.job
    async def later(ctx: Context, name: str) -> None:
        ran.append(name)

    job = await pen.flow(chain(breaks.prepare(), later.prepare("second"), later.prepare("third")))
    await run_until_empty(pen)
    with pytest.raises(JobFailed) as failed:
        await job.result(_PATIENCE_S)
    assert isinstance(failed.value.failure, Failure)
    assert failed.value.failure.kind == FailureKind.CHILD_FAILED
    assert ran == []


async def test_a_group_joins(pen: Bullpen) -> None:
    """Also one that is a step of a chain, at its start."""

    @pen.job
    async def square(ctx: Context, number: int) -> int:
        return number * number

    @pen.job
    async def total(ctx: Context) -> int:
        return sum((await ctx.child_results()).values())

    @pen.job
    async def negate(ctx: Context) -> int:
        return -int(await ctx.previous())

    squares = group([square.prepare(n) for n in range(4)], then=total.prepare())
    job = await pen.flow(chain(squares, negate.prepare()))
    (await run_until_empty(pen)).check()
    assert await job.result(_PATIENCE_S) == -14


async def test_a_parent_sees_what_failed(pen: Bullpen) -> None:
    """With `ignore` it runs all the same and is told why."""

    @pen.job
    async def flaky(ctx: Context, number: int) -> int:
        if number % 2:
            raise Unrecoverable(f"{number} is odd")
        return number

    @pen.job
    async def gather(ctx: Context) -> dict[str, list[object]]:
        told = await ctx.children()
        return {
            "good": [child.result for child in told if child.state == ChildState.COMPLETED],
            "bad": [child.reason for child in told if child.state == ChildState.IGNORED],
        }

    parts = [flaky.options(on_failure="ignore").prepare(n) for n in range(4)]
    job = await pen.flow(gather.prepare(), parts)
    await run_until_empty(pen)
    assert await job.result(_PATIENCE_S) == {"good": [0, 2], "bad": ["1 is odd", "3 is odd"]}


async def test_a_handler_adds_children_and_waits_for_them(pen: Bullpen, start_worker: StartWorker) -> None:
    """It runs from its start again, adds none twice, and goes on where it waited."""
    activations = 0

    @pen.job(queue="pages")
    async def page(ctx: Context, number: int) -> int:
        return number * 10

    @pen.job(queue="books")
    async def book(ctx: Context, pages: int) -> list[int]:
        nonlocal activations
        activations += 1
        try:
            await ctx.add_children([page.prepare(n) for n in range(pages)])
            await ctx.await_children()
        except Exception as error:
            raise AssertionError("leaving is no error") from error
        return list((await ctx.child_results()).values())

    start_worker()
    job = await book.add(12)
    assert await job.result(_PATIENCE_S) == [n * 10 for n in range(12)]
    assert activations >= 2
    assert (await pen.queue("pages").counts()).completed == 12
    assert (await job.record()).attempts_made == 1


async def test_a_handler_in_a_thread_waits_for_children_too(pen: Bullpen, start_worker: StartWorker) -> None:
    @pen.job(queue="pages")
    async def page(ctx: Context, number: int) -> int:
        return number

    @pen.job(queue="books")
    def book(ctx: Context) -> list[int]:
        ctx.blocking(ctx.add_children([page.prepare(n) for n in range(3)]))
        ctx.blocking(ctx.await_children())
        return list(ctx.blocking(ctx.child_results()).values())

    start_worker()
    assert await (await book.add()).result(_PATIENCE_S) == [0, 1, 2]


async def test_a_parent_that_returns_too_early_runs_again(pen: Bullpen, start_worker: StartWorker) -> None:
    """A job that completes while children are pending waits for them instead."""
    results: list[int] = []

    @pen.job(queue="pages")
    async def page(ctx: Context, number: int) -> int:
        parent = ctx.job.parent
        assert parent is not None
        await until(lambda: pen.store.job(parent), lambda job: job.state == State.WAITING_CHILDREN)
        return number

    @pen.job(queue="books")
    async def book(ctx: Context) -> int:
        await ctx.add_children([page.prepare(n) for n in range(3)])
        results.append(len(await ctx.child_results()))
        return results[-1]

    start_worker()
    assert await (await book.add()).result(_PATIENCE_S) == 3


async def test_what_follows_a_job_may_be_a_tree(pen: Bullpen) -> None:
    @pen.job
    async def part(ctx: Context) -> int:
        return 1

    @pen.job
    async def whole(ctx: Context) -> int:
        return len(await ctx.child_results())

    @pen.job
    async def begin(ctx: Context) -> None:
        ctx.then(group([part.prepare(), part.prepare()], then=whole.prepare()))

    await begin.add()
    drained = (await run_until_empty(pen)).check()
    assert [run.result for run in drained.of(whole)] == [2]


async def test_a_flow_is_cancelled_as_a_whole(pen: Bullpen) -> None:
    """Children go on by themselves, unless they are to be cancelled too."""

    @pen.job
    async def part(ctx: Context) -> None: ...

    alone = await part.after(part.prepare()).add()
    await alone.cancel("enough")
    (child,) = await alone.children()
    assert child.state == ChildState.PENDING
    both = await part.after(part.after(part.prepare()).prepare()).add()
    await both.cancel("enough", children=True)
    counts = await pen.queue("default").counts()
    assert (counts.waiting_children, counts.prioritized, counts.failed) == (0, 1, 4)


async def test_a_flow_is_shown_as_a_tree(pen: Bullpen) -> None:
    """By the producer that BullMQ's users know."""
    flows = pen.flows
    leaf = flows.prepare("leaves", "leaf", {"n": 1}, on_failure=OnFailure.IGNORE)
    root = flows.prepare("roots", "root", children=[leaf, flows.prepare("middle", "branch", children=[leaf])])
    node = await flows.add(root)
    assert [one.job.ref.queue for one in node] == ["roots", "leaves", "middle", "leaves"]
    view = await flows.get("roots", node.job.id)
    assert view.record is not None
    assert view.record.state == State.WAITING_CHILDREN
    assert sorted((one.ref.queue, len(one.children)) for one in view.children) == [("leaves", 0), ("middle", 1)]


async def test_bad_shapes_are_refused(pen: Bullpen) -> None:
    @pen.job
    async def part(ctx: Context) -> None: ...

    with pytest.raises(BadOption, match="at least one step"):
        chain()
    with pytest.raises(BadOption, match="prepared jobs"):
        group([part], then=part.prepare())  # type: ignore[list-item]  # what users may do
    with pytest.raises(BadOption, match="would not wait"):
        chain(part.prepare(), part.after(part.prepare()).prepare())
    with pytest.raises(BadOption, match="on_failure: None or one of fail-parent"):
        part.options(on_failure="explode")
    with pytest.raises(BadOption, match="cannot be deduplicated"):
        await part.after(part.options(dedup="one").prepare()).add()
    with pytest.raises(BadOption, match="more than once"):
        await part.options(id="a").after(part.options(id="a").prepare()).add()
    deep = part.prepare()
    for _ in range(100):
        deep = part.after(deep).prepare()
    with pytest.raises(BadOption, match="more than 100 levels"):
        await pen.flow(deep)
    assert await pen.store.queues() == []


async def test_a_context_without_a_store_says_so(pen: Bullpen) -> None:
    context = test_context()
    with pytest.raises(UsageError, match="thread"):
        context.blocking(context.children())
