"""Pausing beside BullMQ 5, which moves waiting jobs aside and whose resume puts that list in the place of `wait`."""

import pytest

from bullpen.job.spec import NewJob
from bullpen.job.state import State
from bullpen.stores.base import Counts
from bullpen.stores.redis import RedisStore
from tests.support.redis_harness import RedisHarness


async def _add(store: RedisStore, *names: str) -> None:
    for name in names:
        await store.add([NewJob("mail", name)], request=f"add-{name}")


async def _order(store: RedisStore) -> list[str]:
    return [job.name for job in (await store.jobs("mail", State.WAITING, limit=100)).jobs]


async def _pause_like_v5(harness: RedisHarness) -> None:
    base = f"{harness.prefix}:mail:"
    if await harness.raw.exists(f"{base}wait"):
        await harness.raw.rename(f"{base}wait", f"{base}paused")
    await harness.raw.hset(f"{base}meta", "paused", "1")


async def _resume_like_v5(harness: RedisHarness) -> None:
    base = f"{harness.prefix}:mail:"
    if await harness.raw.exists(f"{base}paused"):
        await harness.raw.rename(f"{base}paused", f"{base}wait")
    await harness.raw.hdel(f"{base}meta", "paused")


async def test_a_queue_of_version_5_loses_nothing_however_it_is_paused_and_resumed(
    harness: RedisHarness, store: RedisStore
) -> None:
    """We pause and add, it resumes; it pauses an empty line, we add, it resumes."""
    await _add(store, "a")
    await harness.raw.hset(f"{harness.prefix}:mail:meta", "version", "bullmq:5.81.5")
    await store.pause("mail")
    await _add(store, "b")
    await _resume_like_v5(harness)
    assert await _order(store) == ["a", "b"]
    await store.drain("mail", delayed=False)
    await _pause_like_v5(harness)
    await _add(store, "c")
    assert await store.counts("mail") == Counts(waiting=1, paused=True)
    await _resume_like_v5(harness)
    assert await _order(store) == ["c"]


async def test_jobs_that_were_moved_aside_have_company(harness: RedisHarness, store: RedisStore) -> None:
    """Where version 5 paused, also unannounced, new jobs go to the others, and our resume brings all back in order."""
    await _add(store, "a", "b")
    await _pause_like_v5(harness)
    await _add(store, "c")
    assert await harness.raw.llen(f"{harness.prefix}:mail:paused") == 3
    assert await _order(store) == ["a", "b", "c"]
    await store.resume("mail")
    assert await _order(store) == ["a", "b", "c"]
    claimed = await store.claim({"mail": 3}, worker="w", lease_ms=1000, request="c1")
    assert [job.job.name for job in claimed.jobs] == ["a", "b", "c"]


@pytest.mark.parametrize("count", [3, 2_500])
async def test_lists_are_merged_never_replaced(harness: RedisHarness, store: RedisStore, count: int) -> None:
    """Both lists may have jobs, when both majors had their say: all come back, the older ones first."""
    await store.add([NewJob("mail", f"old-{n}") for n in range(count)], request="r1")
    await _pause_like_v5(harness)
    await harness.raw.rename(f"{harness.prefix}:mail:paused", f"{harness.prefix}:mail:aside")
    await store.add([NewJob("mail", f"new-{n}") for n in range(count)], request="r2")
    await harness.raw.rename(f"{harness.prefix}:mail:aside", f"{harness.prefix}:mail:paused")
    await store.resume("mail")
    found = await store.jobs("mail", State.WAITING, limit=3 * count)
    assert [job.name for job in found.jobs] == [f"{age}-{n}" for age in ("old", "new") for n in range(count)]
