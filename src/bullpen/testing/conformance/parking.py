"""Promises of the verdict `Parked`: a job set aside until a time or a signal."""

from bullpen.errors import BullpenError
from bullpen.job.events import EventKind
from bullpen.job.record import FailureKind
from bullpen.job.spec import Dedup, JobSpec, NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Parked
from bullpen.stores.base import Added, AddOutcome, Cancellation, Store
from bullpen.testing.conformance.moves import (
    MAIL,
    ROUNDS,
    add,
    add_one,
    claim,
    claim_one,
    end_of_log,
    events_since,
    fresh_request,
    race,
    run_one,
    settle_one,
    state_of,
)
from bullpen.testing.harness import Harness


async def test_a_parked_job_holds_no_slot_and_uses_no_attempt(harness: Harness, store: Store) -> None:
    """It stands as delayed with its due time, its note and the signals it waits for; nobody holds it."""
    ref = await add_one(store)
    until_ms = harness.clock.now_ms() + 60_000
    await run_one(store, Parked(until_ms, ("approved",), "waits for approval"))
    job = await store.job(ref)
    assert (job.state, job.run_at_ms, job.note, job.parked) == (
        State.DELAYED, until_ms, "waits for approval", ("approved",),
    )  # fmt: skip
    assert job.attempts_made == 0
    assert (await store.counts(MAIL)).active == 0


async def test_a_parked_job_is_runnable_at_its_time(harness: Harness, store: Store) -> None:
    """It is claimed again once its time has come, in a new activation."""
    ref = await add_one(store)
    await run_one(store, Parked(harness.clock.now_ms() + 60_000))
    await harness.advance(59_000)
    assert await claim(store) == ()
    await harness.advance(1_000)
    claimed = await claim_one(store)
    assert (claimed.job.ref, claimed.lease.epoch, claimed.job.attempts_made) == (ref, 2, 0)
    assert claimed.job.parked is None


async def test_a_job_parked_without_a_time_has_none(harness: Harness, store: Store) -> None:
    """It is due at no time: neither its record nor its event has one, and no claim tells of one."""
    ref = await add_one(store)
    cursor = await end_of_log(store)
    await run_one(store, Parked(signals=("approved",)))
    assert (await store.job(ref)).run_at_ms is None
    told = [event for event in await events_since(store, cursor) if event.kind == EventKind.DELAYED]
    assert [(event.job_id, event.run_at_ms) for event in told] == [(ref.id, None)]
    claimed = await store.claim({MAIL: 1}, worker="w", lease_ms=1_000, request=fresh_request())
    assert (claimed.jobs, claimed.next_due_ms) == ((), None)
    await harness.advance(86_400_000)
    assert await claim(store) == ()


async def test_parked_jobs_without_a_time_stand_behind_those_with_one(harness: Harness, store: Store) -> None:
    """Who waits for a signal alone does not hide who is due."""
    await add_one(store)
    await run_one(store, Parked(signals=("approved",)))
    due = await add_one(store, spec=JobSpec(delay_ms=60_000))
    claimed = await store.claim({MAIL: 1}, worker="w", lease_ms=1_000, request=fresh_request())
    assert claimed.next_due_ms == harness.clock.now_ms() + 60_000
    await harness.advance(60_000)
    assert (await claim_one(store)).job.ref == due


async def test_a_time_that_is_over_does_not_park(harness: Harness, store: Store) -> None:
    """Whoever parks until a time in the past goes to the end of the line at once."""
    first, second = await add_one(store), await add_one(store)
    await run_one(store, Parked(harness.clock.now_ms()))
    assert [(await claim_one(store)).job.ref for _ in range(2)] == [second, first]


async def test_a_parked_job_keeps_its_priority(harness: Harness, store: Store) -> None:
    """It wakes into the line of its priority."""
    ref = await add_one(store, spec=JobSpec(priority=3))
    await run_one(store, Parked(harness.clock.now_ms() + 1_000))
    await harness.advance(1_000)
    claimed = await claim_one(store)
    assert (claimed.job.ref, claimed.job.priority) == (ref, 3)


async def test_a_parked_job_can_be_promoted(store: Store) -> None:
    """Someone may wake it by hand; it has no note then and waits for nothing."""
    ref = await add_one(store)
    await run_one(store, Parked(signals=("approved",), note="waits"))
    await store.promote(ref)
    job = await store.job(ref)
    assert (job.state, job.note, job.parked) == (State.WAITING, None, None)


async def test_a_parked_job_can_be_given_a_time(harness: Harness, store: Store) -> None:
    """A new delay makes it due, though it waited for a signal alone."""
    ref = await add_one(store)
    await run_one(store, Parked(signals=("approved",)))
    await store.change_delay(ref, 5_000)
    assert (await store.job(ref)).run_at_ms == harness.clock.now_ms() + 5_000
    await harness.advance(5_000)
    assert (await claim_one(store)).job.ref == ref


async def test_a_parked_job_can_be_cancelled(store: Store) -> None:
    """It ends at once, as any job that nobody runs."""
    ref = await add_one(store)
    await run_one(store, Parked(signals=("approved",)))
    assert await store.cancel(ref, reason="no longer wanted") == Cancellation.CANCELLED
    job = await store.job(ref)
    assert job.failure is not None
    assert (job.state, job.failure.kind, job.parked) == (State.FAILED, FailureKind.CANCELLED, None)


async def test_a_job_that_is_to_stop_does_not_park(store: Store) -> None:
    """A running job that was asked to stop never runs again: parking ends it as cancelled."""
    ref = await add_one(store)
    held = await claim_one(store)
    await store.cancel(ref, reason="stop")
    await settle_one(store, held.lease, Parked(signals=("approved",)))
    assert await state_of(store, ref) == State.FAILED


async def test_a_parked_job_is_not_replaced_by_a_duplicate(store: Store) -> None:
    """It is in the middle of its work: what is debounced takes the place of jobs that have not begun."""
    ref = await add_one(store, spec=JobSpec(dedup=Dedup("order-1", replace=True)))
    await run_one(store, Parked(signals=("approved",)))
    (added,) = await add(store, NewJob(MAIL, "welcome", spec=JobSpec(dedup=Dedup("order-1", replace=True))))
    assert added == Added(ref.id, AddOutcome.DEDUPLICATED)
    assert await state_of(store, ref) == State.DELAYED


async def test_the_last_duplicate_of_a_parked_job_is_kept(store: Store) -> None:
    """As while it runs: the newest one is added when the parked one has ended."""
    spec = JobSpec(dedup=Dedup("order-1", keep_last_if_active=True))
    ref = await add_one(store, spec=spec)
    await run_one(store, Parked(signals=("approved",)))
    (added,) = await add(store, NewJob(MAIL, "later", spec=spec))
    assert added == Added(ref.id, AddOutcome.KEPT_LAST)
    await store.promote(ref)
    await run_one(store, Completed())
    assert (await claim_one(store)).job.name == "later"


async def test_race_a_signal_and_a_parking_never_miss_each_other(harness: Harness, store: Store) -> None:
    """Whichever comes first, a job that parks for a signal that was sent is runnable afterwards."""
    other = await harness.open()
    for turn in range(ROUNDS):
        ref = await add_one(store)
        held = await claim_one(store)
        parked, sent = await race(
            settle_one(store, held.lease, Parked(signals=("approved",))),
            other.signal(ref, "approved", b"1", request=fresh_request()),
            turn=turn,
        )
        assert not isinstance(parked, BullpenError)
        assert not isinstance(sent, BullpenError)
        assert (await claim_one(store)).job.ref == ref
