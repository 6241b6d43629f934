"""Promises of `cancel` and `notices`."""

import asyncio

import pytest

from bullpen.errors import JobMissing, WrongState
from bullpen.job.record import CrashLimits, FailureKind, JobRecord, JobRef
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.job.verdicts import Cancelled, Completed, Postponed, Released, Retry, Verdict
from bullpen.stores.base import Cancellation, Counts, Notice, Renewal, SettleOutcome, Store
from bullpen.testing.conformance.moves import (
    BOOM,
    LEASE_MS,
    MAIL,
    PATIENCE_S,
    ROUNDS,
    WORKER,
    add_one,
    claim,
    claim_one,
    complete_one,
    end_of_log,
    events_since,
    fail_one,
    race,
    settle_one,
    state_of,
)
from bullpen.testing.harness import Harness

_LONG_MS = 600_000
_SPECS = (JobSpec(), JobSpec(priority=3), JobSpec(delay_ms=60_000))


def _is_cancelled(job: JobRecord, reason: str) -> None:
    assert job.state == State.FAILED
    assert job.failure is not None
    assert job.failure.kind == FailureKind.CANCELLED
    assert reason in job.failure.message


async def test_an_unstarted_job_ends_at_once(store: Store) -> None:
    """A job that waits, prioritized or delayed as may be, ends as cancelled and never runs."""
    for spec in _SPECS:
        ref = await add_one(store, spec=spec)
        assert await store.cancel(ref, reason="not needed") == Cancellation.CANCELLED
        job = await store.job(ref)
        _is_cancelled(job, "not needed")
        assert job.attempts_made == 0
    assert await claim(store, 5) == ()
    assert await store.counts(MAIL) == Counts(failed=3)


async def test_a_running_job_is_asked_to_stop(store: Store) -> None:
    """A running job goes on until its worker settles it; its record says what was asked."""
    ref = await add_one(store)
    lease = (await claim_one(store)).lease
    assert await store.cancel(ref, reason="too costly") == Cancellation.CANCELLING
    job = await store.job(ref)
    assert (job.state, job.cancelling) == (State.ACTIVE, "too costly")
    assert await settle_one(store, lease, Cancelled("too costly")) == SettleOutcome.SETTLED
    _is_cancelled(await store.job(ref), "too costly")


async def test_a_job_that_finished_all_the_same_is_completed(store: Store) -> None:
    """A worker that was done before it heard of the cancellation may complete its job."""
    ref = await add_one(store)
    lease = (await claim_one(store)).lease
    await store.cancel(ref, reason="")
    assert (await store.job(ref)).cancelling == ""
    assert await settle_one(store, lease, Completed(b"1")) == SettleOutcome.SETTLED
    job = await store.job(ref)
    assert (job.state, job.cancelling) == (State.COMPLETED, None)


async def test_a_job_asked_to_stop_does_not_run_again(store: Store) -> None:
    """Whatever hands a job back that was asked to stop ends it as cancelled instead."""
    verdicts: tuple[Verdict, ...] = (Retry(BOOM), Retry(BOOM, 1_000), Postponed(1_000), Released())
    for verdict in verdicts:
        ref = await add_one(store, spec=JobSpec(attempts=9))
        lease = (await claim_one(store)).lease
        await store.cancel(ref, reason="enough")
        assert await settle_one(store, lease, verdict) == SettleOutcome.SETTLED
        _is_cancelled(await store.job(ref), "enough")


async def test_a_job_asked_to_stop_is_not_rescued(harness: Harness, store: Store) -> None:
    """A cancellation outlives the worker that was to carry it out."""
    ref = await add_one(store)
    await claim_one(store)
    await store.cancel(ref, reason="enough")
    await harness.advance(LEASE_MS + 1)
    rescued = await store.rescue([MAIL], limits=CrashLimits())
    assert rescued.recovered == ()
    _is_cancelled(await store.job(ref), "enough")


