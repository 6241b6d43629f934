"""Promises of `wait`: no job that may run is slept through."""

import asyncio
from collections.abc import Awaitable

from bullpen.job.record import CrashLimits
from bullpen.job.spec import JobSpec
from bullpen.job.verdicts import Released, Retry
from bullpen.stores.base import Store
from bullpen.testing.conformance.moves import (
    BOOM,
    LEASE_MS,
    MAIL,
    PATIENCE_S,
    add_many,
    add_one,
    claim_ids,
    claim_one,
    complete_one,
    end_of_log,
    race,
    settle_one,
)
from bullpen.testing.harness import Harness

_LONG_MS = 600_000


async def _wakes(store: Store, move: Awaitable[object], *, queues: tuple[str, ...] = (MAIL,)) -> None:
    """Fall asleep on the queues, make the move, and be woken by it long before the deadline."""
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        sleeper = tasks.create_task(store.wait(queues, timeout_ms=_LONG_MS))
        await asyncio.sleep(0)
        await move
    assert sleeper.result()


async def test_a_job_that_waits_needs_no_waiting(store: Store) -> None:
    """With a runnable job in one of the queues the answer comes at once, though all are asked."""
    await add_one(store, "calls", spec=JobSpec(priority=1))
    async with asyncio.timeout(PATIENCE_S):
        assert await store.wait([MAIL, "calls"], timeout_ms=_LONG_MS)


async def test_the_deadline_is_kept(store: Store) -> None:
    """With nothing to run, also in queues that are not there, False comes at the deadline."""
    await add_one(store)
    await complete_one(store)
    async with asyncio.timeout(PATIENCE_S):
        assert not await store.wait([MAIL, "nowhere"], timeout_ms=30)
        assert not await store.wait([MAIL], timeout_ms=0)


async def test_a_due_job_ends_the_wait(harness: Harness, store: Store) -> None:
    """A delayed job wakes at its due time, with no other sign."""
    await add_one(store, spec=JobSpec(delay_ms=50))
    await _wakes(store, harness.advance(51))


async def test_a_paused_queue_is_waited_on(store: Store) -> None:
    """Jobs of a paused queue cannot run, so they end no wait."""
    await add_one(store)
    await store.pause(MAIL)
    async with asyncio.timeout(PATIENCE_S):
        assert not await store.wait([MAIL], timeout_ms=30)


async def test_an_add_wakes(harness: Harness, store: Store) -> None:
    """An add by another store wakes whoever waits, also on a queue that was not there."""
    await _wakes(store, add_one(await harness.open()))


async def test_an_add_to_any_of_the_queues_wakes(harness: Harness, store: Store) -> None:
    """One wait is for all queues of a worker."""
    await _wakes(store, add_one(await harness.open(), "third"), queues=(MAIL, "second", "third"))


async def test_a_nearer_due_time_wakes(harness: Harness, store: Store) -> None:
    """A delayed job that is due sooner than what was known ends the wait in its time."""
    await add_one(store, spec=JobSpec(delay_ms=_LONG_MS))
    other = await harness.open()

    async def add_and_be_due() -> None:
        await add_one(other, spec=JobSpec(delay_ms=50))
        await harness.advance(51)

    await _wakes(store, add_and_be_due())


async def test_a_promotion_wakes(harness: Harness, store: Store) -> None:
    """A delayed job that is promoted by hand wakes."""
    ref = await add_one(store, spec=JobSpec(delay_ms=_LONG_MS))
    await _wakes(store, (await harness.open()).promote(ref))


async def test_a_resume_wakes(harness: Harness, store: Store) -> None:
    """A queue that goes on wakes those who wait for its jobs."""
    await add_one(store)
    await store.pause(MAIL)
    await _wakes(store, (await harness.open()).resume(MAIL))


async def test_a_job_that_was_handed_back_wakes(harness: Harness, store: Store) -> None:
    """A release or a retry makes a job runnable, and wakes."""
    await add_many(store, 2)
    other = await harness.open()
    first, second = await claim_one(store), await claim_one(store)
    await _wakes(store, settle_one(other, first.lease, Released()))
    await claim_one(store)
    await _wakes(store, settle_one(other, second.lease, Retry(BOOM)))


async def test_a_retry_by_hand_wakes(harness: Harness, store: Store) -> None:
    """A finished job that is retried by hand wakes."""
    await add_one(store)
    ref = await complete_one(store)
    await _wakes(store, (await harness.open()).retry(ref))


async def test_a_rescue_wakes(harness: Harness, store: Store) -> None:
    """A job that was taken back from a lost worker wakes."""
    await add_one(store)
    await claim_one(store)
    await harness.advance(LEASE_MS + 1)
    await _wakes(store, (await harness.open()).rescue([MAIL], limits=CrashLimits()))


async def test_a_wait_can_be_given_up(store: Store) -> None:
    """Whoever waits and is cancelled ends at once, and the store goes on: a worker that stops need not wait."""
    cursor = await end_of_log(store)
    for asleep_s in (0, 0.05):
        sleepers: set[asyncio.Future[object]] = {
            asyncio.ensure_future(store.wait([MAIL], timeout_ms=_LONG_MS)),
            asyncio.ensure_future(store.notices("worker-1", timeout_ms=_LONG_MS)),
            asyncio.ensure_future(store.events(MAIL, after=cursor, limit=1, timeout_ms=_LONG_MS)),
        }
        # Fallen asleep or about to: either must end.
        await asyncio.wait(sleepers, timeout=asleep_s)
        for sleeper in sleepers:
            sleeper.cancel()
        ended, _ = await asyncio.wait(sleepers, timeout=PATIENCE_S)
        assert ended == sleepers
    await add_one(store)
    assert await store.wait([MAIL], timeout_ms=_LONG_MS)


async def test_all_who_wait_may_go_on(harness: Harness, store: Store) -> None:
    """Jobs for all of them wake all of them: nobody sleeps while a job waits."""
    stores = [store, *[await harness.open() for _ in range(3)]]
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        sleepers = [tasks.create_task(_take_one(one)) for one in stores]
        refs = await add_many(store, 4)
    assert sorted(sleeper.result() for sleeper in sleepers) == sorted(ref.id for ref in refs)


async def _take_one(store: Store) -> str:
    while True:
        if taken := await claim_ids(store, 1):
            return taken[0]
        await store.wait([MAIL], timeout_ms=_LONG_MS)


async def test_race_an_add_is_never_slept_through(harness: Harness, store: Store) -> None:
    """An add at the very moment of falling asleep is seen, whichever comes first."""
    other = await harness.open()
    for turn in range(40):
        queue = f"mail-{turn}"
        awake, _ = await race(store.wait([queue], timeout_ms=_LONG_MS), add_one(other, queue), turn=turn)
        assert awake is True
        assert len(await claim_ids(store, 1, queue)) == 1
