"""Promises of a queue's limits: how many run at once, how many start in a while, and closing for a while."""

import pytest

from bullpen.errors import QueueMissing
from bullpen.job.limits import NO_LIMITS, QueueLimits, QueueStanding
from bullpen.job.record import CrashLimits
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Limited, Released, Settlement
from bullpen.stores.base import Store
from bullpen.testing.conformance.groups import add_to
from bullpen.testing.conformance.moves import (
    LEASE_MS,
    MAIL,
    ROUNDS,
    WORKER,
    add_many,
    add_one,
    claim,
    claim_one,
    fresh_request,
    race,
    settle_one,
)
from bullpen.testing.harness import Harness

MINUTE_MS = 60_000


async def test_a_queue_s_concurrency_holds_for_all(harness: Harness, store: Store) -> None:
    """All workers together run no more than that; the end of one makes room."""
    other = await harness.open()
    await store.set_limits(MAIL, QueueLimits(concurrency=3))
    await add_many(store, 6)
    held = await claim(store, 2)
    assert len(await claim(other, 5, worker="worker-2")) == 1
    assert await claim(store, 5) == ()
    await settle_one(store, held[0].lease, Completed())
    assert len(await claim(other, 5)) == 1


async def test_a_queue_s_concurrency_counts_groups_too(store: Store) -> None:
    """Jobs in groups and others share the queue's places."""
    await store.set_limits(MAIL, QueueLimits(concurrency=3))
    await add_to(store, None, 2)
    await add_to(store, "a", 5)
    assert [one.job.spec.group for one in await claim(store, 9)] == [None, None, "a"]


async def test_who_waits_learns_of_a_free_place(harness: Harness, store: Store) -> None:
    """A sleeper of a full queue is woken when a place is free, though whoever freed it takes no more."""
    await store.set_limits(MAIL, QueueLimits(concurrency=1))
    await add_many(store, 2)
    held = await claim_one(store)
    assert not await store.wait([MAIL], timeout_ms=0)
    await settle_one(store, held.lease, Completed())
    assert await store.wait([MAIL], timeout_ms=0)


async def test_a_queue_s_rate_holds_for_all(harness: Harness, store: Store) -> None:
    """All workers together start no more within the window, and are told when it ends."""
    other = await harness.open()
    await store.set_limits(MAIL, QueueLimits(rate_max=3, rate_ms=MINUTE_MS))
    await add_many(store, 9)
    started_ms = harness.clock.now_ms()
    assert len(await claim(store, 2)) == 2
    assert len(await claim(other, 5)) == 1
    refused = await store.claim({MAIL: 5}, worker=WORKER, lease_ms=LEASE_MS, request=fresh_request())
    assert refused.jobs == ()
    assert refused.next_due_ms is not None
    assert 0 <= started_ms + MINUTE_MS - refused.next_due_ms < 30_000
    await harness.advance(MINUTE_MS + 1)
    assert len(await claim(store, 5)) == 3


async def test_the_end_of_a_job_is_no_new_start(store: Store) -> None:
    """A rate counts starts: jobs that ended within the window make no room."""
    await store.set_limits(MAIL, QueueLimits(rate_max=1, rate_ms=MINUTE_MS))
    await add_many(store, 2)
    held = await claim_one(store)
    exchanged = await store.exchange(
        [Settlement(held.lease, Completed())], {MAIL: 5}, worker=WORKER, lease_ms=LEASE_MS, request=fresh_request()
    )
    assert exchanged.claimed.jobs == ()


async def test_limits_are_read_as_they_were_set(harness: Harness, store: Store) -> None:
    """And an operator sees that a rate is used up."""
    await add_one(store)
    assert await store.limits(MAIL) == QueueStanding()
    limits = QueueLimits(concurrency=3, rate_max=1, rate_ms=MINUTE_MS)
    await store.set_limits(MAIL, limits)
    assert await store.limits(MAIL) == QueueStanding(limits)
    await claim_one(store)
    standing = await store.limits(MAIL)
    assert standing.limits == limits
    assert standing.closed_until_ms is not None
    await store.set_limits(MAIL, NO_LIMITS)
    assert await store.limits(MAIL) == QueueStanding()


async def test_limits_may_come_before_the_first_job(store: Store) -> None:
    """A queue can be limited before anything was added."""
    await store.set_limits(MAIL, QueueLimits(concurrency=1))
    await add_many(store, 2)
    assert len(await claim(store, 2)) == 1


async def test_limits_can_be_lifted(store: Store) -> None:
    """From then on all that waits can start."""
    await store.set_limits(MAIL, QueueLimits(concurrency=1, rate_max=1, rate_ms=MINUTE_MS))
    await add_many(store, 4)
    assert len(await claim(store, 5)) == 1
    await store.set_limits(MAIL, NO_LIMITS)
    assert len(await claim(store, 5)) == 3


async def test_refuses_to_tell_limits_of_no_queue(store: Store) -> None:
    """A queue that is not there has no limits: QueueMissing."""
    with pytest.raises(QueueMissing):
        await store.limits("nobody")


# ── closing ──────────────────────────────────────────────────────────────────────────────


async def test_a_handler_can_close_the_queue(harness: Harness, store: Store) -> None:
    """A limited job goes back to the head without an attempt, and no worker starts any for that long."""
    other = await harness.open()
    first, _ = await add_many(store, 2)
    held = await claim_one(store)
    await settle_one(store, held.lease, Limited(MINUTE_MS))
    until_ms = harness.clock.now_ms() + MINUTE_MS
    refused = await other.claim({MAIL: 5}, worker="worker-2", lease_ms=LEASE_MS, request=fresh_request())
    assert (refused.jobs, refused.next_due_ms) == ((), until_ms)
    assert (await store.limits(MAIL)).closed_until_ms == until_ms
    record = await store.job(first)
    assert (record.state, record.attempts_made, record.crashes) == (State.WAITING, 0, {})
    await harness.advance(MINUTE_MS + 1)
    again = await claim_one(other)
    assert again.job.id == first.id