async def test_a_notice_comes_to_the_worker(harness: Harness, store: Store) -> None:
    """A worker that waits for notices hears of a cancellation at once, with lease and reason."""
    ref = await add_one(store)
    lease = (await claim_one(store)).lease
    other = await harness.open()
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        hears = tasks.create_task(store.notices(WORKER, timeout_ms=_LONG_MS))
        await asyncio.sleep(0)
        await other.cancel(ref, reason="enough")
    assert list(hears.result()) == [Notice(lease, "enough")]


async def test_a_notice_that_came_before_is_there(store: Store) -> None:
    """A cancellation that nobody waited for is told to the next who asks."""
    ref = await add_one(store)
    lease = (await claim_one(store)).lease
    await store.cancel(ref, reason="enough")
    async with asyncio.timeout(PATIENCE_S):
        assert list(await store.notices(WORKER, timeout_ms=_LONG_MS)) == [Notice(lease, "enough")]


async def test_notices_are_of_this_worker_and_of_running_jobs(store: Store) -> None:
    """No worker hears of another's jobs, nor of a job that has ended."""
    ref = await add_one(store)
    lease = (await claim_one(store)).lease
    await store.cancel(ref, reason="enough")
    assert list(await store.notices("worker-2", timeout_ms=20)) == []
    await settle_one(store, lease, Cancelled("enough"))
    assert list(await store.notices(WORKER, timeout_ms=20)) == []


async def test_refuses_a_finished_job(store: Store) -> None:
    """What has ended cannot be cancelled: WrongState, and the job stays as it is."""
    for finish in (complete_one, fail_one):
        await add_one(store)
        ref = await finish(store)
        before, cursor = await store.job(ref), await end_of_log(store)
        with pytest.raises(WrongState):
            await store.cancel(ref, reason="too late")
        assert await store.job(ref) == before
        assert await events_since(store, cursor) == []


async def test_refuses_a_missing_job(store: Store) -> None:
    """A job that is not there cannot be cancelled: JobMissing."""
    await add_one(store)
    for ref in (JobRef(MAIL, "nobody"), JobRef("nowhere", "nobody")):
        with pytest.raises(JobMissing):
            await store.cancel(ref, reason="")


async def test_race_cancel_and_claim_agree(harness: Harness, store: Store) -> None:
    """A job is either cancelled and never claimed, or claimed and its worker told."""
    other = await harness.open()
    for turn in range(ROUNDS):
        ref = await add_one(store)
        cancellation, claimed = await race(store.cancel(ref, reason="enough"), claim(other), turn=turn)
        assert isinstance(claimed, tuple)
        if cancellation == Cancellation.CANCELLED:
            assert claimed == ()
            assert await state_of(store, ref) == State.FAILED
        else:
            assert cancellation == Cancellation.CANCELLING
            assert list(await store.renew([claimed[0].lease], lease_ms=LEASE_MS)) == [Renewal.CANCELLING]


async def test_race_cancel_and_completion_agree(harness: Harness, store: Store) -> None:
    """A job that completes as it is cancelled is completed; the canceller is told one or the other."""
    other = await harness.open()
    for turn in range(ROUNDS):
        ref = await add_one(store)
        lease = (await claim_one(store)).lease
        cancellation, outcome = await race(
            other.cancel(ref, reason=""), settle_one(store, lease, Completed()), turn=turn
        )
        assert cancellation == Cancellation.CANCELLING or isinstance(cancellation, WrongState)
        assert outcome == SettleOutcome.SETTLED
        assert await state_of(store, ref) == State.COMPLETED


async def test_race_a_notice_is_never_slept_through(harness: Harness, store: Store) -> None:
    """A cancellation at the very moment of falling asleep is heard, whichever comes first."""
    other = await harness.open()
    for turn in range(ROUNDS):
        ref = await add_one(store)
        lease = (await claim_one(store, worker=f"worker-{turn}")).lease
        notices, _ = await race(
            store.notices(f"worker-{turn}", timeout_ms=_LONG_MS), other.cancel(ref, reason="enough"), turn=turn
        )
        assert notices == [Notice(lease, "enough")]
