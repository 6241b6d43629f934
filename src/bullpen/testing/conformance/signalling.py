"""Promises of `signal` and `receive`: a mailbox for each job."""

import pytest

from bullpen.errors import BullpenError, JobMissing, LeaseLost, MailboxFull, WrongState
from bullpen.job.entries import EntryKind, EntryState, JournalEntry
from bullpen.job.record import JobRef
from bullpen.job.state import State
from bullpen.job.verdicts import Failed, Parked, Released
from bullpen.stores.base import MAX_SIGNALS, Delivery, Store
from bullpen.testing.conformance.moves import (
    BOOM,
    MAIL,
    ROUNDS,
    add_one,
    claim,
    claim_one,
    complete_one,
    fresh_request,
    race,
    run_one,
    settle_one,
    state_of,
)
from bullpen.testing.harness import Harness


def _wait(place: int = 0, name: str = "approved") -> JournalEntry:
    return JournalEntry(place, name, EntryKind.WAIT)


async def _send(store: Store, ref: JobRef, name: str = "approved", payload: bytes = b"1") -> Delivery:
    return await store.signal(ref, name, payload, request=fresh_request())


async def test_a_signal_wakes_the_job_that_waits_for_it(store: Store) -> None:
    """A parked job is runnable in the same step, and receives the payload."""
    ref = await add_one(store)
    await run_one(store, Parked(signals=("approved",)))
    assert await _send(store, ref, payload=b'{"by":"ada"}') == Delivery.WOKEN
    held = await claim_one(store)
    received = await store.receive(ref, _wait(), epoch=held.lease.epoch)
    assert received is not None
    assert (received.state, received.value) == (EntryState.DONE, b'{"by":"ada"}')


async def test_any_of_the_awaited_signals_wakes(store: Store) -> None:
    """A job that waits for several is woken by each."""
    ref = await add_one(store)
    await run_one(store, Parked(signals=("approved", "rejected")))
    assert await _send(store, ref, "rejected") == Delivery.WOKEN
    assert await state_of(store, ref) == State.WAITING


async def test_another_signal_is_kept_and_does_not_wake(store: Store) -> None:
    """What a parked job does not wait for lies in its mailbox."""
    ref = await add_one(store)
    await run_one(store, Parked(signals=("approved",)))
    assert await _send(store, ref, "paid") == Delivery.KEPT
    assert await state_of(store, ref) == State.DELAYED


async def test_a_signal_may_come_before_anyone_waits(store: Store) -> None:
    """It is kept while the job waits in line or runs, and a job that parks for it wakes at once."""
    ref = await add_one(store)
    assert await _send(store, ref, "paid") == Delivery.KEPT
    held = await claim_one(store)
    assert await _send(store, ref) == Delivery.KEPT
    await settle_one(store, held.lease, Parked(signals=("approved",)))
    assert (await claim_one(store)).job.ref == ref


async def test_a_delayed_job_that_is_not_parked_is_not_woken(store: Store) -> None:
    """Signals wake only those who wait for them."""
    ref = await add_one(store)
    await run_one(store, Parked(signals=("approved",)))
    await store.promote(ref)
    assert await _send(store, ref) == Delivery.KEPT


async def test_signals_are_received_once_each_and_in_order(store: Store) -> None:
    """The oldest of a name first, each into its own place; then there are none."""
    ref = await add_one(store)
    for name, payload in (("approved", b"1"), ("paid", b"2"), ("approved", b"3")):
        await _send(store, ref, name, payload)
    epoch = (await claim_one(store)).lease.epoch
    received = [await store.receive(ref, _wait(place), epoch=epoch) for place in range(3)]
    assert [entry and entry.value for entry in received] == [b"1", b"3", None]


async def test_a_lost_answer_to_receive_takes_no_second_signal(store: Store) -> None:
    """The same place again gets the same payload, also in a later activation, and takes nothing."""
    ref = await add_one(store)
    await _send(store, ref, payload=b"1")
    await _send(store, ref, payload=b"2")
    held = await claim_one(store)
    first = await store.receive(ref, _wait(), epoch=held.lease.epoch)
    assert first == await store.receive(ref, _wait(), epoch=held.lease.epoch)
    await settle_one(store, held.lease, Released())
    epoch = (await claim_one(store)).lease.epoch
    assert first == await store.receive(ref, _wait(), epoch=epoch)
    second = await store.receive(ref, _wait(1), epoch=epoch)
    assert second is not None
    assert second.value == b"2"


