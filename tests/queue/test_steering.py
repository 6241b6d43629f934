"""Steering a queue, and one job, by hand."""

import asyncio

import pytest

from bullpen import FROM_START, EventKind, Failure, JobMissing, Queue, QueueMissing, State, WrongState, keep
from bullpen.job.verdicts import Failed, Settlement
from bullpen.stores.redis import steering as on_redis
from bullpen.stores.sqlite import steering as on_sqlite
from bullpen.testing.clock import ManualClock
from tests.queue.working import WatchedStore, claim, complete_next, fail_next, settle


async def test_a_paused_queue_gives_out_nothing_until_it_is_resumed(queue: Queue, store: WatchedStore) -> None:
    await queue.pause()
    await queue.pause()
    job = await queue.add("mail")
    assert (await queue.counts()).paused
    assert await claim(store) == ()
    await queue.resume()
    await queue.resume()
    assert [claimed.job.id for claimed in await claim(store)] == [job.id]
    events = (await store.events("work", after=FROM_START, limit=100, timeout_ms=0)).events
    kinds = [event.kind for event in events]
    assert (kinds.count(EventKind.PAUSED), kinds.count(EventKind.RESUMED)) == (1, 1)


async def test_a_queue_can_be_paused_before_it_has_a_job(queue: Queue, store: WatchedStore) -> None:
    await queue.pause()
    assert await store.queues() == ["work"]
    assert (await queue.counts()).paused


async def test_all_failed_jobs_are_retried_oldest_first(queue: Queue, store: WatchedStore, clock: ManualClock) -> None:
    jobs = await queue.add_bulk([queue.prepare("mail") for _ in range(5)])
    for _ in range(4):
        await fail_next(store)
        clock.advance(1)
    await complete_next(store)
    assert await queue.retry_all(limit=1) == 1
    assert [job.id for job in (await queue.jobs("waiting")).jobs] == [jobs[0].id]
    assert await queue.retry_all() == 3
    counts = await queue.counts()
    assert (counts.waiting, counts.failed, counts.completed) == (4, 0, 1)
    assert await queue.retry_all() == 0
    record = await jobs[0].record()
    assert (record.attempts_made, record.failure) == (0, None)
    assert await queue.retry_all("completed") == 1


async def test_what_fails_again_meanwhile_is_not_retried_over_and_over(
    queue: Queue, store: WatchedStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While what they need is still away, jobs fail as fast as they are put back: each is put back once."""
    monkeypatch.setattr(on_sqlite, "BULK", 2)
    monkeypatch.setattr(on_redis, "_BULK", 2)
    await queue.add_bulk([queue.prepare("mail") for _ in range(9)])
    for _ in range(9):
        await fail_next(store)

    async def fail_again() -> None:
        while True:
            clock.advance(1)
            for claimed in await claim(store, 9):
                await settle(store, claimed, Failed(Failure("no")))

    async with asyncio.timeout(30):
        failing = asyncio.create_task(fail_again())
        assert await queue.retry_all() == 9
        failing.cancel()


async def test_more_failed_jobs_than_one_commit_takes_are_retried(queue: Queue, store: WatchedStore) -> None:
    for part in range(6):
        await queue.add_bulk([queue.prepare("mail") for _ in range(1_000)])
        verdicts = [Settlement(one.lease, Failed(Failure("x"))) for one in await claim(store, 1_000)]
        await store.settle(verdicts, request=f"settle {part}")
    assert await queue.retry_all() == 6_000
    assert (await queue.counts()).waiting == 6_000
    assert await queue.drain() == 6_000
    assert (await queue.counts()).unfinished == 0


@pytest.mark.parametrize("state", ["waiting", "delayed", "active"])
async def test_only_finished_jobs_can_be_retried(queue: Queue, state: str) -> None:
    await queue.add("mail")
    with pytest.raises(WrongState, match=state):
        await queue.retry_all(state)
    assert (await queue.counts()).waiting == 1


async def test_draining_removes_what_waits_and_nothing_else(queue: Queue, store: WatchedStore) -> None:
    await queue.add("active")
    await claim(store)
    await queue.add("waiting")
    await queue.add("prioritized", priority=1)
    await queue.add("delayed", delay=60)
    assert await queue.drain() == 2
    counts = await queue.counts()
    assert (counts.active, counts.delayed, counts.unfinished) == (1, 1, 2)
    assert await queue.drain(delayed=True) == 1
    assert (await queue.counts()).unfinished == 1


async def test_cleaning_removes_the_old_ones_of_a_state(queue: Queue, store: WatchedStore, clock: ManualClock) -> None:
    jobs = await queue.add_bulk([queue.prepare("mail", keep_completed=keep()) for _ in range(3)])
    for _ in range(3):
        await complete_next(store)
        clock.advance(10_000)
    assert await queue.clean("completed", older_than=15, limit=1) == 1
    assert await queue.clean("completed", older_than=15) == 1
    assert [job.id for job in (await queue.jobs("completed")).jobs] == [jobs[2].id]
    assert await queue.clean("failed") == 0
    assert await queue.clean("completed") == 1


async def test_active_jobs_cannot_be_cleaned(queue: Queue, store: WatchedStore) -> None:
    await queue.add("mail")
    await claim(store)
    with pytest.raises(WrongState, match="cancel them"):
        await queue.clean("active")
    assert (await queue.counts()).active == 1


async def test_an_obliterated_queue_is_gone_with_all_that_it_knew(queue: Queue, store: WatchedStore) -> None:
    job = await queue.add("mail", id="once", dedup="subject")
    await queue.pause()
    await queue.obliterate()
    assert await store.queues() == []
    with pytest.raises(QueueMissing, match="'work'"):
        await queue.counts()
    with pytest.raises(JobMissing):
        await job.record()
    again = await queue.add("mail", id="once", dedup="subject")
    assert again.outcome == "added"
    assert not (await queue.counts()).paused


async def test_a_queue_with_running_jobs_is_obliterated_only_by_force(queue: Queue, store: WatchedStore) -> None:
    await queue.add("mail")
    await claim(store)
    with pytest.raises(WrongState, match="queue 'work' has 1 active jobs"):
        await queue.obliterate()
    assert (await queue.counts()).active == 1
    assert not (await queue.counts()).paused
    await queue.obliterate(force=True)
    assert await store.queues() == []


async def test_other_queues_are_left_alone(queue: Queue, store: WatchedStore) -> None:
    other = Queue(store, "other")
    await other.add("mail", id="same")
    await queue.add("mail", id="same")
    await queue.pause()
    await queue.drain()
    await queue.obliterate()
    assert (await other.counts()).waiting == 1
    assert not (await other.counts()).paused
    assert (await other.job("same").record()).state == State.WAITING


# ── one job ──────────────────────────────────────────────────────────────────────────────


async def test_a_job_is_steered_by_its_handle(queue: Queue, clock: ManualClock) -> None:
    job = await queue.add("mail", delay=60)
    await job.change_delay(120)
    assert (await job.record()).run_at_ms == clock.now_ms() + 120_000
    await job.promote()
    await job.change_priority(5)
    record = await job.record()
    assert (record.state, record.priority) == (State.PRIORITIZED, 5)
    await job.set_progress({"done": 3})
    assert (await job.record()).progress == b'{"done":3}'
    assert await job.log("one", "two") == 2
    assert await job.log("three") == 3
    assert await job.logs() == ("one", "two", "three")
    assert await job.logs(1, 1) == ("two",)
    assert await job.cancel("enough") == "cancelled"
    await job.retry()
    await job.remove()
    with pytest.raises(JobMissing):
        await job.record()
