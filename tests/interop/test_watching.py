"""What one side sees of the other: events, results, workers, records, lists and counts."""

import asyncio
from typing import Any

import pytest

from bullpen import Event, EventKind, JobFailed, Queue, State, exponential, keep
from tests.interop.cells import PYPI, TO_BULLPEN, TO_PEER, cell
from tests.interop.peers import Peer, PeerError
from tests.interop.us import QUEUE, Us

HOUR_S = 3600
_STATES = {
    "waiting": State.WAITING,
    "prioritized": State.PRIORITIZED,
    "delayed": State.DELAYED,
    "active": State.ACTIVE,
    "completed": State.COMPLETED,
    "failed": State.FAILED,
}
NO_AWAITING = {PYPI: "its jobs have no waitUntilFinished"}


# ── results ──────────────────────────────────────────────────────────────────────────────


@cell("await the result", TO_BULLPEN, lacks=NO_AWAITING)
async def test_the_peer_awaits_what_we_complete(us: Us, peer: Peer) -> None:
    """`waitUntilFinished` resolves with the result of a job that Python runs."""
    await peer.call("listen")
    job_id = await peer.call("add", name="welcome", data={"hold": True}, opts={})
    async with us.working() as handling:
        await us.held(handling)
        awaited = asyncio.ensure_future(peer.call("result", id=job_id, timeout=20_000))
        handling.release()
        assert (await awaited)["value"]["name"] == "welcome"


@cell("await the result", TO_BULLPEN, lacks=NO_AWAITING)
async def test_the_peer_awaits_what_we_fail(us: Us, peer: Peer) -> None:
    await peer.call("listen")
    job_id = await peer.call("add", name="welcome", data={"hold": True, "fail": "no luck"}, opts={})
    async with us.working() as handling:
        await us.held(handling)
        awaited = asyncio.ensure_future(peer.call("result", id=job_id, timeout=20_000))
        handling.release()
        with pytest.raises(PeerError, match="no luck"):
            await awaited


@cell("await the result", TO_BULLPEN, lacks=NO_AWAITING)
async def test_the_peer_gets_a_result_that_was_there_before(us: Us, peer: Peer) -> None:
    await peer.call("listen")
    async with us.working():
        job = await us.queue.add("welcome")
        await job.result(60)
    assert (await peer.call("result", id=job.id, timeout=20_000))["value"]["name"] == "welcome"


@cell("await the result", TO_PEER)
async def test_we_await_what_the_peer_completes(us: Us, peer: Peer) -> None:
    """The result comes with the event, so it is there though the job is not."""
    job = await us.queue.add("welcome", {"n": 1}, keep_completed=keep(0))
    awaited = asyncio.ensure_future(job.result(60))
    await peer.call("work", options={})
    assert await awaited == {"echo": {"n": 1}, "name": "welcome", "attempt": 1}
    assert await peer.call("job", id=job.id) is None


@cell("await the result", TO_PEER)
async def test_we_await_what_the_peer_fails(us: Us, peer: Peer) -> None:
    job = await us.queue.add("welcome", {"fail": "no luck"})
    awaited = asyncio.ensure_future(job.result(60))
    await peer.call("work", options={})
    with pytest.raises(JobFailed, match="no luck"):
        await awaited


# ── events ───────────────────────────────────────────────────────────────────────────────

_STORY = {
    "plain": ["added", "waiting", "active", "progress", "completed"],
    "shaky": ["added", "waiting", "active", "delayed", "waiting", "active", "failed", "retries-exhausted"],
    "later": ["added", "delayed", "removed"],
    "twice": ["added", "waiting", "duplicated", "active", "completed"],
    "subject": ["added", "waiting", "deduplicated", "active", "completed"],
}
"""What is told of each job, in order, whoever did it."""
_SHAKY = {"attempts": 2, "backoff": {"type": "exponential", "delay": 20}}


@cell("events", TO_PEER)
async def test_the_peer_hears_of_all_that_we_do(us: Us, peer: Peer) -> None:
    await peer.call("listen")
    queue = us.queue
    await queue.pause()
    await queue.resume()
    plain = await queue.add("plain", {"progress": {"half": 0.5}})
    shaky = await queue.add("shaky", {"fail": "no luck"}, attempts=2, backoff=exponential(0.02))
    later = await queue.add("later", delay=HOUR_S)
    await later.remove()
    twice = await queue.add("twice", id="own")
    await queue.add("twice", id="own")
    subject = await queue.add("subject", dedup="s")
    await queue.add("subject", dedup="s")
    async with us.working():
        jobs = {"plain": plain, "shaky": shaky, "later": later, "twice": twice, "subject": subject}
        told = {name: await peer.hears_of(job.id, *_STORY[name]) for name, job in jobs.items()}
        await peer.hears("drained", source="events")
    assert told == _STORY
    by_name = {(said["event"], said["args"].get("jobId")): said["args"] for said in peer.heard if "args" in said}
    assert by_name["added", plain.id]["name"] == "plain"
    assert by_name["progress", plain.id]["data"] == {"half": 0.5}
    assert by_name["completed", plain.id]["returnvalue"]["name"] == "plain"
    assert by_name["failed", shaky.id]["failedReason"] == "no luck"
    assert by_name["retries-exhausted", shaky.id]["attemptsMade"] == "2"
    assert by_name["removed", later.id]["prev"] == "delayed"
    assert by_name["deduplicated", subject.id]["deduplicationId"] == "s"
    assert {"paused", "resumed"} <= {said["event"] for said in peer.heard}


