"""Promises of `claim`."""

from bullpen.errors import BullpenError
from bullpen.job.record import ClaimedJob, FailureKind, JobRef, Lease
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Released, Retry
from bullpen.stores.base import Claimed, Counts, SettleOutcome, Store
from bullpen.testing.conformance.moves import (
    BOOM,
    LEASE_MS,
    MAIL,
    ROUNDS,
    WORKER,
    add_many,
    add_one,
    claim,
    claim_ids,
    claim_one,
    fresh_request,
    race,
    run_one,
    settle_one,
)
from bullpen.testing.harness import Harness


async def _claim(store: Store, wants: dict[str, int]) -> Claimed:
    return await store.claim(wants, worker=WORKER, lease_ms=LEASE_MS, request=fresh_request())


async def test_a_claimed_job_is_active(harness: Harness, store: Store) -> None:
    """A claim brings the whole record, which says who runs it and since when."""
    before_ms = harness.clock.now_ms()
    ref = await add_one(store, data=b'{"user":1}')
    claimed = await claim_one(store)
    assert (claimed.lease.ref, claimed.job.ref, claimed.job.data) == (ref, ref, b'{"user":1}')
    assert (claimed.job.state, claimed.job.worker) == (State.ACTIVE, WORKER)
    assert claimed.job.started_ms is not None
    assert before_ms <= claimed.job.started_ms <= harness.clock.now_ms()
    assert await store.job(ref) == claimed.job


async def test_a_claimed_job_is_not_given_out_again(store: Store) -> None:
    """One claimant has a job at a time."""
    await add_one(store)
    await claim_one(store)
    assert await claim(store, 5) == ()


async def test_a_claim_takes_no_more_than_asked(store: Store) -> None:
    """Each queue gives as many as were wanted of it, or all it has."""
    await add_many(store, 5)
    await add_many(store, 1, "calls")
    claimed = await _claim(store, {MAIL: 2, "calls": 3})
    assert sorted(one.job.queue for one in claimed.jobs) == ["calls", MAIL, MAIL]
    assert await store.counts(MAIL) == Counts(waiting=3, active=2)


async def test_a_claim_of_none_takes_none(store: Store) -> None:
    """To want 0 jobs, or of a queue that is not there, takes nothing and makes no queue."""
    await add_one(store)
    assert (await _claim(store, {MAIL: 0, "nowhere": 3})).jobs == ()
    assert list(await store.queues()) == [MAIL]


async def test_the_epoch_grows_at_each_activation(store: Store) -> None:
    """Whoever is called on behalf of a job can tell an older activation by its smaller epoch."""
    await add_one(store)
    epochs = []
    for verdict in (Retry(BOOM), Released(), Completed()):
        claimed = await claim_one(store)
        assert claimed.job.epoch == claimed.lease.epoch
        epochs.append(claimed.lease.epoch)
        await settle_one(store, claimed.lease, verdict)
    assert epochs == sorted(set(epochs))
    assert epochs[0] > 0


async def test_tokens_differ(store: Store) -> None:
    """No two leases have the same token: neither of two jobs nor of two activations of one."""
    await add_many(store, 10)
    first = await claim(store, 10)
    for claimed in first:
        await settle_one(store, claimed.lease, Released())
    second = await claim(store, 10)
    assert len({claimed.lease.token for claimed in first + second}) == 20


async def test_a_claim_says_when_the_next_delayed_job_is_due(harness: Harness, store: Store) -> None:
    """The answer names the earliest due time of the asked queues, and of no other."""
    soon = await store.job(await add_one(store, spec=JobSpec(delay_ms=5_000)))
    await add_one(store, "calls", spec=JobSpec(delay_ms=9_000))
    await add_one(store, "other", spec=JobSpec(delay_ms=1_000))
    assert (await _claim(store, {"calls": 1, MAIL: 1})).next_due_ms == soon.run_at_ms
    await harness.advance(5_001)
    claimed = await _claim(store, {MAIL: 1})
    assert (len(claimed.jobs), claimed.next_due_ms) == (1, None)


async def test_a_late_job_expires_instead(harness: Harness, store: Store) -> None:
    """A job past its start-by time is not given out: it ends as failed, of kind expired."""
    late = await add_one(store, spec=JobSpec(start_by_ms=harness.clock.now_ms() + 1_000))
    fresh = await add_one(store, spec=JobSpec(start_by_ms=harness.clock.now_ms() + 60_000))
    await harness.advance(1_001)
    assert await claim_ids(store, 1) == [fresh.id]
    job = await store.job(late)
    assert (job.state, job.attempts_made) == (State.FAILED, 0)
    assert job.failure is not None
    assert job.failure.kind == FailureKind.EXPIRED


async def test_a_late_delayed_job_expires_when_it_is_due(harness: Harness, store: Store) -> None:
    """The start-by time also ends a job whose delay lasted longer than that."""
    spec = JobSpec(start_by_ms=harness.clock.now_ms() + 1_000, delay_ms=5_000)
    ref = await add_one(store, spec=spec)
    await harness.advance(5_001)
    assert await claim(store) == ()
    assert (await store.job(ref)).state == State.FAILED


async def test_a_started_job_does_not_expire(harness: Harness, store: Store) -> None:
    """The start-by time is for the first start: a retry after it runs."""
    ref = await add_one(store, spec=JobSpec(start_by_ms=harness.clock.now_ms() + 1_000, attempts=2))
    await run_one(store, Retry(BOOM))
    await harness.advance(60_000)
    assert await claim_ids(store) == [ref.id]


async def test_many_jobs_are_claimed_in_one_call(store: Store) -> None:
    """A claim of hundreds brings hundreds, each with a lease that can be settled."""
    refs = await add_many(store, 300)
    claimed = await claim(store, 300)
    assert [one.lease.ref for one in claimed] == refs
    assert await settle_one(store, claimed[-1].lease, Completed()) == SettleOutcome.SETTLED


async def test_refuses_a_lease_it_never_gave(store: Store) -> None:
    """A made-up token settles nothing, though the job is active and the epoch is right."""
    await add_one(store)
    claimed = await claim_one(store)
    forged = Lease(claimed.lease.ref, "0", claimed.lease.epoch)
    assert await settle_one(store, forged, Completed()) == SettleOutcome.LEASE_LOST
    assert await store.job(claimed.lease.ref) == claimed.job


async def test_race_two_claimants_get_disjoint_jobs(harness: Harness, store: Store) -> None:
    """Two workers that claim from one queue at once get every job once between them."""
    refs = await add_many(store, 100)
    other = await harness.open()
    first, second = await race(_claim_all(store), _claim_all(other), turn=0)
    assert not isinstance(first, BullpenError)
    assert not isinstance(second, BullpenError)
    assert sorted(first + second) == sorted(refs)
    assert await store.counts(MAIL) == Counts(active=100)


async def _claim_all(store: Store) -> list[JobRef]:
    taken: list[ClaimedJob] = []
    while some := await claim(store, 7):
        taken += some
    return [claimed.lease.ref for claimed in taken]


async def test_race_a_claim_and_an_add_lose_no_job(harness: Harness, store: Store) -> None:
    """A job that is added while another claims is claimed now or waits; it is never lost."""
    other = await harness.open()
    for turn in range(ROUNDS):
        claimed, ref = await race(claim_ids(store, 1), add_one(other), turn=turn)
        assert isinstance(ref, JobRef)
        assert isinstance(claimed, list)
        assert claimed + await claim_ids(store, 1) == [ref.id]
