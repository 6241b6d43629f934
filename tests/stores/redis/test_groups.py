"""Groups on BullMQ's layout: what Node puts elsewhere comes to its group, what it takes away frees its place."""

from bullpen.job.limits import GroupLimits
from bullpen.job.record import CrashLimits, JobRef
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.stores.redis import RedisStore
from bullpen.testing.conformance.groups import add_to, claim_groups, group_of
from bullpen.testing.conformance.moves import MAIL, add_one, claim, claim_ids, claim_one, complete_one
from tests.support.redis_harness import RedisHarness


def _key(harness: RedisHarness, name: str) -> str:
    return f"{harness.prefix}:{MAIL}:{name}"


async def _put_into_wait(harness: RedisHarness, ref: JobRef, *, end: str = "lpush") -> None:
    """As BullMQ does, which knows of no group."""
    await getattr(harness.raw, end)(_key(harness, "wait"), ref.id)


async def test_a_job_that_node_promoted_comes_to_the_end_of_its_group(harness: RedisHarness, store: RedisStore) -> None:
    (first,) = await add_to(store, "a")
    stray = await add_one(store, spec=JobSpec(group="a", delay_ms=60_000))
    await harness.raw.zrem(_key(harness, "delayed"), stray.id)
    await _put_into_wait(harness, stray)
    assert await claim_ids(store) == [first.id, stray.id]


async def test_a_job_that_node_took_from_a_dead_worker_comes_to_the_head(
    harness: RedisHarness, store: RedisStore
) -> None:
    await store.set_group(MAIL, "a", GroupLimits(concurrency=1))
    await add_to(store, "a", 2)
    stalled = (await claim_one(store)).lease.ref
    await harness.raw.lrem(_key(harness, "active"), 0, stalled.id)
    await harness.raw.delete(_key(harness, f"{stalled.id}:lock"))
    await _put_into_wait(harness, stalled, end="rpush")
    assert await claim_ids(store) == [stalled.id]
    assert (await group_of(store, "a")).active == 1


async def test_a_stray_is_still_subject_to_the_cap(harness: RedisHarness, store: RedisStore) -> None:
    await store.set_group(MAIL, "a", GroupLimits(concurrency=1))
    await add_to(store, "a")
    stray = await add_one(store, spec=JobSpec(group="a", delay_ms=60_000))
    await harness.raw.zrem(_key(harness, "delayed"), stray.id)
    await _put_into_wait(harness, stray)
    assert len(await claim(store, 5)) == 1
    assert (await store.job(stray)).state == State.WAITING
    await store.cancel(stray, reason="")


async def test_node_may_name_a_group_in_the_options(harness: RedisHarness, store: RedisStore) -> None:
    """As `queue.add("x", {}, {bullpen: {group: "a"}})` leaves it."""
    await add_to(store, "b", 2)
    record = {"name": "x", "data": "{}", "opts": '{"attempts":1,"bullpen":{"group":"a"}}', "timestamp": "1"}
    for field, value in record.items():
        await harness.raw.hset(_key(harness, "n-1"), field, value)
    await _put_into_wait(harness, JobRef(MAIL, "n-1"))
    assert await claim_groups(store, 3) == ["a", "b", "b"]


async def test_many_strays_are_moved_in_portions(harness: RedisHarness, store: RedisStore) -> None:
    strays = [await add_one(store, spec=JobSpec(group="a", delay_ms=60_000)) for _ in range(30)]
    await harness.raw.delete(_key(harness, "delayed"))
    for stray in strays:
        await _put_into_wait(harness, stray)
    assert await claim_ids(store, 30) == [stray.id for stray in strays]


async def test_a_job_removed_while_active_does_not_starve_its_group(harness: RedisHarness, store: RedisStore) -> None:
    """Bull Board's remove with force, or a clean of active jobs: upkeep gives the place back."""
    await store.set_group(MAIL, "a", GroupLimits(concurrency=1))
    await add_to(store, "a", 2)
    removed = (await claim_one(store)).lease.ref
    await harness.raw.lrem(_key(harness, "active"), 0, removed.id)
    await harness.raw.delete(_key(harness, removed.id), _key(harness, f"{removed.id}:lock"))
    assert await claim(store) == ()
    await store.rescue([MAIL], limits=CrashLimits())
    assert await store.wait([MAIL], timeout_ms=0)
    assert len(await claim(store)) == 1


async def test_an_obliterated_queue_leaves_no_key_of_its_groups(harness: RedisHarness, store: RedisStore) -> None:
    await store.set_group(MAIL, "a", GroupLimits(rate_max=1, rate_ms=60_000))
    await store.set_group_default(MAIL, GroupLimits(weight=2))
    await add_to(store, "a", 2)
    await add_to(store, "b", 2)
    await claim(store, 2)
    await store.obliterate(MAIL, force=True)
    own = [key for key in await harness.keys() if ":queue:" in key]
    assert own == []


async def test_a_round_that_ends_leaves_nothing_behind(harness: RedisHarness, store: RedisStore) -> None:
    """Groups without jobs, limits or pauses take no room."""
    for group in ("a", "b", "c"):
        await add_to(store, group, 2)
    for _ in range(6):
        await complete_one(store)
    own = [key for key in await harness.keys() if ":queue:" in key]
    assert own == []