async def test_a_shorter_closing_changes_nothing(harness: Harness, store: Store) -> None:
    """The longest of several closings stands."""
    await add_many(store, 2)
    one, two = await claim(store, 2)
    await settle_one(store, one.lease, Limited(MINUTE_MS))
    await settle_one(store, two.lease, Limited(1_000))
    await harness.advance(2_000)
    assert await claim(store, 2) == ()


async def test_a_queue_can_be_closed_from_outside(harness: Harness, store: Store) -> None:
    """No worker starts any of its jobs for that long; what runs goes on, and the longest of several closings stands."""
    other = await harness.open()
    await add_many(store, 3)
    held = await claim_one(store)
    await store.close_for(MAIL, MINUTE_MS)
    await other.close_for(MAIL, 1_000)
    until_ms = harness.clock.now_ms() + MINUTE_MS
    for one in (store, other):
        refused = await one.claim({MAIL: 5}, worker=WORKER, lease_ms=LEASE_MS, request=fresh_request())
        assert (refused.jobs, refused.next_due_ms) == ((), until_ms)
    assert (await other.limits(MAIL)).closed_until_ms == until_ms
    await settle_one(store, held.lease, Completed())
    await harness.advance(MINUTE_MS + 1)
    assert len(await claim(other, 5)) == 2


async def test_a_closing_leaves_the_limits_as_they_are(harness: Harness, store: Store) -> None:
    """What an operator set holds before, during and after it; it may come before the first job."""
    limits = QueueLimits(concurrency=2)
    await store.close_for(MAIL, MINUTE_MS)
    await store.set_limits(MAIL, limits)
    await store.close_for(MAIL, MINUTE_MS)
    await add_many(store, 3)
    assert await claim(store, 5) == ()
    assert (await store.limits(MAIL)).limits == limits
    await harness.advance(MINUTE_MS + 1)
    assert await store.limits(MAIL) == QueueStanding(limits)
    assert len(await claim(store, 5)) == 2


async def test_a_closing_within_a_used_up_window_ends_with_the_window(harness: Harness, store: Store) -> None:
    """Until when a queue gives out nothing is told as a whole: a rate that is used up outlasts a shorter closing."""
    await store.set_limits(MAIL, QueueLimits(rate_max=1, rate_ms=MINUTE_MS))
    await add_many(store, 2)
    held = await claim_one(store)
    ends_ms = harness.clock.now_ms() + MINUTE_MS
    await settle_one(store, held.lease, Limited(1_000))
    refused = await store.claim({MAIL: 1}, worker=WORKER, lease_ms=LEASE_MS, request=fresh_request())
    assert refused.jobs == ()
    for told_ms in (refused.next_due_ms, (await store.limits(MAIL)).closed_until_ms):
        assert told_ms is not None
        assert 0 <= ends_ms - told_ms < 30_000


async def test_a_job_without_a_group_closes_the_queue(store: Store) -> None:
    """Where there is no group to close, the queue is."""
    await add_many(store, 2)
    held = await claim_one(store)
    await settle_one(store, held.lease, Limited(MINUTE_MS, group_only=True))
    assert await claim(store) == ()


async def test_a_limited_job_that_was_cancelled_ends(store: Store) -> None:
    """A job that was asked to stop never runs again, also when it says that it is limited."""
    ref = await add_one(store)
    held = await claim_one(store)
    await store.cancel(ref, reason="asked")
    await settle_one(store, held.lease, Limited(MINUTE_MS))
    assert (await store.job(ref)).state == State.FAILED


async def test_a_closed_queue_takes_back_what_runs(store: Store) -> None:
    """While it is closed, others can be settled and handed back."""
    await add_many(store, 2)
    one, two = await claim(store, 2)
    await settle_one(store, one.lease, Limited(MINUTE_MS))
    await settle_one(store, two.lease, Released())
    assert (await store.counts(MAIL)).waiting == 2


# ── at most ──────────────────────────────────────────────────────────────────────────────


async def test_at_most_counts_all_queues_in_their_order(store: Store) -> None:
    """Earlier queues come first; the later have what is left."""
    await add_many(store, 2, "urgent")
    await add_many(store, 5, "usual")
    claimed = await store.claim(
        {"urgent": 4, "usual": 4}, worker=WORKER, lease_ms=LEASE_MS, request=fresh_request(), at_most=4
    )
    assert [one.job.queue for one in claimed.jobs] == ["urgent", "urgent", "usual", "usual"]


async def test_race_two_claims_of_a_limited_queue(harness: Harness, store: Store) -> None:
    """Two workers that claim at once exceed neither concurrency nor rate."""
    other = await harness.open()
    await store.set_limits(MAIL, QueueLimits(concurrency=2, rate_max=3, rate_ms=MINUTE_MS))
    for turn in range(ROUNDS):
        await add_many(store, 4)
        mine, theirs = await race(claim(store, 3), claim(other, 3, worker="worker-2"), turn=turn)
        assert isinstance(mine, tuple)
        assert isinstance(theirs, tuple)
        assert len(mine) + len(theirs) == 2
        for held in (*mine, *theirs):
            await settle_one(store, held.lease, Completed())
        assert len(await claim(store, 3)) == 1
        assert await claim(other, 3) == ()
        await harness.advance(MINUTE_MS + 1)
        await store.rescue([MAIL], limits=CrashLimits())
        await store.drain(MAIL, delayed=True)
