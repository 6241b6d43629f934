"""Promises of `rescue` and `report_crash`: jobs whose worker is gone run again, or fail in the end."""

import pytest

from bullpen.errors import BullpenError
from bullpen.job.record import CrashKind, CrashLimits, FailureKind, JobRecord
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.job.verdicts import Completed
from bullpen.stores.base import Counts, Renewal, Rescued, SettleOutcome, Store
from bullpen.testing.conformance.moves import (
    LEASE_MS,
    MAIL,
    ROUNDS,
    add_many,
    add_one,
    claim,
    claim_ids,
    claim_one,
    crash_during,
    fresh_request,
    leave_behind,
    race,
    settle_one,
    state_of,
)
from bullpen.testing.harness import Harness

_LIMITS = CrashLimits()


async def _lose_heartbeat(harness: Harness, store: Store, limits: CrashLimits = _LIMITS) -> Rescued:
    """Claim the next job, let its lease run out, rescue."""
    await claim_one(store)
    await harness.advance(LEASE_MS + 1)
    return await store.rescue([MAIL], limits=limits)


async def test_a_job_whose_lease_ran_out_waits_again(harness: Harness, store: Store) -> None:
    """A lost heartbeat counts as a crash of that kind, and uses no attempt."""
    ref = await add_one(store)
    assert await _lose_heartbeat(harness, store) == Rescued(recovered=(ref,))
    job = await store.job(ref)
    assert (job.state, job.attempts_made, job.crashes) == (State.WAITING, 0, {CrashKind.LOST_HEARTBEAT: 1})


async def test_a_lease_that_holds_is_left_alone(harness: Harness, store: Store) -> None:
    """A rescue takes nothing from a worker that is in time."""
    ref = await add_one(store)
    await claim_one(store)
    await harness.advance(LEASE_MS - 1_000)
    assert await store.rescue([MAIL], limits=_LIMITS) == Rescued()
    assert await state_of(store, ref) == State.ACTIVE


async def test_only_the_asked_queues_are_swept(harness: Harness, store: Store) -> None:
    """A rescue of one queue leaves the others to theirs, and a queue that is not there is none."""
    await add_one(store)
    await claim_one(store)
    await harness.advance(LEASE_MS + 1)
    assert await store.rescue(["calls", "nowhere"], limits=_LIMITS) == Rescued()
    assert (await store.counts(MAIL)).active == 1


async def test_rescued_jobs_go_to_the_head_of_their_lines(harness: Harness, store: Store) -> None:
    """What was lost runs next, in its old order, each with its priority."""
    plain = await add_many(store, 2)
    ranked = await add_many(store, 2, spec=JobSpec(priority=4))
    await claim(store, 4)
    later = await add_one(store)
    better = await add_one(store, spec=JobSpec(priority=1))
    await harness.advance(LEASE_MS + 1)
    await store.rescue([MAIL], limits=_LIMITS)
    expected = [*plain, later, better, *ranked]
    assert await claim_ids(store) == [ref.id for ref in expected]


async def test_a_killed_process_is_no_loss(harness: Harness, store: Store) -> None:
    """What a killed process held runs again once it is rescued, with one stall counted."""
    refs = await add_many(store, 3)
    await claim(store, 2)
    survivor = await leave_behind(harness, store)
    rescued = await survivor.rescue([MAIL], limits=_LIMITS)
    assert (sorted(rescued.recovered), rescued.failed) == (sorted(refs[:2]), ())
    assert [(await survivor.job(ref)).stalls for ref in refs] == [1, 1, 0]
    assert await survivor.counts(MAIL) == Counts(waiting=3)


async def test_a_killed_process_is_noticed_at_once(harness: Harness, store: Store) -> None:
    """A store that detects dead processes does not wait for their leases, and counts a kill."""
    if not store.facts.detects_dead_processes:
        pytest.skip("facts.detects_dead_processes")
    ref = await add_one(store)
    await claim_one(store)
    await harness.crash(store)
    survivor = await harness.open()
    assert await survivor.rescue([MAIL], limits=_LIMITS) == Rescued(recovered=(ref,))
    assert (await survivor.job(ref)).crashes == {CrashKind.KILLED: 1}


