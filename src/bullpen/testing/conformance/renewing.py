"""Promises of `renew`."""

from bullpen.errors import BullpenError
from bullpen.job.record import CrashLimits, Lease
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Released
from bullpen.stores.base import Renewal, Rescued, SettleOutcome, Store
from bullpen.testing.conformance.moves import (
    LEASE_MS,
    MAIL,
    ROUNDS,
    add_many,
    add_one,
    claim,
    claim_one,
    race,
    settle_one,
    state_of,
)
from bullpen.testing.harness import Harness


async def test_a_renewed_lease_holds_on(harness: Harness, store: Store) -> None:
    """Each renewal extends the lease from now: a job may run as long as its worker renews."""
    await add_one(store)
    lease = (await claim_one(store)).lease
    for _ in range(5):
        await harness.advance(LEASE_MS - 1_000)
        assert list(await store.renew([lease], lease_ms=LEASE_MS)) == [Renewal.HELD]
        assert await store.rescue([MAIL], limits=CrashLimits()) == Rescued()
    assert await settle_one(store, lease, Completed()) == SettleOutcome.SETTLED


async def test_a_renewal_may_be_for_another_time(harness: Harness, store: Store) -> None:
    """The time of a renewal counts, not that of the claim."""
    await add_one(store)
    lease = (await claim_one(store)).lease
    await store.renew([lease], lease_ms=10 * LEASE_MS)
    await harness.advance(9 * LEASE_MS)
    assert await store.rescue([MAIL], limits=CrashLimits()) == Rescued()
    await harness.advance(LEASE_MS + 1)
    assert (await store.rescue([MAIL], limits=CrashLimits())).recovered == (lease.ref,)


async def test_a_renewal_says_what_is_to_stop(store: Store) -> None:
    """A lease whose job someone asked to stop is held, and says so at every renewal."""
    ref = await add_one(store)
    lease = (await claim_one(store)).lease
    await store.cancel(ref, reason="enough")
    for _ in range(2):
        assert list(await store.renew([lease], lease_ms=LEASE_MS)) == [Renewal.CANCELLING]


async def test_renewals_are_answered_in_the_order_asked(store: Store) -> None:
    """Each lease has its own answer, in its place."""
    await add_many(store, 4)
    held, settled, cancelling, last = [one.lease for one in await claim(store, 4)]
    await settle_one(store, settled, Completed())
    await store.cancel(cancelling.ref, reason="")
    renewals = await store.renew([held, settled, cancelling, last], lease_ms=LEASE_MS)
    assert list(renewals) == [Renewal.HELD, Renewal.LOST, Renewal.CANCELLING, Renewal.HELD]


async def test_any_store_may_renew(harness: Harness, store: Store) -> None:
    """A lease may be renewed through another store than the one that claimed."""
    await add_one(store)
    lease = (await claim_one(store)).lease
    other = await harness.open()
    assert list(await other.renew([lease], lease_ms=LEASE_MS)) == [Renewal.HELD]


async def test_renewing_nothing_is_nothing(store: Store) -> None:
    """No leases, no answers."""
    assert list(await store.renew([], lease_ms=LEASE_MS)) == []


async def test_refuses_a_lease_that_was_rescued(harness: Harness, store: Store) -> None:
    """A lease that ran out and was rescued is lost, also when another holds the job by now."""
    await add_one(store)
    lost = (await claim_one(store)).lease
    await harness.advance(LEASE_MS + 1)
    await store.rescue([MAIL], limits=CrashLimits())
    assert list(await store.renew([lost], lease_ms=LEASE_MS)) == [Renewal.LOST]
    current = (await claim_one(store)).lease
    assert list(await store.renew([lost, current], lease_ms=LEASE_MS)) == [Renewal.LOST, Renewal.HELD]


async def test_refuses_a_lease_that_was_given_back(store: Store) -> None:
    """After a settlement there is nothing to renew, and the job stays as it is."""
    ref = await add_one(store)
    lease = (await claim_one(store)).lease
    await settle_one(store, lease, Released())
    assert list(await store.renew([lease], lease_ms=LEASE_MS)) == [Renewal.LOST]
    assert await state_of(store, ref) == State.WAITING


async def test_refuses_a_token_it_never_gave(harness: Harness, store: Store) -> None:
    """A made-up token renews nothing: the true lease still runs out."""
    await add_one(store)
    lease = (await claim_one(store)).lease
    await harness.advance(LEASE_MS - 1_000)
    forged = Lease(lease.ref, "0", lease.epoch)
    assert list(await store.renew([forged], lease_ms=LEASE_MS)) == [Renewal.LOST]
    await harness.advance(1_001)
    assert (await store.rescue([MAIL], limits=CrashLimits())).recovered == (lease.ref,)


async def test_race_a_renewal_and_a_rescue_agree(harness: Harness, store: Store) -> None:
    """When a late renewal meets a rescue, either the worker keeps the job or the rescue takes it."""
    other = await harness.open()
    for turn in range(ROUNDS):
        queue = f"mail-{turn}"
        await add_one(store, queue)
        lease = (await claim_one(store, queue)).lease
        await harness.advance(LEASE_MS + 1)
        renewals, rescued = await race(
            store.renew([lease], lease_ms=LEASE_MS), other.rescue([queue], limits=CrashLimits()), turn=turn
        )
        assert not isinstance(renewals, BullpenError)
        assert isinstance(rescued, Rescued)
        kept = list(renewals) == [Renewal.HELD]
        assert rescued.recovered == (() if kept else (lease.ref,))
        assert await state_of(store, lease.ref) == (State.ACTIVE if kept else State.WAITING)


async def test_race_a_renewal_and_a_settlement_agree(harness: Harness, store: Store) -> None:
    """A renewal that meets the job's end never brings the job back."""
    other = await harness.open()
    for turn in range(ROUNDS):
        await add_one(store)
        lease = (await claim_one(store)).lease
        _, outcome = await race(
            other.renew([lease], lease_ms=LEASE_MS), settle_one(store, lease, Completed()), turn=turn
        )
        assert outcome == SettleOutcome.SETTLED
        assert await state_of(store, lease.ref) == State.COMPLETED
        assert list(await other.renew([lease], lease_ms=LEASE_MS)) == [Renewal.LOST]
