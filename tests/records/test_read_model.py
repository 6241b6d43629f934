"""The read model: after whatever happened, it is what a full look at the store would find."""

import asyncio
import random
from collections import Counter
from typing import Any

import msgspec
import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen import Failure, Queue, State, keep
from bullpen.errors import RecordsUnavailable
from bullpen.job.verdicts import Completed, Failed, Retry, Verdict
from bullpen.records.model.feeder import ModelFeeder
from bullpen.records.records import Records
from bullpen.records.tables.model import stream
from bullpen.records.turn_lease import HOLD_MS
from bullpen.stores.base import Store
from bullpen.testing.clock import ManualClock
from tests.records.comparing import check_model, rows_of
from tests.records.scene import Scene
from tests.support.around import StoreAround


async def test_a_job_is_followed_through_its_life(
    records: Records, store: Store, queue: Queue, feeder: ModelFeeder, scene: Scene, clock: ManualClock
) -> None:
    await queue.add("welcome", {"user": "ann", "secret": "s3cret"}, id="one", tenant="acme", tags=["new"], priority=3)
    await feeder.catch_up()
    (job,) = (await records.jobs.list()).jobs
    assert (job.id, job.state, job.tenant, job.tags, job.fields) == (
        "one",
        "prioritized",
        "acme",
        ("new",),
        {"user": "ann"},
    )
    clock.advance(100)
    await scene.end(Retry(Failure("connection 17 refused", type="OSError"), delay_ms=1_000))
    await feeder.catch_up()
    (job,) = (await records.jobs.list()).jobs
    assert (job.state, job.error, job.fingerprint) == ("delayed", "connection 17 refused", None)
    clock.advance(1_000)
    await scene.end(Failed(Failure("connection 18 refused", type="OSError")))
    await feeder.catch_up()
    (job,) = (await records.jobs.list()).jobs
    assert (job.state, job.error_type, job.finished_ms) == ("failed", "OSError", clock.now_ms())
    assert job.fingerprint
    await check_model(records, store)
    await queue.job("one").remove()
    await feeder.catch_up()
    assert (await records.jobs.list()).jobs == ()
    await check_model(records, store)


async def test_nothing_of_the_data_is_kept_unless_it_is_asked_for(records: Records, store: Store, queue: Queue) -> None:
    await queue.add("welcome", {"user": "ann", "secret": "s3cret"}, id="one")
    await records.feeder(store).catch_up()
    (job,) = (await records.jobs.list()).jobs
    assert job.fields == {}
    assert (await records.jobs.search("ann")).jobs == ()


async def test_what_retention_takes_goes_without_an_event(
    records: Records, store: Store, queue: Queue, either: ModelFeeder, scene: Scene, clock: ManualClock
) -> None:
    """Kept by count, kept not at all, cleaned by hand, and in the same millisecond as others."""
    for n in range(12):
        kept = keep(count=0) if n % 4 == 3 else keep(count=3)
        await queue.add("welcome", id=f"job-{n}", keep_completed=kept)
        if n == 6:
            await either.catch_up()
    for n in range(12):
        await scene.end(Completed())
        if n == 5:
            await either.catch_up()
        if n % 3 == 0:
            clock.advance(5)
    await either.catch_up()
    await check_model(records, store)
    await store.clean("mail", State.COMPLETED, older_than_ms=0, limit=2)
    await either.catch_up()
    await check_model(records, store)


async def test_progress_costs_no_look_at_the_job(
    records: Records, store: Store, queue: Queue, feeder: ModelFeeder
) -> None:
    """No row knows how far a job has come; that it was read is written all the same."""
    job = await queue.add("long")
    await feeder.catch_up()
    looked: list[str] = []
    around = StoreAround(store)

    async def look(queue: str, ids: Any) -> Any:
        looked.extend(ids)
        return await store.look(queue, ids)

    around.look = look
    feeder._source.store = around
    for n in range(5):
        await store.set_progress(job.ref, str(n).encode())
    await feeder.catch_up()
    assert looked == []
    end = await store.events("mail", after=None, limit=1, timeout_ms=0)
    async with records.database.reading() as connection:
        assert (await connection.execute(select(stream.c.cursor))).scalar_one() == end.cursor
    await store.remove(job.ref)
    await feeder.catch_up()
    assert looked == [job.id]
    await check_model(records, store)


