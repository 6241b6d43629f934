"""Numbers that other programs have written into a job: it is read, with the nearest that there may be."""

from typing import Any

import pytest

from bullpen.job.record import JobRef
from bullpen.job.spec import NewJob
from bullpen.stores.base import FROM_START
from bullpen.stores.redis import RedisStore
from tests.support.redis_harness import RedisHarness

_MOST, _MOST_COUNT = 2**53 - 1, 2**31 - 1


@pytest.mark.parametrize(
    "written, time, count",
    [
        ("12.7", 12, 12),
        ("1e30", _MOST, _MOST_COUNT),
        ("9" * 30, _MOST, _MOST_COUNT),
        ("9" * 5_000, _MOST, _MOST_COUNT),
        ("Infinity", _MOST, _MOST_COUNT),
        ("-Infinity", -_MOST, -_MOST_COUNT),
        ("NaN", None, 0),
        ("soon", None, 0),
        ("", None, 0),
    ],
)
async def test_an_odd_number_is_read(
    harness: RedisHarness, store: RedisStore, written: str, time: int | None, count: int
) -> None:
    await store.add([NewJob("mail", "welcome")], request="r1")
    odd: Any = dict.fromkeys(("timestamp", "processedOn", "finishedOn", "priority", "atm", "stc"), written)
    await harness.raw.hset(f"{harness.prefix}:mail:1", mapping=odd)
    job = await store.job(JobRef("mail", "1"))
    assert (job.added_ms, job.started_ms, job.finished_ms) == (time or 0, time, time)
    assert (job.priority, job.attempts_made, sum(job.crashes.values())) == (count, count, max(count, 0))


async def test_odd_numbers_in_an_event_are_read(harness: RedisHarness, store: RedisStore) -> None:
    await store.add([NewJob("mail", "welcome")], request="r1")
    odd: Any = {"event": "delayed", "jobId": "1", "delay": "Infinity", "priority": "1e30", "attemptsMade": "1e30"}
    await harness.raw.xadd(f"{harness.prefix}:mail:events", odd)
    event = (await store.events("mail", after=FROM_START, limit=10, timeout_ms=0)).events[-1]
    assert (event.priority, event.count) == (_MOST_COUNT, _MOST_COUNT)
