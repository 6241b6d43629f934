"""Jobs cross between Node and Python in both directions, with their results, failures and options."""

import asyncio

import pytest

from bullpen.job.record import ClaimedJob, Failure, FailureKind, JobRef
from bullpen.job.spec import Backoff, Dedup, JobSpec, Keep, NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Failed, Retry, Settlement, Verdict
from bullpen.stores.base import AddOutcome, SettleOutcome
from bullpen.stores.redis import RedisStore
from tests.interop.node import Node, NodeError


async def claim_one(store: RedisStore, queue: str, request: str = "claim") -> ClaimedJob:
    assert await store.wait([queue], timeout_ms=20_000)
    claimed = await store.claim({queue: 1}, worker="bullpen", lease_ms=30_000, request=request)
    (job,) = claimed.jobs
    return job


async def settle(store: RedisStore, claimed: ClaimedJob, verdict: Verdict, request: str = "settle") -> None:
    outcomes = await store.settle([Settlement(claimed.lease, verdict)], request=request)
    assert outcomes == (SettleOutcome.SETTLED,)


# ── Node adds, Bullpen works ─────────────────────────────────────────────────────────────


async def test_node_awaits_what_bullpen_completed(store: RedisStore, node: Node) -> None:
    """`waitUntilFinished` in Node resolves with the result of a Python worker."""
    await node.call("listen", queue="mail")
    job_id = await node.call("add", queue="mail", name="welcome", data={"user": 7})
    result = asyncio.ensure_future(node.call("result", queue="mail", id=job_id, timeout=20_000))
    claimed = await claim_one(store, "mail")
    assert (claimed.job.name, claimed.job.data, claimed.job.worker) == ("welcome", b'{"user":7}', "bullpen")
    await settle(store, claimed, Completed(b'{"sent":true}'))
    assert await result == {"value": {"sent": True}}
    seen = await node.call("job", queue="mail", id=job_id)
    assert (seen["state"], seen["returnvalue"]) == ("completed", {"sent": True})


async def test_node_sees_a_failure_of_bullpen_with_its_stack(store: RedisStore, node: Node) -> None:
    await node.call("listen", queue="mail")
    job_id = await node.call("add", queue="mail", name="welcome", data={})
    result = asyncio.ensure_future(node.call("result", queue="mail", id=job_id, timeout=20_000))
    failure = Failure("no such user", type="LookupError", stack="Traceback: ümlaut\n  line 2")
    await settle(store, await claim_one(store, "mail"), Failed(failure))
    with pytest.raises(NodeError, match="no such user"):
        await result
    seen = await node.call("job", queue="mail", id=job_id)
    assert (seen["state"], seen["failedReason"]) == ("failed", "no such user")
    assert seen["stacktrace"] == ["Traceback: ümlaut\n  line 2"]


async def test_options_of_node_are_understood(store: RedisStore, node: Node) -> None:
    """Retries, backoff, priority and retention mean the same on both sides."""
    options = {
        "attempts": 4,
        "backoff": {"type": "exponential", "delay": 2000, "jitter": 0.5},
        "priority": 9,
        "jobId": "from-node",
        "removeOnComplete": {"age": 60, "count": 5},
        "removeOnFail": 3,
        "keepLogs": 20,
        "stackTraceLimit": 2,
        "deduplication": {"id": "subject"},
    }
    await node.call("add", queue="mail", name="welcome", data={}, opts=options)
    job = (await claim_one(store, "mail")).job
    assert job.spec == JobSpec(
        priority=9,
        attempts=4,
        backoff=Backoff("exponential", 2000, 0.5),
        keep_completed=Keep(5, 60_000),
        keep_failed=Keep(3),
        keep_logs=20,
        keep_stacks=2,
        dedup=Dedup("subject"),
    )
    assert (job.id, job.priority) == ("from-node", 9)


async def test_a_sleeping_bullpen_worker_is_woken_by_node(store: RedisStore, node: Node) -> None:
    """The marker that Node leaves ends our sleep; nobody polls."""
    asleep = asyncio.ensure_future(store.wait(["mail"], timeout_ms=20_000))
    await node.call("add", queue="mail", name="welcome", data={})
    assert await asyncio.wait_for(asleep, 4)


async def test_a_queue_that_node_paused_gives_nothing(store: RedisStore, node: Node) -> None:
    await node.call("add", queue="mail", name="welcome", data={})
    await node.call("pause", queue="mail")
    claimed = await store.claim({"mail": 1}, worker="bullpen", lease_ms=30_000, request="r1")
    assert claimed.jobs == ()
    assert (await store.counts("mail")).paused
    await store.resume("mail")
    assert (await claim_one(store, "mail", "r2")).job.name == "welcome"


