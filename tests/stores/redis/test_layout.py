"""The keys, fields and scores that BullMQ reads: written here as it spells them."""

import json
from typing import Any

from bullpen.job.record import Failure, FailureKind, JobRef
from bullpen.job.spec import KEEP_ALL, Dedup, JobSpec, Keep, NewJob
from bullpen.job.verdicts import Cancelled, Completed, Failed, Postponed, Released, Retry, Settlement, Verdict
from bullpen.stores.base import AddOutcome
from bullpen.stores.redis import RedisStore
from tests.support.redis_harness import RedisHarness

NOW = 1_750_000_000_000


async def run(store: RedisStore, verdict: Verdict, request: str = "run", queue: str = "mail") -> None:
    """Claim the first job in line and settle it so."""
    (claimed,) = (await store.claim({queue: 1}, worker="w1", lease_ms=5000, request=f"claim {request}")).jobs
    await store.settle([Settlement(claimed.lease, verdict)], request=f"settle {request}")


async def events(harness: RedisHarness, queue: str = "mail") -> list[dict[str, str]]:
    entries: Any = await harness.raw.xrange(f"{harness.prefix}:{queue}:events")
    return [fields for _, fields in entries]


async def test_a_waiting_job(harness: RedisHarness, store: RedisStore) -> None:
    spec = JobSpec(tenant="acme", start_by_ms=NOW + 9)
    await store.add([NewJob("mail", "welcome", b'{"user":1}', spec=spec)], request="r1")
    base = f"{harness.prefix}:mail:"
    job = await harness.raw.hgetall(f"{base}1")
    assert json.loads(job.pop("opts")) == {"bullpen": {"tenant": "acme", "startByMs": NOW + 9}}
    assert job == {
        "name": "welcome",
        "data": '{"user":1}',
        "timestamp": str(NOW),
        "delay": "0",
        "priority": "0",
        "bullpen:tenant": "acme",
        "bullpen:startBy": str(NOW + 9),
    }
    assert await harness.raw.lrange(f"{base}wait", 0, -1) == ["1"]
    assert await harness.raw.get(f"{base}id") == "1"
    assert await harness.raw.zrange(f"{base}marker", 0, -1, withscores=True) == [("0", 0)]
    assert await harness.raw.hgetall(f"{base}meta") == {"opts.maxLenEvents": "10000", "bullpen:listed": "1"}
    assert await events(harness) == [
        {"event": "added", "tenant": "acme", "jobId": "1", "name": "welcome", "at": str(NOW)},
        {"event": "waiting", "tenant": "acme", "jobId": "1"},
    ]


async def test_a_plain_job_takes_no_more_room_than_one_of_bullmq(harness: RedisHarness, store: RedisStore) -> None:
    """Options are written where they differ from the default: a value over 64 bytes would unpack the record."""
    await store.add([NewJob("mail", "welcome")], request="r1")
    job_key = f"{harness.prefix}:mail:1"
    assert await harness.raw.hget(job_key, "opts") == '{"bullpen":{}}'
    assert await harness.raw.object("ENCODING", job_key) == "listpack"
    assert (await store.job(JobRef("mail", "1"))).spec == JobSpec()


async def test_scores_of_priorities_and_delays(harness: RedisHarness, store: RedisStore) -> None:
    """Priority times 2^32 plus a counter; run time times 4096 plus a place in that millisecond."""
    specs = [JobSpec(priority=2), JobSpec(priority=1), JobSpec(delay_ms=500), JobSpec(delay_ms=500)]
    await store.add([NewJob("mail", "welcome", spec=spec) for spec in specs], request="r1")
    base = f"{harness.prefix}:mail:"
    prioritized = await harness.raw.zrange(f"{base}prioritized", 0, -1, withscores=True)
    assert prioritized == [("2", 2**32 + 2), ("1", 2 * 2**32 + 1)]
    delayed = await harness.raw.zrange(f"{base}delayed", 0, -1, withscores=True)
    assert delayed == [("3", (NOW + 500) * 4096), ("4", (NOW + 500) * 4096 + 1)]
    marker = await harness.raw.zrange(f"{base}marker", 0, -1, withscores=True)
    assert marker == [("0", 0), ("1", NOW + 500)]


