"""Durable steps on Redis: which keys there are, what BullMQ's side sees, and what is swept after it."""

from bullpen.job.entries import JournalEntry
from bullpen.job.record import CrashLimits, JobRef
from bullpen.job.spec import NewJob
from bullpen.job.verdicts import Completed, Parked, Settlement
from bullpen.stores.redis import RedisStore
from tests.support.redis_harness import RedisHarness

NOW = 1_750_000_000_000
REF = JobRef("mail", "1")


async def _with_steps(store: RedisStore) -> None:
    """A parked job with a journal and a mailbox."""
    await store.add([NewJob("mail", "welcome")], request="add")
    (claimed,) = (await store.claim({"mail": 1}, worker="w", lease_ms=5_000, request="claim")).jobs
    await store.append_journal(REF, [JournalEntry(0, "charge", value=b'"ok"')], epoch=1)
    await store.signal(REF, "other", b"1", request="signal")
    parked = Parked(None, ("approved",), "waits for 'approved'")
    await store.settle([Settlement(claimed.lease, parked)], request="park")


async def _own_keys(harness: RedisHarness) -> set[str]:
    start = f"{harness.prefix}::bullpen:queue:mail:"
    return {key.removeprefix(start) for key in await harness.keys() if key.startswith(start)}


async def test_a_journal_is_a_key_of_ours_and_a_parked_job_is_a_delayed_one(
    harness: RedisHarness, store: RedisStore
) -> None:
    """BullMQ finds the job in its delayed set, and none of our keys among its own."""
    await _with_steps(store)
    assert await _own_keys(harness) == {"journal:1", "mailbox:1", "with-steps"}
    journal = await harness.raw.hgetall(f"{harness.prefix}::bullpen:queue:mail:journal:1")
    assert journal == {"0": 'done {"place":0,"name":"charge"}', "0:value": '"ok"', "places": "1"}
    assert await harness.raw.zrange(f"{harness.prefix}:mail:delayed", 0, -1) == ["1"]
    job = await harness.raw.hgetall(f"{harness.prefix}:mail:1")
    assert (job["bullpen:parked"], job["bullpen:note"]) == ('["approved"]', "waits for 'approved'")


async def test_what_bullmq_left_of_a_removed_job_is_swept(harness: RedisHarness, store: RedisStore) -> None:
    """BullMQ removes a job with the keys that it knows; the rescuer takes the others, about a minute later."""
    await _with_steps(store)
    await harness.raw.zrem(f"{harness.prefix}:mail:delayed", "1")
    await harness.raw.delete(f"{harness.prefix}:mail:1")
    await harness.advance(60_001)
    await store.rescue(["mail"], limits=CrashLimits())
    assert await _own_keys(harness) == set()


async def test_the_sweep_leaves_jobs_that_are_there(harness: RedisHarness, store: RedisStore) -> None:
    await _with_steps(store)
    for _ in range(3):
        await harness.advance(60_001)
        await store.rescue(["mail"], limits=CrashLimits())
    assert len((await store.read_journal(REF)).entries) == 1


async def test_a_job_that_completes_keeps_no_word_of_its_parking(harness: RedisHarness, store: RedisStore) -> None:
    await _with_steps(store)
    await store.signal(REF, "approved", b"1", request="wake")
    (claimed,) = (await store.claim({"mail": 1}, worker="w", lease_ms=5_000, request="again")).jobs
    assert await harness.raw.hget(f"{harness.prefix}:mail:1", "bullpen:parked") is None
    await store.settle([Settlement(claimed.lease, Completed())], request="done")
    assert await _own_keys(harness) == {"journal:1", "mailbox:1", "with-steps"}
    await store.remove(REF)
    assert await _own_keys(harness) == set()
