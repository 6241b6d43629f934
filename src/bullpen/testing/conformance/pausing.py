"""Promises of `pause` and `resume`."""

import pytest

from bullpen.errors import QueueMissing
from bullpen.job.events import EventKind
from bullpen.job.spec import JobSpec
from bullpen.job.verdicts import Completed, Settlement
from bullpen.stores.base import Counts, SettleOutcome, Store
from bullpen.testing.conformance.moves import (
    LEASE_MS,
    MAIL,
    ROUNDS,
    WORKER,
    add_many,
    add_one,
    claim,
    claim_ids,
    claim_one,
    end_of_log,
    fresh_request,
    kinds_since,
    race,
    settle_one,
)
from bullpen.testing.harness import Harness


async def test_a_paused_queue_gives_nothing(harness: Harness, store: Store) -> None:
    """No job of a paused queue is claimed, in whatever line it stands; others go on."""
    for spec in (JobSpec(), JobSpec(priority=1), JobSpec(delay_ms=1_000)):
        await add_one(store, spec=spec)
    await add_one(store, "calls")
    await store.pause(MAIL)
    await harness.advance(1_001)
    claimed = await store.claim({MAIL: 5, "calls": 5}, worker=WORKER, lease_ms=LEASE_MS, request=fresh_request())
    assert [one.job.queue for one in claimed.jobs] == ["calls"]
    assert (await store.counts(MAIL)).paused


async def test_a_paused_queue_takes_adds(store: Store) -> None:
    """Jobs can be added to a paused queue, and run in their order when it goes on."""
    before = await add_one(store)
    await store.pause(MAIL)
    during = await add_one(store)
    assert await store.counts(MAIL) == Counts(waiting=2, paused=True)
    await store.resume(MAIL)
    after = await add_one(store)
    assert await claim_ids(store) == [before.id, during.id, after.id]
    assert not (await store.counts(MAIL)).paused


async def test_running_jobs_go_on_in_a_paused_queue(store: Store) -> None:
    """A pause takes nothing from a worker: its job can be settled, but no next one claimed."""
    await add_many(store, 2)
    held = await claim_one(store)
    await store.pause(MAIL)
    exchanged = await store.exchange(
        [Settlement(held.lease, Completed())], {MAIL: 1}, worker=WORKER, lease_ms=LEASE_MS, request=fresh_request()
    )
    assert exchanged.settled == (SettleOutcome.SETTLED,)
    assert exchanged.claimed.jobs == ()


async def test_a_pause_is_for_all_stores(harness: Harness, store: Store) -> None:
    """A queue that one process paused is paused for all."""
    await add_one(store)
    other = await harness.open()
    await store.pause(MAIL)
    assert await claim(other) == ()
    await other.resume(MAIL)
    assert len(await claim(store)) == 1


async def test_a_queue_can_be_paused_before_its_first_job(store: Store) -> None:
    """A pause of a queue that is not there yet holds for the jobs to come."""
    await store.pause(MAIL)
    await add_one(store)
    assert await claim(store) == ()
    assert await store.counts(MAIL) == Counts(waiting=1, paused=True)


async def test_pausing_and_resuming_are_told_once(store: Store) -> None:
    """To pause what is paused, or resume what runs, changes nothing and tells nothing."""
    await add_one(store)
    cursor = await end_of_log(store)
    for _ in range(2):
        await store.pause(MAIL)
    for _ in range(2):
        await store.resume(MAIL)
    assert await kinds_since(store, cursor) == [EventKind.PAUSED, EventKind.RESUMED]


async def test_refuses_to_resume_a_missing_queue(store: Store) -> None:
    """A mistyped queue is not silently resumed: QueueMissing."""
    with pytest.raises(QueueMissing):
        await store.resume("nowhere")
    assert list(await store.queues()) == []


async def test_race_nothing_is_claimed_after_a_pause(harness: Harness, store: Store) -> None:
    """A claim that meets a pause takes jobs or none; once the pause was answered, none is taken."""
    other = await harness.open()
    for turn in range(ROUNDS):
        queue = f"mail-{turn}"
        await add_many(store, 4, queue)
        _, claimed = await race(store.pause(queue), claim(other, 2, queue), turn=turn)
        assert isinstance(claimed, tuple)
        assert await claim(other, 2, queue) == ()
        assert await store.counts(queue) == Counts(waiting=4 - len(claimed), active=len(claimed), paused=True)
        for one in claimed:
            assert await settle_one(store, one.lease, Completed()) == SettleOutcome.SETTLED


async def test_race_two_pauses_are_one(harness: Harness, store: Store) -> None:
    """However many pause at once, one resume lets the queue go on."""
    await add_one(store)
    other = await harness.open()
    for turn in range(ROUNDS):
        await race(store.pause(MAIL), other.pause(MAIL), turn=turn)
        await store.resume(MAIL)
        assert not (await store.counts(MAIL)).paused
    assert len(await claim(store)) == 1