@cell("events", TO_BULLPEN)
async def test_we_hear_of_all_that_the_peer_does(us: Us, peer: Peer) -> None:
    await peer.call("pause")
    await peer.call("resume")
    ids = {
        "plain": await _add(peer, "plain", {"progress": {"half": 0.5}}),
        "shaky": await _add(peer, "shaky", {"fail": "no luck"}, **_SHAKY),
        "later": await _add(peer, "later", delay=HOUR_S * 1000),
    }
    await peer.call("remove", id=ids["later"])
    for _ in range(2):
        ids["twice"] = await _add(peer, "twice", jobId="own")
        ids["subject"] = await _add(peer, "subject", deduplication={"id": "s"})
    await peer.call("work", options={})
    events = await us.events(EventKind.RETRIES_EXHAUSTED)
    told = {name: [event.kind.value for event in events if event.job_id == ids[name]] for name in _STORY}
    assert told == _STORY
    assert {EventKind.PAUSED, EventKind.RESUMED, EventKind.DRAINED} <= {event.kind for event in events}
    assert _one(events, EventKind.COMPLETED, ids["plain"]).value is not None
    failure = _one(events, EventKind.FAILED, ids["shaky"]).failure
    assert failure is not None
    assert failure.message == "no luck"


async def _add(peer: Peer, job_name: str, data: Any = None, **opts: Any) -> str:
    return str(await peer.call("add", name=job_name, data=data or {}, opts=opts))


def _one(events: list[Event], kind: EventKind, job_id: str) -> Event:
    (found,) = [event for event in events if (event.kind, event.job_id) == (kind, job_id)]
    return found


# ── workers ──────────────────────────────────────────────────────────────────────────────


@cell("workers listed", TO_PEER, lacks={PYPI: "it looks for names that neither Node nor we use"})
async def test_the_peer_lists_our_worker_once_for_each_of_its_queues(us: Us, peer: Peer) -> None:
    async with us.working(QUEUE, "other", name="our-worker"):
        for queue in (QUEUE, "other"):
            await (await Queue(us.store, queue).add("a")).result(60)
            (name,) = await peer.call("workers", queue)
            assert name.endswith(":w:our-worker")
    assert await peer.call("workers") == []


# ── records, lists and counts ────────────────────────────────────────────────────────────


async def _some_of_each(us: Us, peer: Peer) -> None:
    """Jobs of both in every state."""
    async with us.working():
        for n in range(2):
            await us.job(await _add(peer, f"done-{n}")).result(60)
            await (await us.queue.add(f"done-{n}")).result(60)
            for job in (us.job(await _add(peer, "bad", {"fail": "no"})), await us.queue.add("bad", {"fail": "no"})):
                with pytest.raises(JobFailed):
                    await job.result(60)
    for n in range(3):
        await us.queue.add("run")
        await us.claim(f"claim {n}")
    for n in (3, 1, 2):
        await us.queue.add("a")
        await _add(peer, "b")
        await _add(peer, "c", lifo=True)
        await us.queue.add("d", priority=n)
        await _add(peer, "e", priority=n)
        await us.queue.add("f", delay=HOUR_S * n)
        await _add(peer, "g", delay=HOUR_S * 1000 * n)


@cell("getters and counts equal", TO_BULLPEN)
async def test_both_list_the_same_jobs_in_the_same_order(us: Us, peer: Peer) -> None:
    await _some_of_each(us, peer)
    for name, state in _STATES.items():
        page = await us.queue.jobs(state)
        assert await peer.call("ids", state=name, asc=True) == [job.id for job in page.jobs], name
        page = await us.queue.jobs(state, newest_first=True)
        assert await peer.call("ids", state=name, asc=False) == [job.id for job in page.jobs], name


@cell("getters and counts equal", TO_PEER)
async def test_both_count_the_same(us: Us, peer: Peer) -> None:
    await _some_of_each(us, peer)
    seen = await peer.call("counts")
    counts = await us.queue.counts()
    ours = {name: getattr(counts, name) for name in _STATES}
    assert ours == {"waiting": 9, "prioritized": 6, "delayed": 6, "active": 3, "completed": 4, "failed": 4}
    assert {name: seen.get(name, seen.get("wait")) for name in _STATES} == ours


@cell("getters and counts equal", TO_PEER)
async def test_both_read_the_same_record(us: Us, peer: Peer) -> None:
    await _some_of_each(us, peer)
    for name, state in _STATES.items():
        for job in (await us.queue.jobs(state)).jobs:
            seen = await peer.call("job", id=job.id)
            assert seen["state"] == name
            assert (seen["name"], seen["priority"]) == (job.name, job.priority)
            assert (seen["attemptsMade"], seen["attemptsStarted"]) == (job.attempts_made, job.epoch)
            assert (seen.get("failedReason") or None) == (job.failure.message if job.failure else None)