async def test_an_active_job(harness: RedisHarness, store: RedisStore) -> None:
    await store.add([NewJob("mail", "welcome")], request="r1")
    (claimed,) = (await store.claim({"mail": 1}, worker="w1", lease_ms=5000, request="c1")).jobs
    base = f"{harness.prefix}:mail:"
    assert await harness.raw.lrange(f"{base}active", 0, -1) == ["1"]
    assert await harness.raw.get(f"{base}1:lock") == claimed.lease.token
    assert 0 < await harness.raw.pttl(f"{base}1:lock") <= 5000
    fields = await harness.raw.hmget(f"{base}1", "processedOn", "pb", "ats", "atm")
    assert fields == [str(NOW), "w1", "1", None]
    assert await harness.raw.zscore(f"{base}marker", "0") == 0
    assert (await events(harness))[-1] == {"event": "active", "jobId": "1", "prev": "waiting", "at": str(NOW)}


async def test_a_completed_job(harness: RedisHarness, store: RedisStore) -> None:
    await store.add([NewJob("mail", "welcome")], request="r1")
    await run(store, Completed(b"[1]"))
    base = f"{harness.prefix}:mail:"
    assert await harness.raw.zrange(f"{base}completed", 0, -1, withscores=True) == [("1", NOW)]
    fields = await harness.raw.hmget(f"{base}1", "returnvalue", "finishedOn", "atm")
    assert fields == ["[1]", str(NOW), "1"]
    assert not await harness.raw.exists(f"{base}1:lock", f"{base}active")
    assert (await events(harness))[-2:] == [
        {"event": "completed", "jobId": "1", "prev": "active", "returnvalue": "[1]", "at": str(NOW)},
        {"event": "drained"},
    ]


async def test_a_failed_job(harness: RedisHarness, store: RedisStore) -> None:
    """The reason is plain text, the stacks a JSON list; the kind stands beside them."""
    await store.add([NewJob("mail", "welcome", spec=JobSpec(attempts=3, keep_stacks=2))], request="r1")
    for n in range(3):
        failure = Failure(f"error {n}", FailureKind.TIMEOUT, "TimeoutError", f"stack {n}")
        await run(store, Failed(failure) if n == 2 else Retry(failure), f"run {n}")
    base = f"{harness.prefix}:mail:"
    assert await harness.raw.zrange(f"{base}failed", 0, -1) == ["1"]
    reason, stacks, own = await harness.raw.hmget(f"{base}1", "failedReason", "stacktrace", "bullpen:failure")
    assert (reason, json.loads(stacks or "")) == ("error 2", ["stack 1", "stack 2"])
    assert own == '3 {"kind":"timeout","type":"TimeoutError"}'
    assert (await events(harness))[-2] == {"event": "retries-exhausted", "jobId": "1", "attemptsMade": "3"}


async def test_a_cancelled_job(harness: RedisHarness, store: RedisStore) -> None:
    await store.add([NewJob("mail", "welcome")], request="r1")
    await run(store, Cancelled("by hand"))
    assert await harness.raw.hget(f"{harness.prefix}:mail:1", "failedReason") == "cancelled: by hand"
    job = await store.job(JobRef("mail", "1"))
    assert job.failure == Failure("cancelled: by hand", FailureKind.CANCELLED)


async def test_a_job_that_is_tried_again_later(harness: RedisHarness, store: RedisStore) -> None:
    """A retry counts an attempt, a postponement does not; both are delayed."""
    await store.add([NewJob("mail", "a"), NewJob("mail", "b")], request="r1")
    await run(store, Retry(Failure("no"), delay_ms=700), "1")
    await run(store, Postponed(900, "quota"), "2")
    base = f"{harness.prefix}:mail:"
    delayed = await harness.raw.zrange(f"{base}delayed", 0, -1, withscores=True)
    assert delayed == [("1", (NOW + 700) * 4096), ("2", (NOW + 900) * 4096)]
    assert await harness.raw.hmget(f"{base}1", "atm", "delay") == ["1", "700"]
    assert await harness.raw.hmget(f"{base}2", "atm", "delay") == [None, "900"]
    assert (await store.job(JobRef("mail", "2"))).note == "quota"


