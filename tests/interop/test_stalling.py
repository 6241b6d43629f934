"""A worker that was killed: each side takes back what a dead worker of the other held.

Leases are short here, so that a dead worker's run out soon. Nothing is asserted of how soon.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bullpen import CrashLimits, EventKind, Failure, FailureKind, JobFailed, State
from bullpen.stores.base import Rescued
from tests.interop.cells import TO_BULLPEN, TO_PEER, cell
from tests.interop.peers import PATIENCE_S, ROOT, Peer
from tests.interop.us import QUEUE, Us
from tests.support.redis_harness import RedisHarness

SHORT_MS = 300
LONGER_MS = 3_000
"""For whoever renews what it holds: one that a busy machine keeps from it would take its own job back."""
_CHECKING = {"stalledInterval": SHORT_MS, "lockDuration": 5_000}
_BY_PEER = "job stalled more than allowable limit"


@contextlib.asynccontextmanager
async def our_doomed_worker(harness: RedisHarness) -> AsyncIterator[asyncio.subprocess.Process]:
    command = [sys.executable, "-m", "tests.interop.ours", harness.url, harness.prefix, QUEUE, str(LONGER_MS)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def left_by_our_dead_worker(us: Us, harness: RedisHarness, **options: Any) -> str:
    """The id of a job that is active, and whose worker was killed."""
    job = await us.queue.add("long", {"hold": True}, **options)
    async with our_doomed_worker(harness) as process:
        await us.told_of(job.id, EventKind.ACTIVE)
        process.kill()
    return job.id


async def left_by_a_dead_peer(peer: Peer, doomed: Peer, **opts: Any) -> str:
    await doomed.call("work", options={"lockDuration": SHORT_MS})
    job_id = await peer.call("add", name="long", data={"hold": True}, opts=opts)
    await doomed.hears("holding", id=job_id)
    doomed.kill()
    return str(job_id)


# ── the peer died ────────────────────────────────────────────────────────────────────────


@cell("stalled: taken back", TO_BULLPEN)
async def test_we_take_back_and_run_what_a_dead_peer_held(us: Us, peer: Peer, doomed: Peer) -> None:
    job_id = await left_by_a_dead_peer(peer, doomed)
    async with us.working(lease=LONGER_MS / 1000) as handling:
        assert await us.held(handling) == job_id
        handling.release()
        assert (await us.job(job_id).result(60))["attempt"] == 1
    record = await us.record(job_id)
    assert (record.stalls, record.attempts_made, record.epoch) == (1, 1, 2)
    assert (await peer.call("job", id=job_id))["stalledCounter"] == 1
    assert "stalled" in await us.told_of(job_id, EventKind.COMPLETED)


@cell("stalled: taken back", TO_BULLPEN)
async def test_what_we_take_back_goes_to_the_head_of_its_priority(us: Us, peer: Peer, doomed: Peer) -> None:
    job_id = await left_by_a_dead_peer(peer, doomed, priority=3)
    other = await peer.call("add", name="other", data={}, opts={"priority": 3})
    await peer.call("pause")
    async with us.working(lease=LONGER_MS / 1000):
        await us.told_of(job_id, EventKind.STALLED)
    assert await peer.call("ids", state="prioritized", asc=True) == [job_id, other]


@cell("stalled: over the limit", TO_BULLPEN)
async def test_what_a_dead_peer_held_once_too_often_fails_here(us: Us, peer: Peer, doomed: Peer) -> None:
    job_id = await left_by_a_dead_peer(peer, doomed, attempts=5)
    async with us.working(lease=LONGER_MS / 1000, max_stalled=0):
        with pytest.raises(JobFailed) as failed:
            await us.job(job_id).result(60)
    failure = failed.value.failure
    assert isinstance(failure, Failure)
    assert failure.kind == FailureKind.STALLED
    seen = await peer.call("job", id=job_id)
    assert (seen["state"], seen["failedReason"]) == ("failed", failure.message)


# ── ours died ────────────────────────────────────────────────────────────────────────────


@cell("stalled: taken back", TO_PEER)
async def test_the_peer_takes_back_and_runs_what_our_dead_worker_held(
    us: Us, peer: Peer, harness: RedisHarness
) -> None:
    job_id = await left_by_our_dead_worker(us, harness)
    await peer.call("work", options=_CHECKING)
    await peer.hears("stalled", id=job_id)
    await peer.hears("holding", id=job_id)
    await peer.call("release")
    await us.job(job_id).result(60)
    record = await us.record(job_id)
    assert (record.stalls, record.attempts_made, record.epoch) == (1, 1, 2)


@cell("stalled: taken back", TO_PEER)
async def test_a_job_with_a_priority_that_the_peer_took_back_still_runs_here(
    us: Us, peer: Peer, harness: RedisHarness
) -> None:
    """BullMQ puts it into the line of jobs without a priority."""
    job_id = await left_by_our_dead_worker(us, harness, priority=5)
    await us.queue.pause()
    await peer.call("work", options=_CHECKING)
    await peer.hears("stalled", id=job_id)
    await peer.call("rest")
    record = await us.record(job_id)
    assert (record.state, record.priority) == (State.WAITING, 5)
    await us.queue.resume()
    async with us.working() as handling:
        assert await us.held(handling) == job_id
        handling.release()
        await us.job(job_id).result(60)


@cell("stalled: over the limit", TO_PEER)
async def test_a_job_that_the_peer_doomed_fails_here_without_being_run(
    us: Us, peer: Peer, harness: RedisHarness
) -> None:
    """BullMQ's check only notes the failure; whoever takes the job next is to carry it out."""
    job_id = await left_by_our_dead_worker(us, harness, attempts=5)
    await us.queue.pause()
    await peer.call("work", options=_CHECKING | {"maxStalledCount": 0})
    await peer.hears("stalled", id=job_id)
    await peer.call("rest")
    await us.queue.resume()
    async with us.working() as handling:
        with pytest.raises(JobFailed, match=_BY_PEER):
            await us.job(job_id).result(60)
        assert handling.holding.empty()
    seen = await peer.call("job", id=job_id)
    assert (seen["state"], seen["failedReason"]) == ("failed", _BY_PEER)
    assert not seen.get("deferredFailure")