async def test_a_received_signal_closes_an_open_wait(store: Store) -> None:
    """The entry that said since when the job waits gives way to what it received."""
    ref = await add_one(store)
    epoch = (await claim_one(store)).lease.epoch
    waiting = JournalEntry(0, "approved", EntryKind.WAIT, EntryState.OPEN, until_ms=5)
    await store.append_journal(ref, [waiting], epoch=epoch)
    await _send(store, ref)
    assert await store.receive(ref, _wait(), epoch=epoch) == JournalEntry(0, "approved", EntryKind.WAIT, value=b"1")


async def test_the_same_request_signals_once(store: Store) -> None:
    """Who lost the answer asks again: one signal is there, and the first answer comes again."""
    ref = await add_one(store)
    await run_one(store, Parked(signals=("approved",)))
    answers = [await store.signal(ref, "approved", b"1", request="the-same") for _ in range(2)]
    assert answers == [Delivery.WOKEN] * 2
    epoch = (await claim_one(store)).lease.epoch
    assert await store.receive(ref, _wait(0), epoch=epoch) is not None
    assert await store.receive(ref, _wait(1), epoch=epoch) is None


async def test_signals_outlive_a_failed_attempt_and_a_retry(store: Store) -> None:
    """What was not received is there when the job runs again."""
    ref = await add_one(store)
    await _send(store, ref)
    await run_one(store, Failed(BOOM))
    await store.retry(ref)
    epoch = (await claim_one(store)).lease.epoch
    assert await store.receive(ref, _wait(), epoch=epoch) is not None


async def test_a_job_under_the_same_id_finds_an_empty_mailbox(store: Store) -> None:
    """Signals go with their job."""
    ref = await add_one(store, own_id="order-1")
    await _send(store, ref)
    await store.remove(ref)
    await add_one(store, own_id="order-1")
    epoch = (await claim_one(store)).lease.epoch
    assert await store.receive(ref, _wait(), epoch=epoch) is None


async def test_refuses_a_signal_to_nobody(store: Store) -> None:
    """A job that is not there has no mailbox: JobMissing."""
    await add_one(store)
    for missing in (JobRef(MAIL, "nobody"), JobRef("nowhere", "1")):
        with pytest.raises(JobMissing):
            await _send(store, missing)


async def test_refuses_a_signal_to_a_finished_job(store: Store) -> None:
    """Nobody would receive it: WrongState."""
    await add_one(store)
    with pytest.raises(WrongState):
        await _send(store, await complete_one(store))


async def test_refuses_more_signals_than_a_mailbox_holds(store: Store) -> None:
    """A job that takes none cannot fill the store: MailboxFull, and those before are kept."""
    ref = await add_one(store)
    for _ in range(MAX_SIGNALS):
        await _send(store, ref)
    with pytest.raises(MailboxFull):
        await _send(store, ref)
    epoch = (await claim_one(store)).lease.epoch
    assert await store.receive(ref, _wait(), epoch=epoch) is not None
    assert await _send(store, ref) == Delivery.KEPT


async def test_refuses_to_receive_for_an_older_activation(store: Store) -> None:
    """Who lost the job takes no signal out of its mailbox: LeaseLost."""
    ref = await add_one(store)
    await _send(store, ref)
    old = await claim_one(store)
    await settle_one(store, old.lease, Released())
    with pytest.raises(LeaseLost):
        await store.receive(ref, _wait(), epoch=old.lease.epoch)
    epoch = (await claim_one(store)).lease.epoch
    with pytest.raises(LeaseLost):
        await store.receive(ref, _wait(), epoch=old.lease.epoch)
    assert await store.receive(ref, _wait(), epoch=epoch) is not None


async def test_race_two_signals_wake_once(harness: Harness, store: Store) -> None:
    """Of two that come at once one wakes the job; both are received."""
    other = await harness.open()
    for turn in range(ROUNDS):
        ref = await add_one(store)
        await run_one(store, Parked(signals=("approved",)))
        first, second = await race(_send(store, ref), _send(other, ref), turn=turn)
        assert not isinstance(first, BullpenError)
        assert not isinstance(second, BullpenError)
        assert sorted([first, second]) == [Delivery.KEPT, Delivery.WOKEN]
        (held,) = await claim(store, 2)
        received = [await store.receive(ref, _wait(place), epoch=held.lease.epoch) for place in (0, 1)]
        assert None not in received
        await settle_one(store, held.lease, Failed(BOOM))