async def test_released_jobs_go_to_the_head(harness: RedisHarness, store: RedisStore) -> None:
    specs = [JobSpec(), JobSpec(), JobSpec(priority=4)]
    await store.add([NewJob("mail", str(n), spec=spec) for n, spec in enumerate(specs)], request="r1")
    claimed = (await store.claim({"mail": 3}, worker="w1", lease_ms=5000, request="c1")).jobs
    await store.settle([Settlement(job.lease, Released()) for job in claimed], request="s1")
    base = f"{harness.prefix}:mail:"
    assert await harness.raw.lrange(f"{base}wait", 0, -1) == ["1", "2"]
    prioritized = await harness.raw.zrange(f"{base}prioritized", 0, -1, withscores=True)
    assert prioritized == [("3", 4 * 2**32)]
    assert await harness.raw.hmget(f"{base}1", "ats", "atm") == ["1", None]


async def test_retention_removes_every_key_of_a_job(harness: RedisHarness, store: RedisStore) -> None:
    base = f"{harness.prefix}:mail:"
    job = NewJob("mail", "welcome", id="mine", spec=JobSpec(keep_completed=Keep(count=0)))
    await store.add([job], request="r1")
    await harness.raw.rpush(f"{base}mine:logs", "a line")
    await run(store, Completed())
    assert not [key for key in await harness.keys() if key.startswith(f"{base}mine")]
    until_ms = await harness.raw.zscore(f"{harness.prefix}::bullpen:queue:mail:ids", "mine")
    assert until_ms == harness.clock.now_ms() + 86_400_000
    (again,) = await store.add([job], request="r2")
    assert again.outcome == AddOutcome.DUPLICATE


async def test_retention_by_count_and_age(harness: RedisHarness, store: RedisStore) -> None:
    spec = JobSpec(keep_completed=Keep(count=2, age_ms=1000))
    for n in range(4):
        await store.add([NewJob("mail", "welcome", spec=spec)], request=f"r{n}")
        await run(store, Completed(), str(n))
    completed = f"{harness.prefix}:mail:completed"
    assert await harness.raw.zrange(completed, 0, -1) == ["3", "4"]
    await harness.advance(1500)
    await store.add([NewJob("mail", "welcome", spec=spec)], request="last")
    await run(store, Completed(), "last")
    assert await harness.raw.zrange(completed, 0, -1) == ["5"]


async def test_a_subject_is_kept_under_bullmqs_key(harness: RedisHarness, store: RedisStore) -> None:
    base = f"{harness.prefix}:mail:"
    plain = NewJob("mail", "a", spec=JobSpec(dedup=Dedup("plain"), keep_completed=KEEP_ALL))
    throttled = NewJob("mail", "b", spec=JobSpec(dedup=Dedup("throttled", ttl_ms=9000)))
    await store.add([plain, throttled], request="r1")
    assert await harness.raw.get(f"{base}de:plain") == "1"
    assert await harness.raw.pttl(f"{base}de:plain") == -1
    assert 0 < await harness.raw.pttl(f"{base}de:throttled") <= 9000
    await run(store, Completed(), "1")
    await run(store, Completed(), "2")
    assert await harness.raw.exists(f"{base}de:plain", f"{base}de:throttled") == 1


async def test_requests_are_remembered_apart_from_queues(harness: RedisHarness, store: RedisStore) -> None:
    """BullMQ has no queue with an empty name, so its readers pass over our own keys."""
    await store.add([NewJob("mail", "welcome")], request="r1")
    left_ms = await harness.raw.pttl(f"{harness.prefix}::bullpen:request:r1")
    assert 0 < left_ms <= 60_000
    assert await store.queues() == ["mail"]


async def test_what_events_say_beside_bullmqs_own(harness: RedisHarness, store: RedisStore) -> None:
    """When it was by the record, and the priority, if that is all a list shows; whether a completed job is gone."""
    specs = [JobSpec(priority=3), JobSpec(tags=("t",), attempts=2), JobSpec(keep_completed=Keep(count=0))]
    for n, spec in enumerate(specs):
        await store.add([NewJob("mail", "welcome", spec=spec)], request=f"add {n}")
        if n == 1:
            await run(store, Retry(Failure("no")), "try")
        await run(store, Completed(), f"run {n}")
    beside = [
        (said["event"], {name: said[name] for name in ("at", "priority", "kept") if name in said})
        for said in await events(harness)
        if said["event"] in {"added", "active", "completed"}
    ]
    at = {"at": str(NOW)}
    first = at | {"priority": "3"}
    assert beside == [
        *[("added", first), ("active", first), ("completed", first)],
        *[("added", {}), ("active", at), ("active", {}), ("completed", {})],
        *[("added", at), ("active", at), ("completed", {"kept": "0"})],
    ]
