"""A schedule on Redis is a BullMQ job scheduler, field by field."""

import json

from bullpen import Queue
from bullpen.stores.redis import RedisStore
from bullpen.worker.ticking import Ticker
from tests.support.redis_harness import RedisHarness


async def test_a_cron_is_written_as_bullmq_writes_it(harness: RedisHarness, store: RedisStore) -> None:
    queue = Queue(store, "mail", clock=harness.clock)
    job = queue.prepare("sweep", {"n": 1}, attempts=2)
    record = await queue.schedules.upsert("s", job, cron="0 3 * * *", tz="Europe/Berlin", limit=5)
    base, now_ms = f"{harness.prefix}:mail:", harness.clock.now_ms()
    assert await harness.raw.zrange(f"{base}repeat", 0, -1, withscores=True) == [("s", record.next_ms)]
    stored = await harness.raw.hgetall(f"{base}repeat:s")
    assert json.loads(stored.pop("opts"))["attempts"] == 2
    assert stored == {
        "name": "sweep",
        "data": '{"n":1}',
        "pattern": "0 3 * * *",
        "tz": "Europe/Berlin",
        "limit": "5",
        "ic": "1",
        "bullpen:overlap": "skip",
        "bullpen:count": "1",
    }
    tick = await harness.raw.hgetall(f"{base}repeat:s:{record.next_ms}")
    options = json.loads(tick["opts"])
    assert record.next_ms is not None
    assert (tick["rjk"], tick["delay"], tick["name"]) == ("s", str(record.next_ms - now_ms), "sweep")
    assert options["repeat"] == {"pattern": "0 3 * * *", "tz": "Europe/Berlin", "limit": 5, "count": 1}
    assert (options["repeatJobKey"], options["prevMillis"], options["timestamp"]) == ("s", record.next_ms, now_ms)
    assert options["jobId"] == f"repeat:s:{record.next_ms}"


async def test_an_interval_has_its_place_in_the_slot(harness: RedisHarness, store: RedisStore) -> None:
    queue = Queue(store, "mail", clock=harness.clock)
    await queue.schedules.upsert("s", "sweep", every=7)
    stored = await harness.raw.hgetall(f"{harness.prefix}:mail:repeat:s")
    assert (stored["every"], stored["offset"]) == ("7000", str(harness.clock.now_ms() % 7_000))
    assert "data" not in stored, "BullMQ leaves out what is empty"


async def test_a_schedule_that_cannot_be_read_is_left_to_others(harness: RedisHarness, store: RedisStore) -> None:
    """Another program may know expressions that we do not."""
    queue = Queue(store, "mail", clock=harness.clock)
    record = await queue.schedules.upsert("s", "sweep", cron="0 3 * * *", immediately=True)
    await harness.raw.hset(f"{harness.prefix}:mail:repeat:s", "pattern", "H H * * *")
    (claimed,) = (await store.claim({"mail": 1}, worker="w", lease_ms=1_000, request="r")).jobs
    await Ticker(store, may_advance=True).begin(claimed)
    (idle,) = await store.idle_schedules(["mail"])
    assert (idle.last_ms, idle.ended) == (record.last_ms, False)