async def test_a_lease_held_elsewhere_outlives_who_claimed_it(harness: Harness, store: Store) -> None:
    """Claimed for a caller behind us, it stands when we are gone: renewed and settled through any other store."""
    ref = await add_one(store)
    claimed = await store.claim(
        {MAIL: 1}, worker="far away", lease_ms=LEASE_MS, request=fresh_request(), held_elsewhere=True
    )
    await harness.crash(store)
    other = await harness.open()
    assert await other.rescue([MAIL], limits=_LIMITS) == Rescued()
    lease = claimed.jobs[0].lease
    assert list(await other.renew([lease], lease_ms=LEASE_MS)) == [Renewal.HELD]
    await settle_one(other, lease, Completed(b'"done"'))
    assert (await other.job(ref)).result == b'"done"'


async def test_a_lease_held_elsewhere_runs_out_as_any_other(harness: Harness, store: Store) -> None:
    """Where its holder falls silent, the job waits again."""
    ref = await add_one(store)
    await store.claim({MAIL: 1}, worker="far away", lease_ms=LEASE_MS, request=fresh_request(), held_elsewhere=True)
    await harness.advance(LEASE_MS + 1)
    assert await store.rescue([MAIL], limits=_LIMITS) == Rescued(recovered=(ref,))


async def test_a_claim_whose_answer_never_arrived_is_no_crash(harness: Harness, store: Store) -> None:
    """A process that was killed before it heard of its job never started it, and no crash is counted."""
    if not store.facts.detects_dead_processes:
        pytest.skip("facts.detects_dead_processes")
    ref = await add_one(store)
    await crash_during(harness, store, claim_one(store))
    survivor = await harness.open()
    await survivor.rescue([MAIL], limits=CrashLimits(killed=0, total=0))
    job = await survivor.job(ref)
    assert (job.state, job.crashes) == (State.WAITING, {})


async def test_a_job_that_stalls_too_often_fails(harness: Harness, store: Store) -> None:
    """Over the limit of its kind the job ends as failed, of kind stalled."""
    ref = await add_one(store)
    limits = CrashLimits(lost_heartbeat=1, total=9)
    assert await _lose_heartbeat(harness, store, limits) == Rescued(recovered=(ref,))
    assert await _lose_heartbeat(harness, store, limits) == Rescued(failed=(ref,))
    assert await claim(store) == ()
    _is_stalled(await store.job(ref))


def _is_stalled(job: JobRecord) -> None:
    assert (job.state, job.attempts_made) == (State.FAILED, 0)
    assert job.failure is not None
    assert job.failure.kind == FailureKind.STALLED


async def test_crashes_of_all_kinds_have_a_common_limit(harness: Harness, store: Store) -> None:
    """Each kind may be within its own limit and the sum still too much."""
    ref = await add_one(store)
    limits = CrashLimits(killed=5, out_of_memory=5, lost_heartbeat=5, total=2)
    await _lose_heartbeat(harness, store, limits)
    await _report(store, CrashKind.KILLED, limits)
    assert await _report(store, CrashKind.OUT_OF_MEMORY, limits) == Rescued(failed=(ref,))
    job = await store.job(ref)
    assert job.crashes == {CrashKind.LOST_HEARTBEAT: 1, CrashKind.KILLED: 1, CrashKind.OUT_OF_MEMORY: 1}
    _is_stalled(job)


async def _report(store: Store, kind: CrashKind, limits: CrashLimits = _LIMITS) -> Rescued:
    claimed = await claim_one(store, worker="doomed")
    assert claimed.job.worker == "doomed"
    return await store.report_crash("doomed", kind, limits=limits)


async def test_each_kind_of_crash_has_its_own_limit(store: Store) -> None:
    """A limit of 0 for one kind fails the job at its first crash of that kind, and of no other."""
    ref = await add_one(store)
    limits = CrashLimits(killed=9, out_of_memory=0, total=9)
    assert await _report(store, CrashKind.KILLED, limits) == Rescued(recovered=(ref,))
    assert await _report(store, CrashKind.OUT_OF_MEMORY, limits) == Rescued(failed=(ref,))


