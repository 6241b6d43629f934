"""Claims on queues that other programs left in a state of their own, or set limits on."""

import pytest

from bullpen.job.record import CrashKind, Failure, FailureKind, JobRef
from bullpen.job.spec import JobSpec, NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Released, Settlement
from bullpen.stores.base import Renewal, SettleOutcome
from bullpen.stores.redis import RedisStore
from tests.support.redis_harness import RedisHarness


async def claim(store: RedisStore, count: int, request: str) -> list[str]:
    claimed = await store.claim({"mail": count}, worker="w", lease_ms=1000, request=request)
    return [job.job.id for job in claimed.jobs]


@pytest.fixture
async def base(harness: RedisHarness, store: RedisStore) -> str:
    """Three jobs wait in the queue whose keys begin so."""
    await store.add([NewJob("mail", str(n)) for n in range(3)], request="base")
    return f"{harness.prefix}:mail:"


async def test_global_concurrency_is_kept(harness: RedisHarness, store: RedisStore, base: str) -> None:
    await harness.raw.hset(f"{base}meta", "concurrency", "2")
    assert await claim(store, 5, "c1") == ["1", "2"]
    assert await claim(store, 5, "c2") == []
    assert not await store.wait(["mail"], timeout_ms=1)


async def test_the_global_rate_limit_is_kept(harness: RedisHarness, store: RedisStore, base: str) -> None:
    """When the limit is reached the claim says when to look again."""
    await harness.raw.hset(f"{base}meta", mapping={"max": "2", "duration": "4000"})
    assert await claim(store, 5, "c1") == ["1", "2"]
    assert 0 < await harness.raw.pttl(f"{base}limiter") <= 4000
    claimed = await store.claim({"mail": 5}, worker="w", lease_ms=1000, request="c2")
    assert claimed.jobs == ()
    assert claimed.next_due_ms is not None
    assert 0 < claimed.next_due_ms - harness.clock.now_ms() <= 4000
    await harness.advance(4000)
    assert await claim(store, 5, "c3") == ["3"]


async def test_entries_without_a_job_are_passed_over(harness: RedisHarness, store: RedisStore, base: str) -> None:
    """A lost record, and the marker that an old BullMQ kept in the list itself."""
    await harness.raw.delete(f"{base}1")
    await harness.raw.rpush(f"{base}wait", "0:1750000000000")
    assert await claim(store, 2, "c1") == ["2", "3"]
    assert await harness.raw.llen(f"{base}active") == 2


async def test_a_job_whose_fate_is_sealed_is_doomed(harness: RedisHarness, store: RedisStore, base: str) -> None:
    """BullMQ seals a job that stalled too often; its next holder must fail it without running it."""
    await harness.raw.hset(f"{base}1", "defa", "job stalled more than allowable limit")
    (claimed,) = (await store.claim({"mail": 1}, worker="w", lease_ms=1000, request="c1")).jobs
    assert claimed.job.doomed == Failure("job stalled more than allowable limit", FailureKind.STALLED)


async def test_an_expired_job_is_not_handed_out(harness: RedisHarness, store: RedisStore) -> None:
    spec = JobSpec(start_by_ms=harness.clock.now_ms() + 100, priority=1, tenant="acme")
    await store.add([NewJob("mail", "late", spec=spec), NewJob("mail", "next")], request="r1")
    await harness.advance(101)
    assert await claim(store, 2, "c1") == ["2"]
    job = await store.job(JobRef("mail", "1"))
    assert job.state is State.FAILED
    assert job.failure == Failure("not started in time", FailureKind.EXPIRED)
    assert job.attempts_made == 0


async def test_a_retried_job_does_not_expire(harness: RedisHarness, store: RedisStore) -> None:
    """It was started in time."""
    spec = JobSpec(start_by_ms=harness.clock.now_ms() + 100)
    await store.add([NewJob("mail", "early", spec=spec)], request="r1")
    (claimed,) = (await store.claim({"mail": 1}, worker="w", lease_ms=1000, request="c1")).jobs
    await store.settle([Settlement(claimed.lease, Released(CrashKind.DEPLOY))], request="s1")
    await harness.advance(101)
    assert await claim(store, 1, "c2") == ["1"]
    assert (await store.job(JobRef("mail", "1"))).crashes == {"deploy": 1}


async def test_jobs_that_an_older_bullmq_paused_come_first(harness: RedisHarness, store: RedisStore, base: str) -> None:
    """It moves waiting jobs to a list of their own; resuming must not overwrite what came since."""
    await harness.raw.hset(f"{base}meta", "paused", "1")
    await harness.raw.rename(f"{base}wait", f"{base}paused")
    await store.add([NewJob("mail", "since")], request="r1")
    assert (await store.counts("mail")).waiting == 4
    await store.resume("mail")
    assert await claim(store, 5, "c1") == ["1", "2", "3", "4"]


async def test_a_lease_that_ran_out_stands_until_the_job_is_taken_away(
    harness: RedisHarness, store: RedisStore, base: str
) -> None:
    """BullMQ's lock is gone by then; the epoch still tells who was the last to hold the job."""
    first, second = (await store.claim({"mail": 2}, worker="w", lease_ms=1000, request="c1")).jobs
    await harness.advance(5000)
    assert not await harness.raw.exists(f"{base}1:lock", f"{base}2:lock")
    assert list(await store.renew([first.lease], lease_ms=1000)) == [Renewal.HELD]
    assert await harness.raw.get(f"{base}1:lock") == first.lease.token
    # As BullMQ's stalled check does:
    await harness.raw.lrem(f"{base}active", 1, "2")
    await harness.raw.rpush(f"{base}wait", "2")
    settlements = [Settlement(first.lease, Completed()), Settlement(second.lease, Completed())]
    outcomes = await store.settle(settlements, request="s1")
    assert outcomes == (SettleOutcome.SETTLED, SettleOutcome.LEASE_LOST)


async def test_renewing_clears_the_suspicion_of_a_stall(harness: RedisHarness, store: RedisStore, base: str) -> None:
    (claimed,) = (await store.claim({"mail": 1}, worker="w", lease_ms=1000, request="c1")).jobs
    await harness.raw.sadd(f"{base}stalled", "1")
    await store.renew([claimed.lease], lease_ms=9000)
    assert not await harness.raw.exists(f"{base}stalled")
    assert await harness.raw.pttl(f"{base}1:lock") > 1000


async def test_a_cancellation_is_told_at_renewal(harness: RedisHarness, store: RedisStore, base: str) -> None:
    (claimed,) = (await store.claim({"mail": 1}, worker="w", lease_ms=1000, request="c1")).jobs
    await harness.raw.hset(f"{base}1", "bullpen:cancelling", "by hand")
    assert list(await store.renew([claimed.lease], lease_ms=1000)) == [Renewal.CANCELLING]