@pytest.mark.parametrize("sign", [1, -1])
async def test_a_job_with_the_oddest_numbers_that_a_store_tells_is_listed(
    records: Records, store: Store, queue: Queue, feeder: ModelFeeder, sign: int
) -> None:
    around = StoreAround(store)
    time, count = sign * (2**53 - 1), sign * (2**31 - 1)
    odd = {"added_ms": time, "started_ms": time, "finished_ms": time, "priority": count, "attempts_made": count}

    async def look(queue: str, ids: Any) -> Any:
        return [job and msgspec.structs.replace(job, **odd) for job in await store.look(queue, ids)]

    around.look = look
    await queue.add("work", id="zero")
    await feeder.catch_up()
    feeder._source.store = around
    await queue.add("work", id="one")
    await feeder.catch_up()
    (job,) = [job for job in (await records.jobs.list()).jobs if job.id == "one"]
    assert (job.added_ms, job.priority, job.attempts_made) == (time, count, count)


async def test_a_job_that_fits_into_no_table_holds_up_no_other_queue(
    records: Records, store: Store, feeder: ModelFeeder, clock: ManualClock
) -> None:
    """Its own is tried again later and then later still; what was in hand of it is read anew."""
    queues = [Queue(store, name, clock=clock) for name in ("a", "b")]
    for queue in queues:
        await queue.add("work", id="one")
    await feeder.catch_up()
    looks = 0
    around = StoreAround(store)

    async def look(queue: str, ids: Any) -> Any:
        nonlocal looks
        found = await store.look(queue, ids)
        if queue != "a":
            return found
        looks += 1
        return [job and msgspec.structs.replace(job, added_ms=2**70) for job in found]

    around.look = look
    feeder._source.store = around
    for number in ("two", "three"):
        for queue in queues:
            await queue.add("work", id=number)
        await feeder.catch_up()
    assert (await rows_of(records)).keys() == {"a/one", "b/one", "b/two", "b/three"}
    assert looks == 1, "it is left alone for a while"
    feeder._source.store = store
    clock.advance(60_000)
    await feeder.catch_up()
    await check_model(records, store)


async def test_a_new_queue_is_found_within_a_second_and_is_not_searched_for_all_the_time(
    records: Records, store: Store, queue: Queue, feeder: ModelFeeder, clock: ManualClock
) -> None:
    await queue.add("one")
    await feeder.catch_up()
    asked = 0
    around = StoreAround(store)

    async def queues() -> Any:
        nonlocal asked
        asked += 1
        return await store.queues()

    around.queues = queues
    feeder._source.store = around
    await Queue(store, "reports", clock=clock).add("two")
    await feeder.step()
    assert asked == 0
    clock.advance(1_000)
    while await feeder.step():
        pass
    assert asked == 1
    assert "reports" in await records.jobs.lag()


class SlowToSearch(StoreAround):
    """Takes a second to tell its queues, the first so many times."""

    def __init__(self, store: Store, clock: ManualClock, times: int) -> None:
        super().__init__(store)
        self._clock, self._times = clock, times
        self.asked = 0

    async def queues(self) -> Any:
        self.asked += 1
        if self.asked <= self._times:
            self._clock.advance(1_000)
        return await self.inner.queues()


async def test_on_a_slow_server_new_queues_are_searched_for_less_often(
    records: Records, store: Store, queue: Queue, clock: ManualClock
) -> None:
    """Where a search takes a second, again and again, it is made after a hundred."""
    await queue.add("one")
    slow = SlowToSearch(store, clock, times=4)
    feeder = records.feeder(slow)
    for _ in range(3):
        await feeder.step()
        clock.advance(1_000)
    clock.advance(98_000)
    await feeder.step()
    assert slow.asked == 3
    clock.advance(1_000)
    await feeder.step()
    assert slow.asked == 4


async def test_a_search_that_took_long_once_does_not_put_off_the_next(
    records: Records, store: Store, clock: ManualClock
) -> None:
    """As where the machine is busy while a server starts: a queue that is begun then is shown all the same."""
    slow = SlowToSearch(store, clock, times=1)
    feeder = records.feeder(slow)
    await feeder.step()
    await Queue(store, "late", clock=clock).add("one")
    clock.advance(1_000)
    while await feeder.step():
        pass
    assert "late" in await records.jobs.lag()


async def test_a_gap_is_made_good_by_a_scan(
    records: Records, store: Store, queue: Queue, either: ModelFeeder, scene: Scene
) -> None:
    """Most events were dropped before they were read; some rows are of jobs that are gone."""
    await asyncio.gather(*[queue.add("early", {"n": n}) for n in range(20)])
    await either.catch_up()
    real = store.events
    blind = StoreAround(store)
    dropped = True

    async def events(queue: str, **asked: Any) -> Any:
        nonlocal dropped
        if asked["after"] is None or not dropped:
            return await real(queue, **asked)
        dropped = False
        end = await real(queue, after=None, limit=1, timeout_ms=0)
        return type(end)((), end.cursor, True)

    blind.events = events
    for n in range(10):
        await scene.end(Completed() if n % 2 else Failed(Failure("no")))
    await store.drain("mail", delayed=False)
    await asyncio.gather(*[queue.add("late", {"n": n}) for n in range(7)])
    either._source.store = blind
    await either.catch_up()
    await check_model(records, store)
    assert not (await records.jobs.lag())["mail"].is_scanning


