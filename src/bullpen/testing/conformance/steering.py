"""Promises of `promote`, `change_delay` and `change_priority`."""

import pytest

from bullpen.errors import JobMissing, WrongState
from bullpen.job.record import JobRef
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.job.verdicts import Postponed, Released
from bullpen.stores.base import Counts, Store
from bullpen.testing.conformance.moves import (
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

_DELAYED = JobSpec(delay_ms=60_000)


async def _not_delayed(store: Store) -> list[JobRef]:
    """A failed, a completed, an active, a waiting and a prioritized job."""
    refs = await add_many(store, 4)
    await fail_one(store)
    await complete_one(store)
    await claim_one(store)
    return [*refs, await add_one(store, spec=JobSpec(priority=1))]


# ── promote ──────────────────────────────────────────────────────────────────────────────


async def test_a_promoted_job_may_run_now(store: Store) -> None:
    """A delayed job that is promoted joins the end of the line."""
    delayed = await add_one(store, spec=_DELAYED)
    waiting = await add_one(store)
    await store.promote(delayed)
    job = await store.job(delayed)
    assert (job.state, job.run_at_ms) == (State.WAITING, None)
    assert await claim_ids(store) == [waiting.id, delayed.id]


async def test_a_promoted_job_has_its_priority(store: Store) -> None:
    """A delayed job with a priority is promoted into that priority's line."""
    less = await add_one(store, spec=JobSpec(priority=9))
    delayed = await add_one(store, spec=JobSpec(priority=2, delay_ms=60_000))
    await store.promote(delayed)
    assert await state_of(store, delayed) == State.PRIORITIZED
    assert await claim_ids(store) == [delayed.id, less.id]


async def test_a_postponed_job_can_be_promoted(store: Store) -> None:
    """Whatever delayed the job, promoting it makes it runnable, and its note is gone."""
    await add_one(store)
    ref = await run_one(store, Postponed(60_000, "quota"))
    await store.promote(ref)
    assert (await store.job(ref)).note is None
    assert await claim_ids(store) == [ref.id]


async def test_refuses_to_promote_what_is_not_delayed(store: Store) -> None:
    """Only a delayed job can be promoted: WrongState, and the job stays as it is."""
    for ref in await _not_delayed(store):
        before = await store.job(ref)
        with pytest.raises(WrongState):
            await store.promote(ref)
        assert await store.job(ref) == before


async def test_race_promote_and_claim_run_the_job_once(harness: Harness, store: Store) -> None:
    """A job that is promoted as it comes due is runnable once."""
    other = await harness.open()
    for turn in range(ROUNDS):
        ref = await add_one(store, spec=JobSpec(delay_ms=1_000))
        await harness.advance(1_001)
        promoted, claimed = await race(store.promote(ref), claim(other), turn=turn)
        assert promoted is None or isinstance(promoted, WrongState)
        assert isinstance(claimed, tuple)
        assert [one.lease.ref for one in claimed + await claim(store)] == [ref]


# ── change_delay ─────────────────────────────────────────────────────────────────────────


async def test_a_changed_delay_counts_from_now(harness: Harness, store: Store) -> None:
    """A delayed job may be made due sooner or later, that long from now."""
    ref = await add_one(store, spec=_DELAYED)
    await harness.advance(10_000)
    for delay_ms in (5_000, 90_000):
        now_ms = harness.clock.now_ms()
        await store.change_delay(ref, delay_ms)
        job = await store.job(ref)
        assert job.state == State.DELAYED
        assert job.run_at_ms is not None
        assert now_ms + delay_ms <= job.run_at_ms <= harness.clock.now_ms() + delay_ms
    await harness.advance(80_000)
    assert await claim(store) == ()
    await harness.advance(10_001)
    assert await claim_ids(store) == [ref.id]


async def test_a_delay_of_0_is_due_now(harness: Harness, store: Store) -> None:
    """A delayed job whose delay becomes 0 is given out by the next claim."""
    ref = await add_one(store, spec=_DELAYED)
    await store.change_delay(ref, 0)
    await harness.advance(1)
    assert await claim_ids(store) == [ref.id]


async def test_refuses_to_change_the_delay_of_what_is_not_delayed(store: Store) -> None:
    """Only a delayed job has a delay to change: WrongState, and the job stays as it is."""
    for ref in await _not_delayed(store):
        before = await store.job(ref)
        with pytest.raises(WrongState):
            await store.change_delay(ref, 1_000)
        assert await store.job(ref) == before


async def test_race_a_changed_delay_and_a_claim_agree(harness: Harness, store: Store) -> None:
    """A due job that is put off as another claims is delayed and not claimed, or claimed and not put off."""
    other = await harness.open()
    for turn in range(ROUNDS):
        ref = await add_one(store, spec=JobSpec(delay_ms=1_000))
        await harness.advance(1_001)
        changed, claimed = await race(store.change_delay(ref, 60_000), claim(other), turn=turn)
        assert isinstance(claimed, tuple)
        assert isinstance(changed, WrongState) == bool(claimed)
        assert await state_of(store, ref) == (State.ACTIVE if claimed else State.DELAYED)
        await store.drain(MAIL, delayed=True)


# ── change_priority ──────────────────────────────────────────────────────────────────────


async def test_a_changed_priority_moves_the_job_to_the_end_of_that_line(store: Store) -> None:
    """A waiting job may get a priority, change it or lose it, and stands last among its new equals."""
    moved = await add_one(store)
    low = await add_one(store, spec=JobSpec(priority=5))
    await store.change_priority(moved, 5)
    assert await state_of(store, moved) == State.PRIORITIZED
    assert (await store.job(moved)).priority == 5
    last = await add_one(store, spec=JobSpec(priority=9))
    await store.change_priority(last, 1)
    none = await add_one(store, spec=JobSpec(priority=9))
    await store.change_priority(none, 0)
    assert await state_of(store, none) == State.WAITING
    assert await store.counts(MAIL) == Counts(waiting=1, prioritized=3)
    assert await claim_ids(store) == [none.id, last.id, low.id, moved.id]


async def test_a_delayed_job_takes_its_new_priority_along(harness: Harness, store: Store) -> None:
    """A delayed job stays delayed, and joins the line of its new priority when it is due."""
    delayed = await add_one(store, spec=JobSpec(priority=9, delay_ms=1_000))
    other = await add_one(store, spec=JobSpec(priority=5))
    await store.change_priority(delayed, 2)
    assert await state_of(store, delayed) == State.DELAYED
    await harness.advance(1_001)
    assert await claim_ids(store) == [delayed.id, other.id]


async def test_a_delayed_job_with_a_new_priority_is_due_as_before(harness: Harness, store: Store) -> None:
    """Among those that are due at the same time it keeps its place."""
    refs = [await add_one(store, spec=JobSpec(delay_ms=1_000)) for _ in range(3)]
    await store.change_priority(refs[0], 2)
    await store.change_priority(refs[0], 0)
    delayed = (await store.jobs(MAIL, State.DELAYED, limit=9)).jobs
    assert [job.ref for job in delayed] == refs
    await harness.advance(1_001)
    assert await claim_ids(store) == [ref.id for ref in refs]


async def test_a_running_job_takes_its_new_priority_when_it_comes_back(store: Store) -> None:
    """A running job goes on; handed back, it stands in the line of its new priority."""
    ref = await add_one(store, spec=JobSpec(priority=2))
    held = await claim_one(store)
    other = await add_one(store, spec=JobSpec(priority=5))
    await store.change_priority(ref, 9)
    assert await state_of(store, ref) == State.ACTIVE
    await settle_one(store, held.lease, Released())
    assert await claim_ids(store) == [other.id, ref.id]


async def test_refuses_another_priority_for_a_finished_job(store: Store) -> None:
    """What has ended has no line to stand in: WrongState, and the job stays as it is."""
    for finish in (complete_one, fail_one):
        await add_one(store)
        ref = await finish(store)
        before = await store.job(ref)
        with pytest.raises(WrongState):
            await store.change_priority(ref, 3)
        assert await store.job(ref) == before


async def test_refuses_to_steer_a_missing_job(store: Store) -> None:
    """A job that is not there, or is another queue's, cannot be steered: JobMissing."""
    ref = await add_one(store, spec=_DELAYED)
    for missing in (JobRef(MAIL, "nobody"), JobRef("nowhere", ref.id)):
        with pytest.raises(JobMissing):
            await store.promote(missing)
        with pytest.raises(JobMissing):
            await store.change_delay(missing, 0)
        with pytest.raises(JobMissing):
            await store.change_priority(missing, 1)


async def test_race_a_changed_priority_and_a_claim_agree(harness: Harness, store: Store) -> None:
    """A job whose priority changes as another claims is claimed once, and counted once."""
    other = await harness.open()
    for turn in range(ROUNDS):
        ref = await add_one(store)
        _, claimed = await race(store.change_priority(ref, 4), claim(other), turn=turn)
        assert isinstance(claimed, tuple)
        assert [one.lease.ref for one in claimed] == [ref]
    assert await store.counts(MAIL) == Counts(active=ROUNDS)
