"""While a job runs far away: heartbeats, cancellation, words and durable steps."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bullpen.job.record import JobRef
from bullpen.job.state import State
from bullpen.stores.base import WorkerInfo, WorkerState
from tests.remote.serving import QUEUE, Caller, Served, lease_of


async def test_a_heartbeat_tells_how_each_lease_stands(served: Served, far: Caller) -> None:
    """Held; to stop, and why; or lost."""
    refs = [await served.add() for _ in range(3)]
    jobs = await far.claim(3)
    await served.store.cancel(refs[1], reason="changed my mind")
    await far.settle(jobs[2])
    beat = await far.call("heartbeat", {"leases": [lease_of(job) for job in jobs]})
    assert beat["leases"] == [
        {"state": "held"},
        {"state": "cancelling", "reason": "changed my mind"},
        {"state": "lost"},
    ]
    assert abs(beat["now_ms"] - served.store.clock.now_ms()) < 60_000


async def test_a_heartbeat_shows_the_worker(served: Served, far: Caller) -> None:
    """Under its name and that of its key, so that no key can speak for another's workers."""
    info = WorkerInfo(name="far", state=WorkerState.READY, queues={QUEUE: 2}, host="edge-7")
    body = {"name": info.name, "state": info.state, "queues": info.queues, "host": info.host}
    await far.call("heartbeat", {"info": body})
    (worker,) = await served.store.workers()
    assert worker.name.startswith("far@key:")
    assert (worker.queues, worker.host) == ({QUEUE: 2}, "edge-7")


async def test_a_cancellation_is_brought_while_the_worker_waits_for_it(served: Served, far: Caller) -> None:
    ref = await served.add()
    (job,) = await far.claim()
    waiting = asyncio.create_task(far.call("notices", {"worker": "far", "wait_s": 30}))
    await served.store.cancel(ref, reason="no more")
    notices = await waiting
    assert notices == {"cancelling": [{"lease": lease_of(job), "reason": "no more"}]}


async def test_notices_of_another_key_are_not_told(served: Served, far: Caller) -> None:
    ref = await served.add()
    await far.claim()
    await served.store.cancel(ref, reason="no more")
    other = await served.caller()
    assert await other.call("notices", {"worker": "far", "wait_s": 0}) == {"cancelling": []}


@pytest.mark.parametrize("number", [-1, 2**53, 10**40], ids=["negative", "inexact", "of any size"])
@pytest.mark.parametrize(
    "verb, said",
    [
        ("step", lambda n: {"start": n}),
        ("step", lambda n: {"limit": n}),
        ("step", lambda n: {"record": [{"place": n, "name": "one"}]}),
        ("step", lambda n: {"record": [{"place": 0, "name": "one", "until_ms": n}]}),
        ("step", lambda n: {"lease": {"epoch": n}}),
        ("claim", lambda n: {"worker": "far", "queues": {QUEUE: 1}, "request": "r", "at_most": n}),
        ("heartbeat", lambda n: {"info": {"name": "far", "state": "ready", "queues": {}, "jobs_done": n}}),
    ],
    ids=["start", "limit", "place", "until", "epoch", "at most", "info"],
)
async def test_a_number_that_no_store_keeps_is_refused(
    served: Served, far: Caller, verb: str, said: Callable[[int], dict[str, Any]], number: int
) -> None:
    """A file can keep none of any size: it was an error inside."""
    await served.add()
    (job,) = await far.claim()
    body = said(number)
    if verb == "step":
        body["lease"] = lease_of(job) | body.get("lease", {})
    assert (await far.refused(verb, body))[0] == 422


async def test_progress_and_log_reach_the_job(served: Served, far: Caller) -> None:
    """Lines whose answer was lost are sent again, and are there once."""
    ref = await served.add()
    (job,) = await far.claim()
    await far.call("progress", {"lease": lease_of(job), "value": {"done": 40}})
    for _ in range(2):
        await far.call("log", {"lease": lease_of(job), "lines": ["one", "two"], "request": "r"})
    assert (await served.store.job(ref)).progress == b'{"done":40}'
    assert (await served.store.logs(ref)).lines == ("one", "two")


async def test_words_about_a_job_that_is_lost_are_refused(served: Served, far: Caller) -> None:
    ref = await served.add()
    (job,) = await far.claim()
    await far.settle(job)
    lease = lease_of(job)
    assert await far.refused("progress", {"lease": lease, "value": 1}) == (409, "lease-lost")
    assert await far.refused("log", {"lease": lease, "lines": ["x"], "request": "r"}) == (409, "lease-lost")
    assert await far.refused("step", {"lease": lease, "record": [{"place": 0, "name": "a"}]}) == (409, "lease-lost")
    assert (await served.store.job(ref)).progress is None


async def test_steps_are_recorded_once_and_read_by_the_next_attempt(served: Served, far: Caller) -> None:
    """What is done stays as it is, however often it is sent."""
    await served.add(attempts=2)
    (job,) = await far.claim()
    record = [{"place": 0, "name": "charge", "value": {"paid": 5}}]
    first = await far.call("step", {"lease": lease_of(job), "record": record})
    again = await far.call("step", {"lease": lease_of(job), "record": [record[0] | {"value": {"paid": 7}}]})
    assert first == again
    await far.settle(job, "retry", failure={"message": "boom"})
    (job,) = await far.claim()
    (entry,) = (await far.call("step", {"lease": lease_of(job)}))["entries"]
    assert (entry["name"], entry["value"]) == ("charge", {"paid": 5})


async def test_a_signal_is_received_once(served: Served, far: Caller) -> None:
    ref = await served.add()
    (job,) = await far.claim()
    wanted = {"lease": lease_of(job), "receive": {"place": 0, "name": "approved", "kind": "wait"}}
    assert (await far.call("step", wanted))["entries"] == []
    await served.store.signal(ref, "approved", b'{"by":"ann"}', request="s")
    for _ in range(2):
        (entry,) = (await far.call("step", wanted))["entries"]
        assert entry["value"] == {"by": "ann"}


async def test_words_extend_the_lease(served: Served, far: Caller) -> None:
    """Whoever speaks of its job is alive: the lease that each call asks for holds from then on."""
    ref = await served.add()
    (job,) = await far.claim(lease_ms=100)
    await far.call("progress", {"lease": lease_of(job), "value": 1, "lease_ms": 60_000})
    await _let_the_server_look_for_lost_jobs(served, ref)
    assert (await served.store.job(ref)).state == State.ACTIVE


async def _let_the_server_look_for_lost_jobs(served: Served, ref: JobRef) -> None:
    """A job that is lost for certain is seen to be taken back, and this one with it if it were lost too."""
    other = await served.add()
    while (await served.store.job(other)).state != State.ACTIVE:
        await served.store.claim({QUEUE: 1}, worker="w", lease_ms=100, request="lost")
    async with asyncio.timeout(60):
        while (await served.store.job(other)).stalls == 0:
            await asyncio.sleep(0.01)
