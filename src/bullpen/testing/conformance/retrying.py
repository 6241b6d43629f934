"""Promises of `retry` and `retry_all`."""

import pytest

from bullpen.errors import BullpenError, JobMissing, QueueMissing, WrongState
from bullpen.job.record import JobRef
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Failed, Retry
from bullpen.stores.base import Counts, SettleOutcome, Store
from bullpen.testing.conformance.moves import (
    BOOM,
    MAIL,
    ROUNDS,
    add_many,
    add_one,
    claim,
    claim_ids,
    claim_one,
    complete_one,
    fail_one,
    race,
    run_one,
    settle_one,
    state_of,
)
from bullpen.testing.harness import Harness


async def _fail_many(harness: Harness, store: Store, count: int) -> list[JobRef]:
    """That many failed jobs, oldest end first."""
    await add_many(store, count)
    refs = []
    for _ in range(count):
        refs.append(await fail_one(store))
        await harness.advance(1)
    return refs


async def test_a_failed_job_runs_again_with_fresh_attempts(store: Store) -> None:
    """A retried job has no attempts behind it, no failure and no end; its data is what it was."""
    await add_one(store, data=b'{"user":1}', spec=JobSpec(attempts=2))
    await run_one(store, Retry(BOOM))
    ref = await run_one(store, Failed(BOOM))
    await store.retry(ref)
    job = await store.job(ref)
    assert (job.state, job.attempts_made, job.failure, job.finished_ms) == (State.WAITING, 0, None, None)
    assert (await claim_one(store)).job.data == b'{"user":1}'


async def test_a_completed_job_runs_again(store: Store) -> None:
    """A completed job may be retried as well; its old result is gone."""
    await add_one(store)
    ref = await run_one(store, Completed(b"1"))
    await store.retry(ref)
    job = await store.job(ref)
    assert (job.state, job.result) == (State.WAITING, None)
    assert await store.counts(MAIL) == Counts(waiting=1)


async def test_a_retry_goes_to_the_end_of_its_line(store: Store) -> None:
    """A retried job waits behind those that are there, in the line of its priority."""
    failed = await add_one(store, spec=JobSpec(priority=3))
    await fail_one(store)
    same = await add_one(store, spec=JobSpec(priority=3))
    less = await add_one(store, spec=JobSpec(priority=9))
    await store.retry(failed)
    assert await state_of(store, failed) == State.PRIORITIZED
    assert await claim_ids(store) == [same.id, failed.id, less.id]


async def test_a_retry_is_noted_in_the_log(store: Store) -> None:
    """The job's log gets a line, after what was there."""
    ref = await add_one(store)
    await store.add_log(ref, ["first"])
    await fail_one(store)
    await store.retry(ref)
    page = await store.logs(ref)
    assert page.total == 2
    assert page.lines[0] == "first"


async def test_a_retried_job_has_a_greater_epoch(store: Store) -> None:
    """A retry by hand starts attempts anew, never the epoch."""
    await add_one(store)
    first = await claim_one(store)
    await settle_one(store, first.lease, Failed(BOOM))
    await store.retry(first.lease.ref)
    assert (await claim_one(store)).lease.epoch > first.lease.epoch


async def test_retry_all_takes_the_oldest_first(harness: Harness, store: Store) -> None:
    """Up to the limit, the jobs that ended first are retried first; the answer says how many."""
    refs = await _fail_many(harness, store, 5)
    assert await store.retry_all(MAIL, State.FAILED, limit=3) == 3
    assert await claim_ids(store) == [ref.id for ref in refs[:3]]
    assert await store.counts(MAIL) == Counts(active=3, failed=2)


async def test_retry_all_takes_the_asked_state_only(harness: Harness, store: Store) -> None:
    """Completed jobs are retried when asked for, and failed ones then stay."""
    await _fail_many(harness, store, 2)
    await add_many(store, 2)
    for _ in range(2):
        await complete_one(store)
    assert await store.retry_all(MAIL, State.COMPLETED, limit=100) == 2
    assert await store.counts(MAIL) == Counts(waiting=2, failed=2)
    assert await store.retry_all(MAIL, State.COMPLETED, limit=100) == 0


async def test_refuses_a_job_that_has_not_ended(store: Store) -> None:
    """Only what has ended can be retried: WrongState, and the job stays as it is."""
    refs = [await add_one(store), await add_one(store)]
    refs += [await add_one(store, spec=JobSpec(priority=1)), await add_one(store, spec=JobSpec(delay_ms=60_000))]
    await claim_one(store)
    before = [await store.job(ref) for ref in refs]
    for ref in refs:
        with pytest.raises(WrongState):
            await store.retry(ref)
    assert [await store.job(ref) for ref in refs] == before


async def test_refuses_to_retry_a_missing_job(store: Store) -> None:
    """A job that is not there cannot be retried: JobMissing."""
    with pytest.raises(JobMissing):
        await store.retry(JobRef(MAIL, "nobody"))


async def test_refuses_retry_all_of_a_state_that_is_no_end(store: Store) -> None:
    """Only completed and failed jobs can be retried: WrongState, and nothing moved."""
    await add_one(store)
    for state in (State.WAITING, State.ACTIVE, State.DELAYED):
        with pytest.raises(WrongState):
            await store.retry_all(MAIL, state, limit=10)
    assert await store.counts(MAIL) == Counts(waiting=1)


async def test_refuses_retry_all_of_a_missing_queue(store: Store) -> None:
    """A mistyped queue is not silently empty: QueueMissing."""
    with pytest.raises(QueueMissing):
        await store.retry_all("nowhere", State.FAILED, limit=10)


async def test_race_retry_all_and_claims_run_each_job_once(harness: Harness, store: Store) -> None:
    """Jobs that are retried while another claims are each claimed once."""
    refs = await _fail_many(harness, store, 20)
    other = await harness.open()
    retried, early = await race(store.retry_all(MAIL, State.FAILED, limit=100), claim(other, 20), turn=0)
    assert retried == 20
    assert not isinstance(early, BullpenError)
    late = await claim(store, 20)
    assert sorted(one.lease.ref for one in early + late) == sorted(refs)


async def test_race_two_retries_put_a_job_back_once(harness: Harness, store: Store) -> None:
    """Of two retries of one job at once, one puts it back and the other is refused."""
    other = await harness.open()
    for turn in range(ROUNDS):
        await add_one(store)
        ref = await fail_one(store)
        answers = await race(store.retry(ref), other.retry(ref), turn=turn)
        assert sorted(isinstance(answer, WrongState) for answer in answers) == [False, True]
        claimed = await claim(store, 5)
        assert len(claimed) == 1
        assert await settle_one(store, claimed[0].lease, Completed()) == SettleOutcome.SETTLED
