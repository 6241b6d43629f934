"""Promises of the order in which jobs run."""

from bullpen.job.record import CrashKind
from bullpen.job.spec import JobSpec
from bullpen.job.verdicts import Postponed, Released, Retry
from bullpen.stores.base import Counts, Store
from bullpen.testing.conformance.moves import (
    BOOM,
    MAIL,
    ROUNDS,
    add_many,
    add_one,
    claim_ids,
    claim_one,
    race,
    run_one,
    settle_one,
)
from bullpen.testing.harness import Harness


async def test_first_in_is_first_out(store: Store) -> None:
    """Jobs without a priority run in the order in which they were added."""
    refs = [await add_one(store) for _ in range(5)]
    assert await claim_ids(store, 2) == [ref.id for ref in refs[:2]]
    assert await claim_ids(store) == [ref.id for ref in refs[2:]]


async def test_a_lower_priority_number_runs_first(store: Store) -> None:
    """Prioritized jobs run by their number, and in the order of their adds where it is the same."""
    late = await add_one(store, spec=JobSpec(priority=9))
    first = await add_one(store, spec=JobSpec(priority=2))
    second = await add_one(store, spec=JobSpec(priority=2))
    last = await add_one(store, spec=JobSpec(priority=2_097_151))
    assert await claim_ids(store) == [first.id, second.id, late.id, last.id]


async def test_no_priority_runs_before_every_priority(store: Store) -> None:
    """Priority 0 is none, and goes before all jobs that have one."""
    with_one = await add_one(store, spec=JobSpec(priority=1))
    without = await add_one(store)
    assert await claim_ids(store) == [without.id, with_one.id]


async def test_lifo_goes_to_the_head_of_the_line(store: Store) -> None:
    """A lifo job runs before those that wait, and the last such job first."""
    plain = await add_one(store)
    first = await add_one(store, spec=JobSpec(lifo=True))
    second = await add_one(store, spec=JobSpec(lifo=True))
    assert await claim_ids(store) == [second.id, first.id, plain.id]


async def test_due_jobs_run_in_the_order_in_which_they_were_due(harness: Harness, store: Store) -> None:
    """Delayed jobs that came due together join the line by due time, then by their adds."""
    refs = [await add_one(store, spec=JobSpec(delay_ms=delay_ms)) for delay_ms in (3_000, 1_000, 2_000, 1_000)]
    await harness.advance(3_001)
    third, first, fourth, second = (ref.id for ref in refs)
    assert await claim_ids(store) == [first, second, fourth, third]


async def test_a_due_job_joins_the_end_of_the_line(harness: Harness, store: Store) -> None:
    """A delayed job that came due runs after those that wait already."""
    delayed = await add_one(store, spec=JobSpec(delay_ms=1_000))
    waiting = await add_one(store)
    await harness.advance(1_001)
    assert await claim_ids(store) == [waiting.id, delayed.id]


async def test_a_due_job_has_its_priority(harness: Harness, store: Store) -> None:
    """A delay does not lose the priority: once due, the job stands in its priority's line."""
    low = await add_one(store, spec=JobSpec(priority=5))
    delayed = await add_one(store, spec=JobSpec(priority=2, delay_ms=1_000))
    await harness.advance(1_001)
    assert await claim_ids(store) == [delayed.id, low.id]


async def test_a_delayed_job_is_not_given_out_early(harness: Harness, store: Store) -> None:
    """Before its time a delayed job cannot be claimed, though nothing else is there."""
    ref = await add_one(store, spec=JobSpec(delay_ms=10_000))
    await harness.advance(9_000)
    assert await claim_ids(store) == []
    await harness.advance(1_001)
    assert await claim_ids(store) == [ref.id]


async def test_a_retried_job_goes_to_the_end_of_the_line(store: Store) -> None:
    """A retry without a delay lets the others go first."""
    first, second = await add_many(store, 2)
    await run_one(store, Retry(BOOM))
    assert await claim_ids(store) == [second.id, first.id]


async def test_a_retried_job_keeps_its_priority(store: Store) -> None:
    """A retry goes to the end of its own priority, not behind jobs of less."""
    first, second = await add_many(store, 2, spec=JobSpec(priority=3))
    less = await add_one(store, spec=JobSpec(priority=8))
    await run_one(store, Retry(BOOM))
    assert await claim_ids(store) == [second.id, first.id, less.id]


async def test_a_released_job_goes_to_the_head_of_the_line(store: Store) -> None:
    """A job that was handed back is the next to run."""
    first, second = await add_many(store, 2)
    await run_one(store, Released(CrashKind.DEPLOY))
    assert await claim_ids(store) == [first.id, second.id]


async def test_a_released_job_goes_to_the_head_of_its_priority(store: Store) -> None:
    """Handed back, a prioritized job is the first of its priority, and goes before no better one."""
    first, second = await add_many(store, 2, spec=JobSpec(priority=3))
    claimed = await claim_one(store)
    better = await add_one(store, spec=JobSpec(priority=1))
    await settle_one(store, claimed.lease, Released())
    assert await claim_ids(store) == [better.id, first.id, second.id]


async def test_a_postponed_job_joins_the_end_of_the_line(harness: Harness, store: Store) -> None:
    """A job that was postponed runs after those that wait when it is due."""
    first, second = await add_many(store, 2)
    await run_one(store, Postponed(1_000))
    await harness.advance(1_001)
    assert await claim_ids(store) == [second.id, first.id]


async def test_race_a_claim_at_due_time_takes_the_job_once(harness: Harness, store: Store) -> None:
    """Two claimants that find the same job due make it runnable once, and one of them gets it."""
    other = await harness.open()
    for turn in range(ROUNDS):
        ref = await add_one(store, spec=JobSpec(delay_ms=1_000))
        await harness.advance(1_001)
        first, second = await race(claim_ids(store), claim_ids(other), turn=turn)
        assert isinstance(first, list)
        assert isinstance(second, list)
        assert first + second == [ref.id]
    assert await store.counts(MAIL) == Counts(active=ROUNDS)
