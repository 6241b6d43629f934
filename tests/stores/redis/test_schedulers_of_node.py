"""The next tick of a schedule that BullMQ keeps is never swept away: without it the schedule would stop."""

import pytest

from bullpen.errors import WrongState
from bullpen.job.record import JobRef
from bullpen.job.spec import JobSpec, NewJob
from bullpen.job.state import State
from bullpen.stores.redis import RedisStore
from tests.support.redis_harness import RedisHarness


async def _tick(harness: RedisHarness, place: str) -> str:
    """A scheduler as BullMQ writes it, and its next tick, in that place."""
    base, due_ms = f"{harness.prefix}:mail:", harness.clock.now_ms() + 60_000
    tick = f"repeat:hourly:{due_ms}"
    await harness.raw.zadd(f"{base}repeat", {"hourly": due_ms})
    await harness.raw.hset(f"{base}repeat:hourly", mapping={"name": "sweep", "every": "3600000"})
    await harness.raw.hset(
        f"{base}{tick}", mapping={"name": "sweep", "data": "{}", "opts": "{}", "timestamp": "1", "rjk": "hourly"}
    )
    if place == "wait":
        await harness.raw.rpush(f"{base}wait", tick)
    else:
        await harness.raw.zadd(f"{base}delayed", {tick: due_ms * 4096})
    return tick


@pytest.mark.parametrize("place, state", [("wait", State.WAITING), ("delayed", State.DELAYED)])
async def test_sweeping_leaves_the_next_tick(
    harness: RedisHarness, store: RedisStore, place: str, state: State
) -> None:
    specs = [JobSpec(), JobSpec(delay_ms=60_000), JobSpec(), JobSpec(delay_ms=60_000)]
    await store.add([NewJob("mail", "welcome", spec=spec) for spec in specs], request="r1")
    tick = await _tick(harness, place)
    await harness.advance(10_000)
    assert await store.clean("mail", state, older_than_ms=0, limit=100) == 2
    assert await store.drain("mail", delayed=True) == 2
    with pytest.raises(WrongState, match="schedule"):
        await store.remove(JobRef("mail", tick))
    assert [job.id for job in (await store.jobs("mail", state, limit=10)).jobs] == [tick]


async def test_a_tick_that_is_not_the_next_one_is_a_job_like_others(harness: RedisHarness, store: RedisStore) -> None:
    await store.add([NewJob("mail", "welcome")], request="r1")
    tick = await _tick(harness, "wait")
    await harness.raw.zadd(f"{harness.prefix}:mail:repeat", {"hourly": 1})
    await store.remove(JobRef("mail", tick))
    assert await store.drain("mail", delayed=False) == 1


async def test_an_obliterated_queue_leaves_no_key(harness: RedisHarness, store: RedisStore) -> None:
    """Also what BullMQ's own obliteration leaves: parents, limits, jobs kept for later, subjects with a time."""
    base = f"{harness.prefix}:mail:"
    await store.add([NewJob("mail", "welcome", id="mine")], request="r1")
    await _tick(harness, "delayed")
    await harness.raw.hset(f"{base}parent", mapping={"name": "p", "data": "{}", "opts": "{}", "deid": "s"})
    await harness.raw.sadd(f"{base}parent:dependencies", "bull:other:1")
    await harness.raw.zadd(f"{base}waiting-children", {"parent": 1})
    await harness.raw.set(f"{base}limiter", 5, px=60_000)
    await harness.raw.set(f"{base}de:s", "parent")
    await harness.raw.hset(f"{base}dn:s", mapping={"jid": "9", "name": "n"})
    await harness.raw.set(f"{base}de:t", "gone", px=60_000)
    await store.pause("mail")
    await store.obliterate("mail", force=False)
    left = [key for key in await harness.keys() if ":mail:" in key]
    # The numbers of the log stay for its readers, and go by themselves.
    assert left == [f"{base}events"]
    assert await harness.raw.xlen(f"{base}events") == 0
    assert await harness.raw.pttl(f"{base}events") > 0
