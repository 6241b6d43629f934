"""Limits as a worker keeps them: its own limiter, shared slots, and what a handler says."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from bullpen import (
    BadOption,
    Bullpen,
    Context,
    GroupFull,
    Queue,
    RateLimited,
    SqliteStore,
    State,
    Worker,
    WorkerOptions,
    rate,
)
from bullpen.clock import SYSTEM_CLOCK
from bullpen.testing.clock import ManualClock
from bullpen.worker.appetite import Appetite, Wants

PATIENCE_S = 60


def _appetite(slots: dict[str, int], options: WorkerOptions) -> tuple[Appetite, ManualClock]:
    clock = ManualClock()
    return Appetite(slots, options, clock), clock


def _trip(appetite: Appetite, lines: dict[str, int]) -> list[str]:
    """One trip to queues that have so many jobs, all of which end at once."""
    wants = appetite.wants()
    appetite.set_aside(wants)
    left = sum(wants.queues.values()) if wants.at_most is None else wants.at_most
    got = dict.fromkeys(wants.queues, 0)
    for queue, slots in wants.queues.items():
        got[queue] = min(slots, left, lines[queue])
        lines[queue] -= got[queue]
        left -= got[queue]
    appetite.take_in(wants, got)
    ran = [queue for queue, jobs in got.items() for _ in range(jobs)]
    for queue in ran:
        appetite.free_slot(queue)
    return ran


def test_each_queue_has_slots_of_its_own() -> None:
    appetite, _ = _appetite({"a": 2, "b": 1}, WorkerOptions())
    wants = appetite.wants()
    appetite.set_aside(wants)
    appetite.take_in(wants, {"a": 0, "b": 1})
    assert appetite.wants() == Wants({"a": 2})
    appetite.free_slot("b")
    assert appetite.wants() == Wants({"a": 2, "b": 1})


def test_a_trip_leaves_the_other_its_share_of_the_slots() -> None:
    """If one of two trips took all slots, nothing would run while it travels."""
    appetite = Appetite({"a": 5, "b": 1}, WorkerOptions(), ManualClock(), trips=2)
    first = appetite.wants()
    appetite.set_aside(first)
    assert (first, appetite.wants()) == (Wants({"a": 3, "b": 1}), Wants({"a": 2}))
    assert appetite.share == 4


def test_a_trip_leaves_the_other_its_share_of_shared_slots() -> None:
    appetite = Appetite({"a": 4, "b": 4}, WorkerOptions(shared=4), ManualClock(), trips=2)
    first = appetite.wants()
    appetite.set_aside(first)
    assert (first.at_most, appetite.wants().at_most) == (2, 2)
    assert appetite.share == 2


def test_shared_slots_go_to_the_first_queue_first() -> None:
    appetite, _ = _appetite({"urgent": 4, "usual": 4}, WorkerOptions(shared=4))
    lines = {"urgent": 6, "usual": 100}
    served = [job for _ in range(3) for job in _trip(appetite, lines)]
    assert served == ["urgent"] * 6 + ["usual"] * 6


def test_weights_share_the_slots() -> None:
    options = WorkerOptions(shared=3, weights={"a": 3})
    appetite, _ = _appetite({"a": 3, "b": 3}, options)
    served = Counter(job for _ in range(100) for job in _trip(appetite, {"a": 1_000, "b": 1_000}))
    assert abs(served["a"] - 225) <= 3
    assert served.total() == 300


def test_a_queue_without_jobs_saves_no_turns_up() -> None:
    appetite, _ = _appetite({"a": 2, "b": 2}, WorkerOptions(shared=2, weights={}))
    for _ in range(50):
        _trip(appetite, {"a": 1_000, "b": 0})
    served = Counter(job for _ in range(20) for job in _trip(appetite, {"a": 1_000, "b": 1_000}))
    assert abs(served["a"] - served["b"]) <= 2


def test_a_limiter_bounds_the_starts() -> None:
    appetite, clock = _appetite({"a": 5}, WorkerOptions(limiter=rate(7, per=60)))
    lines = {"a": 100}
    assert len(_trip(appetite, lines)) == 5
    assert len(_trip(appetite, lines)) == 2
    assert not appetite.wants()
    assert appetite.closed_for_s() == 60
    clock.advance(60_000)
    assert appetite.closed_for_s() is None
    assert len(_trip(appetite, lines)) == 5


def test_what_is_under_way_counts() -> None:
    """Two trips at once start no more than the limiter lets them."""
    appetite, _ = _appetite({"a": 10}, WorkerOptions(limiter=rate(3, per=60)))
    appetite.set_aside(appetite.wants())
    assert not appetite.wants()
    assert appetite.closed_for_s() is None


@pytest.mark.parametrize("options", [{"shared": 0}, {"weights": {"a": 1}}, {"shared": 1, "weights": {"a": 0}}])
def test_refuses_options_that_cannot_be(options: dict[str, int]) -> None:
    with pytest.raises(BadOption):
        WorkerOptions(**options)  # type: ignore[arg-type]  # wrong on purpose


# ── with a store ─────────────────────────────────────────────────────────────────────────


async def _work_until(worker: Worker, done: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run())
        await done.wait()
        worker.stop()


async def test_a_limited_handler_runs_again_without_an_attempt(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "queue.db")
    await store.open()
    job = await Queue(store, "calls").add("call")
    attempts: list[int] = []
    done = asyncio.Event()

    async def call(ctx: Context) -> None:
        attempts.append(ctx.attempt)
        if len(attempts) == 1:
            ctx.limited(0.05)
        done.set()

    await _work_until(Worker(store, {"calls": call}), done)
    record = await store.job(job.ref)
    await store.close()
    assert attempts == [1, 1]
    assert (record.state, record.attempts_made) == (State.COMPLETED, 1)


async def test_a_limited_process_says_so_too(tmp_path: Path) -> None:
    from bullpen import in_process

    store = SqliteStore(tmp_path / "queue.db")
    await store.open()
    job = await Queue(store, "calls").add("call")
    worker = Worker(store, {"calls": in_process(limited_in_a_process)})
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run())
        while (await store.limits("calls")).closed_until_ms is None:
            await store.wait(["calls"], timeout_ms=100)
        worker.stop()
    record = await store.job(job.ref)
    await store.close()
    assert (record.state, record.attempts_made) == (State.WAITING, 0)


def limited_in_a_process(ctx: Context) -> None:
    raise RateLimited(3_600)


async def test_a_wrong_tenant_s_job_fails_for_good_and_does_not_run(tmp_path: Path) -> None:
    """The worker looks at the tenant before the handler runs; an async answer is awaited."""

    async def is_ours(ctx: Context) -> bool:
        return ctx.tenant == "acme"

    pen = Bullpen(SqliteStore(tmp_path / "queue.db"), verify_tenant=is_ours)
    ran: list[str | None] = []
    done = asyncio.Event()

    @pen.job(queue="mail", attempts=5)
    async def welcome(ctx: Context) -> None:
        ran.append(ctx.tenant)
        done.set()

    async with pen:
        wrong = await welcome.options(tenant="other").add()
        await welcome.options(tenant="acme").add()
        await _work_until(pen.worker(options=WorkerOptions(concurrency=1)), done)
        record = await pen.store.job(wrong.ref)
    assert ran == ["acme"]
    assert record.state == State.FAILED
    assert record.failure is not None
    assert (record.failure.type, record.attempts_made) == ("TenantRefused", 1)


async def test_a_full_group_is_the_error_of_its_own_producer(tmp_path: Path) -> None:
    """Adds that travel together are added apart when one of their groups is full."""
    store = SqliteStore(tmp_path / "queue.db", clock=SYSTEM_CLOCK)
    await store.open()
    queue = Queue(store, "mail")
    await queue.groups.set("full", max_size=1)
    await queue.add("first", group="full")
    answers = await asyncio.gather(
        queue.add("a", group="full"), queue.add("b", group="other"), queue.add("c"), return_exceptions=True
    )
    counts = await queue.counts()
    await store.close()
    assert isinstance(answers[0], GroupFull)
    assert counts.waiting == 3
