"""Sleeping on BullMQ's markers, which a pop takes away from all other sleepers."""

import asyncio

from bullpen.job.spec import JobSpec, NewJob
from bullpen.stores.redis import RedisStore
from tests.support.redis_harness import RedisHarness


async def test_a_job_without_a_marker_is_found(harness: RedisHarness, store: RedisStore) -> None:
    """A sleeper that was woken and died took the marker with it."""
    await store.add([NewJob("mail", "welcome")], request="r1")
    await harness.raw.delete(f"{harness.prefix}:mail:marker")
    assert await store.wait(["mail"], timeout_ms=1)


async def test_a_marker_that_announces_nothing_wakes_nobody(harness: RedisHarness, store: RedisStore) -> None:
    """A claim leaves a marker for whoever sleeps beside it, though nothing may be left."""
    await store.add([NewJob("mail", "welcome")], request="r1")
    await store.claim({"mail": 1}, worker="w", lease_ms=1000, request="c1")
    assert await harness.raw.exists(f"{harness.prefix}:mail:marker")
    assert not await store.wait(["mail"], timeout_ms=1)


async def test_one_sleep_for_many_queues(store: RedisStore) -> None:
    asleep = asyncio.create_task(store.wait(["mail", "post"], timeout_ms=120_000))
    await store.add([NewJob("post", "parcel")], request="r1")
    assert await asyncio.wait_for(asleep, 60)


async def test_a_time_that_was_popped_is_put_back(harness: RedisHarness, store: RedisStore) -> None:
    """Whoever leaves before the time must not take it from those who stay."""
    await store.add([NewJob("mail", "later", spec=JobSpec(delay_ms=60_000))], request="r1")
    assert not await store.wait(["mail"], timeout_ms=20)
    due_ms = harness.clock.now_ms() + 60_000
    marker = await harness.raw.zrange(f"{harness.prefix}:mail:marker", 0, -1, withscores=True)
    assert marker == [("1", due_ms)]


async def test_a_delayed_job_wakes_at_its_time(harness: RedisHarness, store: RedisStore) -> None:
    await store.add([NewJob("mail", "later", spec=JobSpec(delay_ms=60_000))], request="r1")
    asleep = asyncio.create_task(store.wait(["mail"], timeout_ms=120_000))
    await harness.advance(60_000)
    assert await asyncio.wait_for(asleep, 60)


async def test_a_cancelled_sleeper_leaves_the_marker(harness: RedisHarness, store: RedisStore) -> None:
    """Its connection may hold an answer that nobody will read."""
    blocked = asyncio.create_task(store.wait(["mail"], timeout_ms=120_000))
    while not await _is_blocked(harness):
        await asyncio.sleep(0)
    blocked.cancel()
    await asyncio.wait([blocked])
    assert blocked.cancelled()
    assert await harness.raw.zscore(f"{harness.prefix}:mail:marker", "0") == 0


async def test_who_waits_to_claim_has_asked_already(harness: RedisHarness, store: RedisStore) -> None:
    """The claim lies at the server, behind the pop: the job comes with the news of it."""
    await store.add([NewJob("other", "so that the server knows the scripts")], request="r0")
    await store.claim({"other": 1}, worker="w", lease_ms=1000, request="c0")
    expecting = asyncio.create_task(
        store.wait_and_claim({"mail": 1}, worker="w", lease_ms=1000, request="c1", timeout_ms=120_000)
    )
    while not (asleep := [one for one in await harness.raw.client_list() if "b" in one["flags"]]):
        await asyncio.sleep(0)
    assert int(asleep[0]["qbuf"]) > 0
    asked = (await harness.raw.info("commandstats"))["cmdstat_evalsha"]["calls"]
    await store.add([NewJob("mail", "welcome")], request="r1")
    (claimed,) = (await asyncio.wait_for(expecting, 60)).claimed.jobs
    assert claimed.job.name == "welcome"
    assert (await harness.raw.info("commandstats"))["cmdstat_evalsha"]["calls"] == asked + 2  # the add and the claim


async def _is_blocked(harness: RedisHarness) -> bool:
    return int((await harness.raw.info("clients"))["blocked_clients"]) > 0