# ── Bullpen adds, Node works ─────────────────────────────────────────────────────────────


async def test_bullpen_sees_what_node_completed(store: RedisStore, node: Node) -> None:
    await node.call("work", queue="mail")
    (added,) = await store.add([NewJob("mail", "welcome", b'{"user":7}')], request="r1")
    assert (await node.event("completed"))["id"] == added.id
    job = await store.job(JobRef("mail", added.id))
    assert job.state is State.COMPLETED
    assert job.result == b'{"echo":{"user":7},"name":"welcome","attempt":1}'
    assert (job.attempts_made, job.epoch) == (1, 1)


async def test_bullpen_sees_a_failure_of_node_with_its_stack(store: RedisStore, node: Node) -> None:
    await node.call("work", queue="mail")
    (added,) = await store.add([NewJob("mail", "welcome", b'{"fail":"no luck"}')], request="r1")
    await node.event("failed")
    job = await store.job(JobRef("mail", added.id))
    assert job.failure == Failure("no luck", FailureKind.ERROR)
    assert "no luck" in job.stacks[0]


async def test_options_of_bullpen_are_understood_by_node(store: RedisStore, node: Node) -> None:
    """Node shows our options under its own names, and leaves those alone that it does not know."""
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
    await store.add([NewJob("mail", "welcome", id="from-bullpen", spec=spec)], request="r1")
    seen = await node.call("job", queue="mail", id="from-bullpen")
    assert seen["state"] == "prioritized"
    assert seen["opts"] == {
        "attempts": 4,
        "backoff": {"type": "exponential", "delay": 2000, "jitter": 0.5},
        "priority": 9,
        "jobId": "from-bullpen",
        "removeOnComplete": {"age": 60, "count": 5},
        "removeOnFail": True,
        "keepLogs": 20,
        "stackTraceLimit": 2,
        "deduplication": {"id": "subject", "ttl": 5000},
        "bullpen": {"tenant": "acme", "tags": ["a", "b"], "timeoutMs": 1000, "maxDelayMs": 60_000},
    }


async def test_a_delayed_job_of_bullpen_is_started_by_node(store: RedisStore, node: Node) -> None:
    """Our delay marker wakes Node's sleeping worker at the job's time."""
    await node.call("work", queue="mail")
    (added,) = await store.add([NewJob("mail", "welcome", spec=JobSpec(delay_ms=300))], request="r1")
    assert (await node.event("completed"))["id"] == added.id
    job = await store.job(JobRef("mail", added.id))
    assert job.started_ms is not None
    assert job.started_ms - job.added_ms >= 300


async def test_node_goes_on_with_a_retry_of_bullpen(store: RedisStore, node: Node) -> None:
    """A first attempt in Python, a second one in Node: attempts and epochs are counted together."""
    await store.add([NewJob("mail", "welcome", id="shared", spec=JobSpec(attempts=2))], request="r1")
    await settle(store, await claim_one(store, "mail"), Retry(Failure("not yet", FailureKind.TIMEOUT)))
    waiting = await store.job(JobRef("mail", "shared"))
    assert (waiting.state, waiting.failure) == (State.WAITING, Failure("not yet", FailureKind.TIMEOUT))
    await node.call("work", queue="mail")
    await node.event("completed")
    job = await store.job(JobRef("mail", "shared"))
    assert (job.state, job.attempts_made, job.epoch) == (State.COMPLETED, 2, 2)


async def test_one_subject_for_both(store: RedisStore, node: Node) -> None:
    """A job that Node added stands for the same subject in Bullpen, and ends there."""
    job_id = await node.call("add", queue="mail", name="a", data={}, opts={"deduplication": {"id": "s"}})
    job = NewJob("mail", "b", spec=JobSpec(dedup=Dedup("s")))
    (kept,) = await store.add([job], request="r1")
    assert (kept.id, kept.outcome) == (job_id, AddOutcome.DEDUPLICATED)
    await settle(store, await claim_one(store, "mail"), Completed())
    (added,) = await store.add([job], request="r2")
    assert added.outcome == AddOutcome.ADDED


async def test_the_last_one_that_node_kept_is_added_by_bullpen(store: RedisStore, node: Node) -> None:
    """Node stores the newest duplicate of a running job; our settlement of that job adds it."""
    opts = {"deduplication": {"id": "s", "keepLastIfActive": True}}
    await node.call("add", queue="mail", name="first", data={}, opts=opts)
    running = await claim_one(store, "mail", "c1")
    await node.call("add", queue="mail", name="last", data={"n": 2}, opts=opts)
    assert (await store.counts("mail")).waiting == 0
    await settle(store, running, Completed())
    following = await claim_one(store, "mail", "c2")
    assert (following.job.name, following.job.data) == ("last", b'{"n":2}')
