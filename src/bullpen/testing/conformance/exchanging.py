"""Promises of `exchange`: settle these and claim those, in one atomic trip."""

from bullpen.errors import BullpenError
from bullpen.job.record import CrashKind, CrashLimits, Lease
from bullpen.job.spec import JobSpec, NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Failed, Postponed, Released, Retry, Settlement
from bullpen.stores.base import Counts, Exchanged, SettleOutcome, Store
from bullpen.testing.conformance.moves import (
    BOOM,
    LEASE_MS,
    MAIL,
    WORKER,
    add_many,
    add_one,
    claim,
    claim_one,
    crash_during,
    fresh_request,
    race,
    settle_one,
    state_of,
)
from bullpen.testing.harness import Harness


async def _exchange(store: Store, settlements: list[Settlement], wants: dict[str, int]) -> Exchanged:
    return await store.exchange(settlements, wants, worker=WORKER, lease_ms=LEASE_MS, request=fresh_request())


async def test_an_exchange_settles_and_claims(store: Store) -> None:
    """One trip ends the jobs that are done and brings the next ones."""
    refs = await add_many(store, 3)
    done = await claim_one(store)
    exchanged = await _exchange(store, [Settlement(done.lease, Completed(b"1"))], {MAIL: 1})
    assert exchanged.settled == (SettleOutcome.SETTLED,)
    assert [one.lease.ref for one in exchanged.claimed.jobs] == [refs[1]]
    assert await store.counts(MAIL) == Counts(completed=1, active=1, waiting=1)


async def test_a_job_that_was_just_settled_may_be_claimed(store: Store) -> None:
    """The claim sees the queue as the settlements left it: a job handed back, and one that was added."""
    await add_one(store)
    first = await claim_one(store)
    exchanged = await _exchange(store, [Settlement(first.lease, Retry(BOOM))], {MAIL: 1})
    (second,) = exchanged.claimed.jobs
    assert second.lease.ref == first.lease.ref
    assert second.lease.epoch > first.lease.epoch
    then = Completed(then=(NewJob(MAIL, "next"),))
    exchanged = await _exchange(store, [Settlement(second.lease, then)], {MAIL: 1})
    assert [one.job.name for one in exchanged.claimed.jobs] == ["next"]


async def test_an_exchange_says_when_the_next_delayed_job_is_due(store: Store) -> None:
    """A job that the same trip postponed counts for the next due time."""
    await add_one(store)
    claimed = await claim_one(store)
    exchanged = await _exchange(store, [Settlement(claimed.lease, Postponed(5_000))], {MAIL: 1})
    assert exchanged.claimed.jobs == ()
    assert exchanged.claimed.next_due_ms == (await store.job(claimed.lease.ref)).run_at_ms


async def test_an_exchange_across_queues(store: Store) -> None:
    """Settlements and wants may be of different queues."""
    await add_one(store)
    await add_one(store, "calls", spec=JobSpec(priority=2))
    claimed = await claim_one(store)
    exchanged = await _exchange(store, [Settlement(claimed.lease, Completed())], {"calls": 1, MAIL: 1})
    assert [one.job.queue for one in exchanged.claimed.jobs] == ["calls"]


async def test_an_exchange_of_nothing_does_nothing(store: Store) -> None:
    """No settlements and no wants is an empty answer."""
    await add_one(store)
    assert await _exchange(store, [], {}) == Exchanged()
    assert await store.counts(MAIL) == Counts(waiting=1)


async def test_an_exchange_names_what_it_failed_by_itself(harness: Harness, store: Store) -> None:
    """A job that expired instead of being claimed, and one that was handed back once too often, are named."""
    crashing = await add_one(store)
    claimed = await claim_one(store)
    late = await add_one(store, spec=JobSpec(start_by_ms=harness.clock.now_ms() + 10))
    await harness.advance(11)
    released = Released(CrashKind.KILLED, CrashLimits(killed=0))
    answer = await _exchange(store, [Settlement(claimed.lease, released)], {MAIL: 5})
    assert set(answer.failed) == {crashing, late}
    assert (answer.settled, answer.claimed.jobs) == ((SettleOutcome.SETTLED,), ())
    assert [await state_of(store, ref) for ref in (crashing, late)] == [State.FAILED, State.FAILED]


async def test_an_exchange_is_whole_after_a_crash(harness: Harness, store: Store) -> None:
    """A crash in the middle of an exchange leaves both of its halves done, or neither."""
    ref, other = await add_many(store, 2)
    claimed = await claim_one(store)
    exchange = _exchange(store, [Settlement(claimed.lease, Completed())], {MAIL: 1})
    await crash_during(harness, store, exchange)
    survivor = await harness.open()
    states = (await state_of(survivor, ref), await state_of(survivor, other))
    assert states in ((State.ACTIVE, State.WAITING), (State.COMPLETED, State.ACTIVE))


async def test_refuses_a_lost_lease_and_claims_all_the_same(store: Store) -> None:
    """A settlement that is refused changes nothing and does not hinder the claim."""
    await add_many(store, 2)
    lost = (await claim_one(store)).lease
    await settle_one(store, lost, Completed())
    exchanged = await _exchange(store, [Settlement(lost, Failed(BOOM))], {MAIL: 1})
    assert exchanged.settled == (SettleOutcome.LEASE_LOST,)
    assert len(exchanged.claimed.jobs) == 1
    assert await store.counts(MAIL) == Counts(completed=1, active=1)


async def test_refuses_a_stranger_and_settles_the_others(store: Store) -> None:
    """A lease that was never given is reported as lost, in its place among the answers."""
    await add_many(store, 2)
    first, second = await claim(store, 2)
    stranger = Lease(first.lease.ref, "no such token", first.lease.epoch)
    batch = [Settlement(lease, Completed()) for lease in (first.lease, stranger, second.lease)]
    exchanged = await _exchange(store, batch, {MAIL: 1})
    assert exchanged.settled == (SettleOutcome.SETTLED, SettleOutcome.LEASE_LOST, SettleOutcome.SETTLED)


async def test_race_two_workers_drain_a_queue(harness: Harness, store: Store) -> None:
    """Two workers that exchange until nothing is left run every job once between them."""
    refs = await add_many(store, 60)
    other = await harness.open()
    first, second = await race(_work(store), _work(other), turn=0)
    assert not isinstance(first, BullpenError)
    assert not isinstance(second, BullpenError)
    assert sorted(first + second) == sorted(ref.id for ref in refs)
    assert await store.counts(MAIL) == Counts(completed=60)


async def _work(store: Store) -> list[str]:
    done: list[str] = []
    exchanged = await _exchange(store, [], {MAIL: 4})
    while held := exchanged.claimed.jobs:
        exchanged = await _exchange(store, [Settlement(one.lease, Completed()) for one in held], {MAIL: 4})
        assert set(exchanged.settled) == {SettleOutcome.SETTLED}
        done += [one.job.id for one in held]
    return done


async def test_race_a_released_job_has_one_next_holder(harness: Harness, store: Store) -> None:
    """A job that is handed back in an exchange while another claims is held by one of them."""
    other = await harness.open()
    await add_one(store)
    held = await claim_one(store)
    for turn in range(10):
        exchange = _exchange(store, [Settlement(held.lease, Released())], {MAIL: 1})
        exchanged, claimed = await race(exchange, claim(other, 1), turn=turn)
        assert not isinstance(exchanged, BullpenError)
        assert not isinstance(claimed, BullpenError)
        (held,) = exchanged.claimed.jobs + claimed
