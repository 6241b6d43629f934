"""Jobs that one side adds are run by the other, each at its place and its time."""

import asyncio

import pytest

from bullpen import State
from bullpen.job.spec import Backoff, Dedup, JobSpec, Keep, NewJob
from bullpen.stores.base import AddOutcome
from tests.interop.cells import TO_BULLPEN, TO_PEER, cell
from tests.interop.peers import PATIENCE_S, Peer
from tests.interop.us import QUEUE, Us
from tests.support.redis_harness import RedisHarness

DATA = {"user": 7, "text": "ümlaut ☃", "nested": {"list": [1, 2.5, None, True, []], "empty": {}}}


async def someone_sleeps(harness: RedisHarness) -> None:
    """A worker waits at the server for a marker."""
    async with asyncio.timeout(PATIENCE_S):
        while (await harness.raw.info("clients"))["blocked_clients"] == 0:
            await asyncio.sleep(0.01)


@cell("add: plain", TO_BULLPEN)
async def test_a_job_of_the_peer_is_run_by_us(us: Us, peer: Peer) -> None:
    async with us.working():
        job_id = await peer.call("add", name="welcome", data=DATA, opts={})
        assert await us.job(job_id).result(60) == {"echo": DATA, "name": "welcome", "attempt": 1}
    seen = await peer.call("job", id=job_id)
    assert (seen["state"], seen["returnvalue"]["echo"]) == ("completed", DATA)


@cell("add: plain", TO_PEER)
async def test_a_job_of_ours_is_run_by_the_peer(us: Us, peer: Peer) -> None:
    await peer.call("work", options={})
    job = await us.queue.add("welcome", DATA)
    assert await job.result(60) == {"echo": DATA, "name": "welcome", "attempt": 1}
    seen = await peer.call("job", id=job.id)
    assert (seen["state"], seen["name"], seen["data"]) == ("completed", "welcome", DATA)


