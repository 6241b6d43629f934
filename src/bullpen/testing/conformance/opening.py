"""Promises of `open` and `close`: what was answered stays, however a process ends."""

import pytest

from bullpen.errors import BullpenError, QueueMissing, StoreUnavailable
from bullpen.job.record import JobRef
from bullpen.job.spec import JobSpec, NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Settlement
from bullpen.stores.base import Counts, Store
from bullpen.testing.conformance.moves import (
    MAIL,
    add,
    add_many,
    add_one,
    claim,
    claim_one,
    complete_one,
    crash_during,
    end_of_log,
    fail_one,
    fresh_request,
    kinds_since,
    race,
    state_of,
)
from bullpen.testing.harness import Harness


async def _one_in_each_state(store: Store) -> list[JobRef]:
    """Six jobs: completed, failed, active, waiting, prioritized, delayed."""
    refs = await add_many(store, 4)
    await complete_one(store)
    await fail_one(store)
    await claim_one(store)
    refs.append(await add_one(store, spec=JobSpec(priority=3)))
    refs.append(await add_one(store, spec=JobSpec(delay_ms=60_000)))
    return refs


async def test_what_was_answered_survives_a_crash(harness: Harness, store: Store) -> None:
    """After a kill at any moment, every job stands as its last answer said."""
    refs = await _one_in_each_state(store)
    jobs, counts = [await store.job(ref) for ref in refs], await store.counts(MAIL)
    await harness.crash(store)
    survivor = await harness.open()
    assert await survivor.counts(MAIL) == counts
    assert [await survivor.job(ref) for ref in refs] == jobs


async def test_what_was_answered_survives_a_close(harness: Harness, store: Store) -> None:
    """Closing the last store of a place forgets nothing."""
    refs = await _one_in_each_state(store)
    jobs, counts = [await store.job(ref) for ref in refs], await store.counts(MAIL)
    await store.close()
    reopened = await harness.open()
    assert await reopened.counts(MAIL) == counts
    assert [await reopened.job(ref) for ref in refs] == jobs


async def test_a_pause_and_the_log_survive_a_crash(harness: Harness, store: Store) -> None:
    """A paused queue is still paused after a crash, and its events can be read on from the old cursor."""
    cursor = await end_of_log(store)
    await add_one(store)
    await store.pause(MAIL)
    before = await kinds_since(store, cursor)
    await harness.crash(store)
    survivor = await harness.open()
    assert (await survivor.counts(MAIL)).paused
    assert await claim(survivor) == ()
    assert await kinds_since(survivor, cursor) == before


async def test_a_held_lease_survives_a_close(harness: Harness, store: Store) -> None:
    """A lease belongs to whoever has its token, not to the connection that claimed."""
    await add_one(store)
    claimed = await claim_one(store)
    other = await harness.open()
    await store.close()
    (outcome,) = await other.settle([Settlement(claimed.lease, Completed())], request=fresh_request())
    assert (outcome, await state_of(other, claimed.lease.ref)) == ("settled", State.COMPLETED)


async def test_stores_on_one_place_see_the_same_jobs(harness: Harness, store: Store) -> None:
    """What one store was told is seen by every other store of the place at once."""
    other = await harness.open()
    ref = await add_one(store)
    assert await state_of(other, ref) == State.WAITING
    await claim_one(other)
    assert await state_of(store, ref) == State.ACTIVE


async def test_a_store_makes_another_on_its_place(store: Store) -> None:
    """For another thread's event loop a store hands out an unopened one, with a life of its own."""
    ref = await add_one(store)
    another = store.another()
    await another.open()
    assert await state_of(another, ref) == State.WAITING
    await another.close()
    assert await state_of(store, ref) == State.WAITING


async def test_closing_twice_is_safe(store: Store) -> None:
    """A second close does nothing."""
    await store.close()
    await store.close()


async def test_a_closed_store_can_be_opened_again(store: Store) -> None:
    """Opening makes ready for use, also after a close."""
    ref = await add_one(store)
    await store.close()
    await store.open()
    assert await state_of(store, ref) == State.WAITING


async def test_a_batch_across_queues_is_whole_after_a_crash(harness: Harness, store: Store) -> None:
    """A crash in the middle of an add leaves all of its jobs or none, whatever their queues."""
    if not store.facts.atomic_across_queues:
        pytest.skip("facts.atomic_across_queues")
    await add(store, NewJob(MAIL, "first"), NewJob("calls", "first"))
    batch = [NewJob(queue, "more") for queue in (MAIL, "calls")] * 100
    await crash_during(harness, store, store.add(batch, request="batch"))
    survivor = await harness.open()
    waiting = [(await survivor.counts(queue)).waiting for queue in (MAIL, "calls")]
    assert waiting in ([1, 1], [101, 101])


async def test_a_completion_and_its_jobs_are_whole_after_a_crash(harness: Harness, store: Store) -> None:
    """A crash in the middle of a settle leaves a completion with what it adds, or neither."""
    ref = await add_one(store)
    claimed = await claim_one(store)
    settlement = Settlement(claimed.lease, Completed(then=(NewJob(MAIL, "next"),) * 50))
    await crash_during(harness, store, store.settle([settlement], request="settle"))
    survivor = await harness.open()
    done = await state_of(survivor, ref) == State.COMPLETED
    assert (await survivor.counts(MAIL)).waiting == (50 if done else 0)


async def test_refuses_work_once_closed(store: Store) -> None:
    """A verb on a closed store says so instead of hanging: StoreUnavailable."""
    await store.close()
    with pytest.raises(StoreUnavailable):
        await add_one(store)
    with pytest.raises(StoreUnavailable):
        await store.queues()


async def test_refuses_to_count_what_a_new_place_has_not(store: Store) -> None:
    """A place that was just made has no queues: QueueMissing."""
    assert list(await store.queues()) == []
    with pytest.raises(QueueMissing):
        await store.counts(MAIL)


async def test_race_two_opens_make_one_place(harness: Harness) -> None:
    """Two processes that open an empty place at once both find it ready, and the same."""
    first, second = await race(harness.open(), harness.open(), turn=0)
    assert not isinstance(first, BullpenError)
    assert not isinstance(second, BullpenError)
    await add_one(first)
    assert await second.counts(MAIL) == Counts(waiting=1)
