"""Schedules as an application makes them and an operator steers them."""

from datetime import timedelta

import pytest

from bullpen import BadName, BadOption, Overlap, Queue, ScheduleMissing, State, dedup
from bullpen.job.verdicts import Completed
from bullpen.testing.clock import ManualClock
from bullpen.upkeep.advancer import advance
from tests.queue.working import WatchedStore, claim, complete_next, settle

HOUR_MS = 3_600_000


async def delayed(queue: Queue) -> list[str]:
    return [job.id for job in (await queue.jobs(State.DELAYED)).jobs]


async def tick(queue: Queue, store: WatchedStore, clock: ManualClock) -> str:
    """Let the next tick run, as a worker does."""
    (record,) = await queue.schedules.list()
    assert record.next_ms is not None
    clock.advance(max(0, record.next_ms - clock.now_ms()))
    (claimed,) = await claim(store)
    start = await store.start_tick(claimed.lease)
    assert start.record is not None
    await advance(store, start.record)
    await settle(store, claimed, Completed())
    return claimed.job.id


async def test_a_cron_is_made_and_ticks(queue: Queue, store: WatchedStore, clock: ManualClock) -> None:
    record = await queue.schedules.upsert("hourly", "sweep", {"deep": True}, cron="0 * * * *")
    assert record.next_ms == (clock.now_ms() // HOUR_MS + 1) * HOUR_MS
    assert record.schedule.overlap == Overlap.SKIP
    job_id = await tick(queue, store, clock)
    assert job_id == f"repeat:hourly:{record.next_ms}"
    assert await queue.job(job_id).data() == {"deep": True}
    assert (await queue.schedules.get("hourly")).next_ms == record.next_ms + HOUR_MS


async def test_the_same_again_changes_nothing(queue: Queue, store: WatchedStore, clock: ManualClock) -> None:
    """A deploy that makes its schedules anew moves none of them, though a tick is due or the limit half used."""
    for when in ({"every": 60, "limit": 5}, {"cron": "*/5 * * * *", "immediately": True}):
        first = await queue.schedules.upsert("s", "sweep", **when)
        await tick(queue, store, clock)
        clock.advance(10 * HOUR_MS)
        before = await queue.schedules.get("s")
        assert await queue.schedules.upsert("s", "sweep", **when) == before
        assert (before.count, before.ticks) == (2, 2)
        assert before.schedule.timing.limit == first.schedule.timing.limit
        await queue.schedules.remove("s")


async def test_the_same_times_with_other_data_keep_the_next_run(queue: Queue) -> None:
    before = await queue.schedules.upsert("s", "sweep", {"n": 1}, cron="0 * * * *")
    after = await queue.schedules.upsert("s", "other", {"n": 2}, cron="0 * * * *")
    assert after.next_ms == before.next_ms
    (job_id,) = await delayed(queue)
    assert await queue.job(job_id).data() == {"n": 2}


async def test_other_times_begin_anew(queue: Queue, clock: ManualClock) -> None:
    await queue.schedules.upsert("s", "sweep", cron="0 * * * *")
    record = await queue.schedules.upsert("s", "sweep", every=timedelta(minutes=5))
    assert record.next_ms == clock.now_ms()
    assert await delayed(queue) == []
    assert (await queue.counts()).waiting == 1


async def test_an_interval_stays_in_step(queue: Queue, store: WatchedStore, clock: ManualClock) -> None:
    """Late ticks do not move the later ones, and missed ones do not pile up."""
    start_ms = clock.now_ms()
    await queue.schedules.upsert("s", "sweep", every=60)
    await tick(queue, store, clock)
    clock.advance(30 * 60_000 + 17)
    assert await complete_next(store) == f"repeat:s:{start_ms + 60_000}"
    (idle,) = await store.idle_schedules(["work"])
    assert await advance(store, idle)
    assert (await queue.schedules.get("s")).next_ms == start_ms + 31 * 60_000


async def test_a_limit_ends_it(queue: Queue, store: WatchedStore, clock: ManualClock) -> None:
    await queue.schedules.upsert("s", "sweep", every=60, limit=2)
    await tick(queue, store, clock)
    await tick(queue, store, clock)
    record = await queue.schedules.get("s")
    assert (record.ended, record.next_ms, record.ticks) == (True, None, 2)
    assert (await queue.schedules.upsert("s", "sweep", every=60, limit=2)).ended, "the same again does not revive it"
    assert not (await queue.schedules.upsert("s", "sweep", every=60, limit=3)).ended


async def test_the_end_is_kept(queue: Queue, store: WatchedStore, clock: ManualClock) -> None:
    end = clock.now() + timedelta(seconds=90)
    await queue.schedules.upsert("s", "sweep", every=60, end=end)
    await tick(queue, store, clock)
    await tick(queue, store, clock)
    assert (await queue.schedules.get("s")).ended
    with pytest.raises(BadOption, match="end: no tick"):
        await queue.schedules.upsert("t", "sweep", every=60, end=clock.now() - timedelta(seconds=1))


async def test_the_start_is_waited_for(queue: Queue, clock: ManualClock) -> None:
    start = clock.now() + timedelta(days=2)
    record = await queue.schedules.upsert("s", "sweep", every=60, start=start)
    assert record.next_ms == round(start.timestamp() * 1000)


async def test_immediately(queue: Queue, clock: ManualClock) -> None:
    record = await queue.schedules.upsert("s", "sweep", cron="0 * * * *", immediately=True)
    assert record.next_ms == clock.now_ms()


async def test_pause_and_resume(queue: Queue, store: WatchedStore, clock: ManualClock) -> None:
    """Nothing comes while it is paused, nor after it for what was missed; a deploy does not resume it."""
    start_ms = clock.now_ms()
    await queue.schedules.upsert("s", "sweep", every=60, limit=3)
    await tick(queue, store, clock)
    paused = await queue.schedules.pause("s")
    assert (paused.paused, paused.next_ms) == (True, None)
    assert await queue.schedules.pause("s") == paused
    clock.advance(10 * 60_000 + 5)
    assert (await queue.counts()).unfinished == 0
    assert await store.idle_schedules(["work"]) == []
    assert (await queue.schedules.upsert("s", "sweep", every=60, limit=3)).paused
    resumed = await queue.schedules.resume("s")
    assert (resumed.next_ms, resumed.paused) == (start_ms + 11 * 60_000, False)
    assert await queue.schedules.resume("s") == resumed
    await tick(queue, store, clock)
    await tick(queue, store, clock)
    assert (await queue.schedules.get("s")).ended, "three ticks in all"


async def test_run_now_is_apart_from_the_ticks(queue: Queue, store: WatchedStore) -> None:
    before = await queue.schedules.upsert("s", "sweep", {"n": 1}, cron="0 * * * *")
    job = await queue.schedules.run_now("s")
    assert await queue.job(job.id).data() == {"n": 1}
    assert (await job.record()).spec.headers == {"schedule": "s"}
    assert await complete_next(store) == job.id
    assert await queue.schedules.get("s") == before


async def test_options_of_its_jobs_come_with_a_prepared_one(queue: Queue) -> None:
    job = queue.prepare("sweep", {"n": 1}, priority=3, attempts=4, timeout=9, tags=["x"])
    record = await queue.schedules.upsert("s", job, cron="0 * * * *")
    (job_id,) = await delayed(queue)
    spec = (await queue.job(job_id).record()).spec
    assert (spec.priority, spec.attempts, spec.timeout_ms, spec.tags) == (3, 4, 9_000, ("x",))
    assert record.schedule.spec == job.spec


async def test_refuses_what_cannot_be(queue: Queue, store: WatchedStore) -> None:
    other = Queue(store, "other").prepare("x")
    with pytest.raises(BadName):
        await queue.schedules.upsert("a:b", "sweep", every=5)
    with pytest.raises(BadOption, match="cron: "):
        await queue.schedules.upsert("s", "sweep")
    with pytest.raises(BadOption, match="job: "):
        await queue.schedules.upsert("s", other, every=5)
    for options in ({"id": "mine"}, {"delay": 5}, {"start_by": 5}, {"dedup": dedup("d")}):
        with pytest.raises(BadOption, match=f"{next(iter(options))}: "):
            await queue.schedules.upsert("s", queue.prepare("x", **options), every=5)
    for verb in (queue.schedules.get, queue.schedules.pause, queue.schedules.resume, queue.schedules.run_now):
        with pytest.raises(ScheduleMissing):
            await verb("s")
    with pytest.raises(ScheduleMissing):
        await queue.schedules.remove("s")
    assert await queue.schedules.list() == []