@cell("add: plain", TO_BULLPEN)
async def test_our_sleeping_worker_is_woken_by_the_peer(
    us: Us, peer: Peer, harness: RedisHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marker that the peer leaves ends our sleep; here we never look by ourselves."""
    monkeypatch.setattr("bullpen.stores.redis.waiting.LONGEST_BLOCK_MS", 3_600_000)
    asleep = asyncio.ensure_future(us.store.wait([QUEUE], timeout_ms=3_600_000))
    await someone_sleeps(harness)
    await peer.call("add", name="welcome", data={}, opts={})
    assert await asyncio.wait_for(asleep, PATIENCE_S)
    await us.settle(await us.claim())


@cell("add: plain", TO_PEER)
async def test_a_sleeping_worker_of_the_peer_is_woken_by_us(us: Us, peer: Peer, harness: RedisHarness) -> None:
    """The peers' workers in these tests never look by themselves."""
    await peer.call("work", options={})
    await someone_sleeps(harness)
    for _ in range(2):
        await (await us.queue.add("welcome")).result(60)


@cell("add: delayed", TO_BULLPEN)
async def test_a_delayed_job_of_the_peer_is_run_by_us_at_its_time(us: Us, peer: Peer) -> None:
    async with us.working():
        job_id = await peer.call("add", name="later", data={}, opts={"delay": 200})
        await us.job(job_id).result(60)
    record = await us.record(job_id)
    assert record.started_ms is not None
    assert record.started_ms - record.added_ms >= 200


@cell("add: delayed", TO_PEER)
async def test_a_delayed_job_of_ours_is_run_by_the_peer_at_its_time(us: Us, peer: Peer, harness: RedisHarness) -> None:
    """Our delay marker wakes the peer's sleeping worker."""
    await peer.call("work", options={})
    await someone_sleeps(harness)
    job = await us.queue.add("later", delay=0.2)
    await job.result(60)
    record = await us.record(job.id)
    assert record.started_ms is not None
    assert record.started_ms - record.added_ms >= 200


@cell("add: delayed", TO_PEER)
async def test_the_peer_shows_our_delay(us: Us, peer: Peer) -> None:
    job = await us.queue.add("later", delay=3600)
    seen = await peer.call("job", id=job.id)
    assert (seen["state"], seen["delay"]) == ("delayed", 3_600_000)


@cell("add: prioritized", TO_BULLPEN)
async def test_priorities_of_the_peer_are_kept_by_us(us: Us, peer: Peer) -> None:
    """No priority first, then the lowest number, then the first that came."""
    wanted = [("c", 9), ("b1", 2), ("b2", 2), ("a", 0)]
    ids = {name: await peer.call("add", name=name, data={}, opts={"priority": n}) for name, n in wanted}
    assert (await us.record(ids["b1"])).state == State.PRIORITIZED
    async with us.working():
        assert await us.order(4) == [ids["a"], ids["b1"], ids["b2"], ids["c"]]


@cell("add: prioritized", TO_PEER)
async def test_priorities_of_ours_are_kept_by_the_peer(us: Us, peer: Peer) -> None:
    wanted = [("c", 9), ("b1", 2), ("b2", 2), ("a", 0)]
    ids = {name: (await us.queue.add(name, priority=n)).id for name, n in wanted}
    seen = await peer.call("job", id=ids["b1"])
    assert (seen["state"], seen["priority"]) == ("prioritized", 2)
    await peer.call("work", options={})
    assert await us.order(4) == [ids["a"], ids["b1"], ids["b2"], ids["c"]]


@cell("add: LIFO", TO_BULLPEN)
async def test_the_last_job_of_the_peer_is_run_first_by_us(us: Us, peer: Peer) -> None:
    first = await peer.call("add", name="first", data={}, opts={})
    last = await peer.call("add", name="last", data={}, opts={"lifo": True})
    async with us.working():
        assert await us.order(2) == [last, first]


@cell("add: LIFO", TO_PEER)
async def test_the_last_job_of_ours_is_run_first_by_the_peer(us: Us, peer: Peer) -> None:
    first = await us.queue.add("first")
    last = await us.queue.add("last", lifo=True)
    await peer.call("work", options={})
    assert await us.order(2) == [last.id, first.id]


@cell("add: custom id", TO_BULLPEN)
async def test_an_id_that_the_peer_gave_is_taken_for_us(us: Us, peer: Peer) -> None:
    assert await peer.call("add", name="first", data={"n": 1}, opts={"jobId": "order-7"}) == "order-7"
    again = await us.queue.add("second", {"n": 2}, id="order-7")
    assert (again.id, again.outcome) == ("order-7", AddOutcome.DUPLICATE)
    async with us.working():
        assert (await us.job("order-7").result(60))["echo"] == {"n": 1}


@cell("add: custom id", TO_PEER)
async def test_an_id_that_we_gave_is_taken_for_the_peer(us: Us, peer: Peer) -> None:
    job = await us.queue.add("first", {"n": 1}, id="order-7")
    assert await peer.call("add", name="second", data={"n": 2}, opts={"jobId": "order-7"}) == "order-7"
    await peer.call("work", options={})
    assert (await job.result(60))["echo"] == {"n": 1}


@cell("add: in bulk", TO_BULLPEN)
async def test_a_bulk_of_the_peer_is_run_by_us(us: Us, peer: Peer) -> None:
    options = [{}, {"priority": 3}, {"delay": 100}, {"jobId": "own"}]
    jobs = [{"name": f"job-{n}", "data": {"n": n}, "opts": opts} for n, opts in enumerate(options)]
    ids = await peer.call("addBulk", jobs=jobs)
    async with us.working():
        results = [await us.job(job_id).result(60) for job_id in ids]
    assert [result["echo"]["n"] for result in results] == [0, 1, 2, 3]


@cell("add: in bulk", TO_PEER)
async def test_a_bulk_of_ours_is_run_by_the_peer(us: Us, peer: Peer) -> None:
    queue = us.queue
    jobs = await queue.add_bulk(
        [
            queue.prepare("job-0", {"n": 0}),
            queue.prepare("job-1", {"n": 1}, priority=3),
            queue.prepare("job-2", {"n": 2}, delay=0.1),
            queue.prepare("job-3", {"n": 3}, id="own"),
        ]
    )
    await peer.call("work", options={})
    assert [(await job.result(60))["echo"]["n"] for job in jobs] == [0, 1, 2, 3]


# ── all options at once ──────────────────────────────────────────────────────────────────


@cell("options: all of them read", TO_BULLPEN)
async def test_options_of_the_peer_are_understood_by_us(us: Us, peer: Peer) -> None:
    """Retries, backoff, priority, retention and subject mean the same on both sides."""
    options = {
        "attempts": 4,
        "backoff": {"type": "exponential", "delay": 2000, "jitter": 0.5},
        "priority": 9,
        "jobId": "from-peer",
        "removeOnComplete": {"age": 60, "count": 5},
        "removeOnFail": 3,
        "keepLogs": 20,
        "stackTraceLimit": 2,
        "deduplication": {"id": "subject"},
    }
    await peer.call("add", name="welcome", data={}, opts=options)
    claimed = await us.claim()
    assert claimed.job.spec == JobSpec(
        priority=9,
        attempts=4,
        backoff=Backoff("exponential", 2000, 0.5),
        keep_completed=Keep(5, 60_000),
        keep_failed=Keep(3),
        keep_logs=20,
        keep_stacks=2,
        dedup=Dedup("subject"),
    )
    assert (claimed.job.id, claimed.job.priority) == ("from-peer", 9)
    await us.settle(claimed)


@cell("options: all of them read", TO_PEER)
async def test_options_of_ours_are_understood_by_the_peer(us: Us, peer: Peer) -> None:
    """The peer shows our options under its own names, and leaves those alone that it does not know."""
    spec = JobSpec(
        priority=9,
        attempts=4,
        backoff=Backoff("exponential", 2000, 0.5, max_delay_ms=60_000),
        keep_completed=Keep(5, 60_000),
        keep_failed=Keep(0),
        keep_logs=20,
        keep_stacks=2,
        dedup=Dedup("subject", ttl_ms=5000),
        tenant="acme",
        tags=("a", "b"),
        timeout_ms=1000,
    )
    await us.store.add([NewJob(QUEUE, "welcome", id="from-bullpen", spec=spec)], request="r1")
    seen = await peer.call("job", id="from-bullpen")
    assert seen["state"] == "prioritized"
    # BullMQ for Python adds a delay of its own to what it reads.
    assert seen["opts"] | {"delay": 0} == {
        "attempts": 4,
        "backoff": {"type": "exponential", "delay": 2000, "jitter": 0.5},
        "delay": 0,
        "priority": 9,
        "jobId": "from-bullpen",
        "removeOnComplete": {"age": 60, "count": 5},
        "removeOnFail": True,
        "keepLogs": 20,
        "stackTraceLimit": 2,
        "deduplication": {"id": "subject", "ttl": 5000},
        "bullpen": {"tenant": "acme", "tags": ["a", "b"], "timeoutMs": 1000, "maxDelayMs": 60_000},
    }