async def test_deploys_are_never_held_against_a_job(store: Store) -> None:
    """A job may be handed back by deploys as often as it takes; they are recorded."""
    ref = await add_one(store)
    for _ in range(5):
        assert await _report(store, CrashKind.DEPLOY, CrashLimits(total=0)) == Rescued(recovered=(ref,))
    job = await store.job(ref)
    assert (job.crashes, job.stalls) == ({CrashKind.DEPLOY: 5}, 0)


async def test_a_reported_crash_takes_back_all_of_that_worker(store: Store) -> None:
    """Whoever saw a worker end hands back what it held in every queue, and nothing of others."""
    mine = [*await add_many(store, 2), await add_one(store, "calls")]
    await claim(store, 2, worker="doomed")
    await claim_one(store, "calls", worker="doomed")
    theirs = await add_one(store)
    await claim_one(store, worker="other")
    rescued = await store.report_crash("doomed", CrashKind.KILLED, limits=_LIMITS)
    assert sorted(rescued.recovered) == sorted(mine)
    assert await state_of(store, theirs) == State.ACTIVE


async def test_jobs_of_a_reported_crash_stand_in_their_old_order(store: Store) -> None:
    """What a worker held runs next, in the order in which it would have run."""
    refs = await add_many(store, 4)
    await claim(store, 3, worker="doomed")
    await store.report_crash("doomed", CrashKind.KILLED, limits=_LIMITS)
    assert await claim_ids(store) == [ref.id for ref in refs]


async def test_refuses_the_old_holder_after_a_rescue(harness: Harness, store: Store) -> None:
    """Once a job was taken back, its old lease settles nothing, also while nobody else has it."""
    ref = await add_one(store)
    lease = (await claim_one(store)).lease
    await harness.advance(LEASE_MS + 1)
    await store.rescue([MAIL], limits=_LIMITS)
    assert await settle_one(store, lease, Completed()) == SettleOutcome.LEASE_LOST
    assert await state_of(store, ref) == State.WAITING


async def test_refuses_to_take_from_a_worker_that_holds_nothing(store: Store) -> None:
    """To report the crash of a worker that is not known takes nothing back."""
    ref = await add_one(store)
    await claim_one(store)
    assert await store.report_crash("stranger", CrashKind.KILLED, limits=_LIMITS) == Rescued()
    assert await state_of(store, ref) == State.ACTIVE


async def test_race_two_rescues_recover_a_job_once(harness: Harness, store: Store) -> None:
    """Two processes that rescue at once take each job back once, and count one crash."""
    other = await harness.open()
    for turn in range(ROUNDS):
        queue = f"mail-{turn}"
        refs = await add_many(store, 3, queue)
        await claim(store, 3, queue)
        await harness.advance(LEASE_MS + 1)
        first, second = await race(
            store.rescue([queue], limits=_LIMITS), other.rescue([queue], limits=_LIMITS), turn=turn
        )
        assert isinstance(first, Rescued)
        assert isinstance(second, Rescued)
        assert sorted(first.recovered + second.recovered) == sorted(refs)
        assert [(await store.job(ref)).stalls for ref in refs] == [1, 1, 1]


async def test_race_a_rescue_and_a_late_settlement_agree(harness: Harness, store: Store) -> None:
    """A verdict that comes as the job is taken back is carried out or refused, never half."""
    other = await harness.open()
    for turn in range(ROUNDS):
        queue = f"mail-{turn}"
        await add_one(store, queue)
        lease = (await claim_one(store, queue)).lease
        await harness.advance(LEASE_MS + 1)
        rescued, outcome = await race(
            other.rescue([queue], limits=_LIMITS), settle_one(store, lease, Completed()), turn=turn
        )
        assert isinstance(rescued, Rescued)
        assert not isinstance(outcome, BullpenError)
        settled = outcome == SettleOutcome.SETTLED
        assert rescued.recovered == (() if settled else (lease.ref,))
        assert await store.counts(queue) == (Counts(completed=1) if settled else Counts(waiting=1))