async def test_a_queue_that_is_removed_and_begun_anew(
    records: Records, store: Store, queue: Queue, either: ModelFeeder
) -> None:
    await asyncio.gather(*[queue.add("old") for _ in range(5)])
    await either.catch_up()
    await store.obliterate("mail", force=True)
    await either.catch_up()
    assert (await records.jobs.list()).jobs == ()
    await queue.add("new")
    await either.catch_up()
    await check_model(records, store)


async def test_whoever_dies_in_the_middle_the_next_goes_on_rightly(
    records: Records, store: Store, queue: Queue, scene: Scene, clock: ManualClock, fields: tuple[str, ...]
) -> None:
    """Cut off at any await, over and over, while jobs are added, run and pruned."""
    dice = random.Random(7)
    for turn in range(12):
        feeder = records.feeder(store, fields=fields)
        for n in range(dice.randint(1, 10)):
            tenant = dice.choice(["acme", "other"])
            await queue.add("work", {"user": f"u{n}"}, keep_completed=keep(count=4), tenant=tenant)
        for _ in range(dice.randint(0, 8)):
            verdicts: list[Verdict] = [Completed(), Failed(Failure(f"no {turn}")), Retry(Failure("again"))]
            await scene.end(dice.choice(verdicts))
        feeding = asyncio.create_task(feeder.catch_up())
        for _ in range(dice.randint(1, 60)):
            await asyncio.sleep(0)  # a turn of the loop: where it is cut is up to the dice
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        clock.advance(HOLD_MS)
    last = records.feeder(store, fields=fields)
    await last.catch_up()
    await check_model(records, store)
    rates = await records.jobs.rates(since_ms=0, until_ms=2**62)
    counts = Counter({State.COMPLETED: sum(m.completed for m in rates), State.FAILED: sum(m.failed for m in rates)})
    assert counts[State.FAILED] == (await store.counts("mail")).failed, "each event is counted once"
    assert sum(m.started for m in rates) == sum(sum(m.wait) for m in rates)
    before = await rows_of(records)
    await last.rescan()
    await last.catch_up()
    assert await rows_of(records) == before


async def test_one_feeds_at_a_time(records: Records, store: Store, queue: Queue, clock: ManualClock) -> None:
    first, second = records.feeder(store), records.feeder(store)
    await queue.add("one")
    await first.catch_up()
    await queue.add("two")
    assert not await second.step(), "it is the first one's"
    clock.advance(HOLD_MS)
    await second.catch_up()
    assert not await first.step(), "it has lost it, and wrote nothing"
    await check_model(records, store)


async def test_a_large_queue_is_dropped_in_many_transactions(
    records: Records,
    store: Store,
    queue: Queue,
    feeder: ModelFeeder,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In one, whoever else wants to write would wait for all of it. Who dies in between leaves the rest to the next."""
    monkeypatch.setattr("bullpen.records.model.writer._AT_ONCE", 10)
    for n in range(35):
        await queue.add("work", id=f"job-{n}")
    await feeder.catch_up()
    await store.obliterate("mail", force=True)
    clock.advance(20_000)
    renew, renewals = feeder._lease.renew, 0

    async def failing(connection: AsyncConnection) -> None:
        nonlocal renewals
        renewals += 1
        counted = (await records.jobs.counts()).get("mail", {}).get(State.WAITING)
        if counted is not None and counted < 35:
            raise RecordsUnavailable("gone in the middle")
        await renew(connection)

    monkeypatch.setattr(feeder._lease, "renew", failing)
    with pytest.raises(RecordsUnavailable):
        await feeder.catch_up()
    assert (await records.jobs.counts())["mail"] == {State.WAITING: 25}
    monkeypatch.setattr(feeder._lease, "renew", renew)
    await feeder.catch_up()
    assert await records.jobs.counts() == {}
    assert await records.jobs.lag() == {}


async def test_many_jobs_that_are_not_kept_are_dropped_in_many_transactions(
    records: Records, store: Store, queue: Queue, feeder: ModelFeeder, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bullpen.records.model.writer._AT_ONCE", 10)
    for n in range(35):
        await queue.add("work", id=f"job-{n}")
        await scene.end(Failed(Failure("no")))
    await feeder.catch_up()
    await store.clean("mail", State.FAILED, older_than_ms=0, limit=100)
    await feeder.catch_up()
    assert (await records.jobs.counts()).get("mail", {}) == {}
    await check_model(records, store)
