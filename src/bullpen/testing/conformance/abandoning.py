"""Promises of `abandon`: claims whose answer was lost are handed back."""

from bullpen.errors import BullpenError
from bullpen.job.record import CrashLimits
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Settlement
from bullpen.stores.base import Claimed, Counts, SettleOutcome, Store
from bullpen.testing.conformance.moves import (
    LEASE_MS,
    MAIL,
    ROUNDS,
    WORKER,
    add_many,
    add_one,
    claim_ids,
    claim_one,
    race,
    settle_one,
    state_of,
)
from bullpen.testing.harness import Harness


async def _claim(store: Store, request: str, count: int = 1) -> Claimed:
    return await store.claim({MAIL: count}, worker=WORKER, lease_ms=LEASE_MS, request=request)


async def test_an_abandoned_claim_is_handed_back(store: Store) -> None:
    """All that the claim took waits again, with neither an attempt nor a crash counted."""
    refs = await add_many(store, 3)
    await _claim(store, "c1", 3)
    assert await store.abandon("c1") == 3
    jobs = [await store.job(ref) for ref in refs]
    assert {(job.state, job.attempts_made, job.stalls) for job in jobs} == {(State.WAITING, 0, 0)}


async def test_abandoned_jobs_stand_in_their_old_order(store: Store) -> None:
    """What was handed back runs next, in the order in which it would have run."""
    refs = await add_many(store, 5)
    await _claim(store, "c1", 3)
    await store.abandon("c1")
    assert await claim_ids(store) == [ref.id for ref in refs]


async def test_an_abandoned_exchange_gives_back_what_it_claimed(store: Store) -> None:
    """What an exchange settled stays settled; what it claimed is handed back."""
    await add_many(store, 2)
    done = await claim_one(store)
    await store.exchange(
        [Settlement(done.lease, Completed())], {MAIL: 1}, worker=WORKER, lease_ms=LEASE_MS, request="e1"
    )
    assert await store.abandon("e1") == 1
    assert await store.counts(MAIL) == Counts(completed=1, waiting=1)


async def test_abandon_works_from_another_process(harness: Harness, store: Store) -> None:
    """Whoever knows the request may hand its jobs back."""
    await add_one(store)
    await _claim(store, "c1")
    other = await harness.open()
    assert await other.abandon("c1") == 1


async def test_abandoning_twice_gives_back_once(store: Store) -> None:
    """The second time there is nothing to hand back, though another holds the job by now."""
    ref = await add_one(store)
    await _claim(store, "c1")
    await store.abandon("c1")
    await claim_one(store)
    assert await store.abandon("c1") == 0
    assert await state_of(store, ref) == State.ACTIVE


async def test_an_abandoned_request_claims_nothing_when_repeated(store: Store) -> None:
    """A late copy of an abandoned claim takes no job."""
    await add_one(store)
    await _claim(store, "c1")
    await store.abandon("c1")
    assert (await _claim(store, "c1")).jobs == ()
    assert await store.counts(MAIL) == Counts(waiting=1)


async def test_refuses_to_give_back_what_was_settled(store: Store) -> None:
    """A job that was settled since is not touched; the rest of its claim comes back."""
    await add_many(store, 2)
    claimed = await _claim(store, "c1", 2)
    await settle_one(store, claimed.jobs[0].lease, Completed())
    assert await store.abandon("c1") == 1
    assert await store.counts(MAIL) == Counts(completed=1, waiting=1)


async def test_refuses_to_give_back_what_another_holds(harness: Harness, store: Store) -> None:
    """A job that was rescued and claimed again belongs to its new holder."""
    await add_one(store)
    await _claim(store, "c1")
    await harness.advance(LEASE_MS + 1)
    await store.rescue([MAIL], limits=CrashLimits())
    current = await claim_one(store, worker="worker-2")
    assert await store.abandon("c1") == 0
    assert await settle_one(store, current.lease, Completed()) == SettleOutcome.SETTLED


async def test_refuses_an_unknown_request(store: Store) -> None:
    """A request that claimed nothing has nothing to hand back: 0."""
    await add_one(store)
    await claim_one(store)
    assert await store.abandon("never asked") == 0
    assert await store.counts(MAIL) == Counts(active=1)


async def test_race_abandon_and_settle_agree(harness: Harness, store: Store) -> None:
    """A job that is abandoned and settled at once is handed back or settled, never both."""
    other = await harness.open()
    for turn in range(ROUNDS):
        await add_one(store)
        claimed = await _claim(store, f"c{turn}")
        lease = claimed.jobs[0].lease
        returned, outcome = await race(store.abandon(f"c{turn}"), settle_one(other, lease, Completed()), turn=turn)
        assert not isinstance(returned, BullpenError)
        assert (returned, outcome) in ((1, SettleOutcome.LEASE_LOST), (0, SettleOutcome.SETTLED))
        assert await state_of(store, lease.ref) == (State.WAITING if returned else State.COMPLETED)
        await store.drain(MAIL, delayed=True)


async def test_race_two_abandons_give_back_once(harness: Harness, store: Store) -> None:
    """Two who abandon the same claim at once hand its jobs back once between them."""
    other = await harness.open()
    await add_many(store, 4)
    for turn in range(ROUNDS):
        await _claim(store, f"c{turn}", 4)
        first, second = await race(store.abandon(f"c{turn}"), other.abandon(f"c{turn}"), turn=turn)
        assert {first, second} == {4, 0}
    assert await store.counts(MAIL) == Counts(waiting=4)