@cell("stalled: over the limit", TO_PEER)
async def test_a_job_that_the_peer_doomed_fails_there_too(us: Us, peer: Peer, harness: RedisHarness) -> None:
    job_id = await left_by_our_dead_worker(us, harness)
    await peer.call("work", options=_CHECKING | {"maxStalledCount": 0})
    with pytest.raises(JobFailed, match=_BY_PEER):
        await us.job(job_id).result(60)
    assert (await us.record(job_id)).state == State.FAILED


# ── neither died ─────────────────────────────────────────────────────────────────────────


@cell("stalled: a living worker keeps its job", TO_BULLPEN)
async def test_we_do_not_take_back_what_a_living_peer_renews(us: Us, peer: Peer, harness: RedisHarness) -> None:
    await peer.call("work", options={"lockDuration": LONGER_MS})
    job_id = await peer.call("add", name="long", data={"hold": True}, opts={})
    await peer.hears("holding", id=job_id)
    await renewed(harness, job_id)
    assert await us.store.rescue([QUEUE], limits=CrashLimits()) == Rescued()
    await peer.call("release")
    await us.job(job_id).result(60)
    record = await us.record(job_id)
    assert (record.stalls, record.epoch) == (0, 1)


@cell("stalled: a living worker keeps its job", TO_PEER)
async def test_the_peer_does_not_take_back_what_we_renew(us: Us, peer: Peer, harness: RedisHarness) -> None:
    async with us.working(lease=LONGER_MS / 1000) as handling:
        job = await us.queue.add("long", {"hold": True})
        await us.held(handling)
        await renewed(harness, job.id)
        await peer.call("work", options=_CHECKING)
        await checked_twice(harness)
        handling.release()
        await job.result(60)
    record = await job.record()
    assert (record.stalls, record.epoch) == (0, 1)


async def renewed(harness: RedisHarness, job_id: str) -> None:
    """Its lock has got a longer life than it had."""
    lock = f"{harness.prefix}:{QUEUE}:{job_id}:lock"
    left_ms = await harness.raw.pttl(lock)
    async with asyncio.timeout(PATIENCE_S):
        while (now_ms := await harness.raw.pttl(lock)) <= left_ms:
            left_ms = now_ms
            await asyncio.sleep(0.01)


async def checked_twice(harness: RedisHarness) -> None:
    """BullMQ's check marks what is active, and takes at its next turn what is marked; it notes each turn's time."""
    turns: set[str] = set()
    async with asyncio.timeout(PATIENCE_S):
        while len(turns) < 3:
            turn = await harness.raw.get(f"{harness.prefix}:{QUEUE}:stalled-check")
            turns |= {str(turn)} if turn else set()
            await asyncio.sleep(0.01)
