"""One side steers a queue, and the other obeys: paused, resumed, drained, cleaned, obliterated."""

import pytest

from bullpen import EventKind, Failure, Queue, QueueMissing, State, rate
from bullpen.job.record import ClaimedJob, CrashLimits
from bullpen.job.verdicts import Failed, Released
from tests.interop.cells import NPM_5, TO_BULLPEN, TO_PEER, cell
from tests.interop.peers import Peer
from tests.interop.us import QUEUE, Us
from tests.support.redis_harness import RedisHarness

OTHER = "other"


async def served(us: Us) -> None:
    """Whoever works has looked at all queues since: a job of another queue, added later, has ended."""
    await (await Queue(us.store, OTHER).add("later")).result(60)


@cell("pause, resume", TO_BULLPEN)
async def test_our_worker_obeys_the_peers_pause_and_resume(us: Us, peer: Peer) -> None:
    async with us.working(QUEUE, OTHER):
        await peer.call("pause")
        job = await us.queue.add("a")
        await served(us)
        assert (await us.queue.counts()).paused
        assert (await job.record()).state == State.WAITING
        await peer.call("resume")
        await job.result(60)


@cell("pause, resume", TO_PEER)
async def test_the_peers_worker_obeys_our_pause_and_resume(us: Us, peer: Peer) -> None:
    await us.queue.pause()
    assert await peer.call("isPaused")
    job = await us.queue.add("a")
    await peer.call("work", options={})
    await peer.call("work", OTHER, options={})
    await served(us)
    assert (await job.record()).state == State.WAITING
    await us.queue.resume()
    await job.result(60)
    assert not await peer.call("isPaused")


@cell("pause here, resume there", TO_BULLPEN)
async def test_what_the_peer_paused_is_resumed_by_us_in_the_old_order(us: Us, peer: Peer) -> None:
    """5.x moves waiting jobs to a list of its own; our resume puts them before those that came since."""
    ids = [await peer.call("add", name="a", data={}, opts={}) for _ in range(2)]
    await peer.call("pause")
    ids.append((await us.queue.add("b")).id)
    assert (await us.queue.counts()).waiting == 3
    seen = await peer.call("counts")
    assert seen.get("waiting", seen.get("wait", 0)) + seen.get("paused", 0) == 3
    assert (await us.store.claim({QUEUE: 1}, worker="w", lease_ms=30_000, request="r")).jobs == ()
    await us.queue.resume()
    async with us.working():
        assert await us.order(3) == ids


@pytest.mark.parametrize("peer", [NPM_5], indirect=True)
async def test_the_lists_of_both_majors_are_merged_by_our_resume(us: Us, peer: Peer, node_6: Peer) -> None:
    """5.x moved its jobs aside, 6.x added to the line itself: a resume by 5.x would drop the latter."""
    ids = [await peer.call("add", name="a", data={}, opts={}) for _ in range(2)]
    await peer.call("pause")
    ids += [await node_6.call("add", name="b", data={}, opts={}) for _ in range(2)]
    await us.queue.resume()
    async with us.working():
        assert await us.order(4) == ids


@cell("pause here, resume there", TO_PEER)
async def test_what_we_paused_is_resumed_by_the_peer_in_the_old_order(us: Us, peer: Peer) -> None:
    """We pause as 5.x does where it has opened the queue before: it would lose what stands elsewhere."""
    await peer.call("counts")
    ids = [(await us.queue.add("a")).id for _ in range(2)]
    await us.queue.pause()
    ids.append(await peer.call("add", name="b", data={}, opts={}))
    await peer.call("resume")
    assert (await us.queue.counts()).waiting == 3
    await peer.call("work", options={})
    assert await us.order(3) == ids


@cell("adds while paused: none lost", TO_BULLPEN)
async def test_what_we_add_while_the_peer_pauses_is_there_when_it_resumes(us: Us, peer: Peer) -> None:
    ids = [await peer.call("add", name="a", data={}, opts={})]
    await peer.call("pause")
    ids.append((await us.queue.add("b")).id)
    ids.append(await peer.call("add", name="c", data={}, opts={}))
    await peer.call("resume")
    assert (await us.queue.counts()).waiting == 3
    async with us.working():
        assert await us.order(3) == ids


@cell("adds while paused: none lost", TO_BULLPEN)
async def test_what_we_add_to_an_empty_queue_that_the_peer_paused_is_there_when_it_resumes(us: Us, peer: Peer) -> None:
    await peer.call("pause")
    ids = [(await us.queue.add("b")).id, await peer.call("add", name="c", data={}, opts={})]
    await peer.call("resume")
    assert (await us.queue.counts()).waiting == 2
    async with us.working():
        assert await us.order(2) == ids


@cell("adds while paused: none lost", TO_BULLPEN)
async def test_what_we_make_runnable_while_the_peer_pauses_is_there_when_it_resumes(us: Us, peer: Peer) -> None:
    """Promoted, retried, handed back: each way into the line."""
    await peer.call("add", name="before", data={}, opts={})
    failed, active = await us.claim("r1"), await us.queue.add("handed back")
    await us.settle(failed, Failed(Failure("no")))
    running = await us.claim("r2")
    later = await us.queue.add("promoted", delay=3600)
    await peer.call("pause")
    await later.promote()
    await us.job(failed.job.id).retry()
    await us.settle(running, Released())
    await peer.call("add", name="last", data={}, opts={})
    await peer.call("resume")
    assert (await us.queue.counts()).waiting == 4
    async with us.working():
        ids = await us.order(4)
    assert active.id in ids


@cell("adds while paused: none lost", TO_PEER)
async def test_what_both_add_while_we_pause_is_there_when_we_resume(us: Us, peer: Peer) -> None:
    ids = [(await us.queue.add("a")).id]
    await us.queue.pause()
    ids.append(await peer.call("add", name="b", data={}, opts={}))
    ids.append((await us.queue.add("c")).id)
    await us.queue.resume()
    assert (await us.queue.counts()).waiting == 3
    async with us.working():
        assert sorted(await us.order(3)) == sorted(ids)


# ── limits ───────────────────────────────────────────────────────────────────────────────


async def claimed(us: Us, request: str) -> tuple[ClaimedJob, ...]:
    return (await us.store.claim({QUEUE: 9}, worker="w", lease_ms=30_000, request=request)).jobs


@cell("limit of active jobs", TO_BULLPEN)
async def test_we_keep_to_the_peers_limit_of_active_jobs(us: Us, peer: Peer) -> None:
    await us.queue.add_bulk([us.queue.prepare("a") for _ in range(5)])
    await peer.call("limitActive", most=2)
    running = await claimed(us, "r1")
    assert len(running) == 2
    assert await claimed(us, "r2") == ()
    await us.settle(running[0])
    assert len(await claimed(us, "r3")) == 1


@cell("limit of the rate", TO_BULLPEN)
async def test_we_keep_to_the_peers_limit_of_the_rate(us: Us, peer: Peer) -> None:
    await us.queue.add_bulk([us.queue.prepare("a") for _ in range(5)])
    await peer.call("limitRate", most=2, duration=3_600_000)
    assert len(await claimed(us, "r1")) == 2
    assert await claimed(us, "r2") == ()


@cell("limit of active jobs", TO_PEER)
async def test_the_peer_keeps_to_our_limit_of_active_jobs(us: Us, peer: Peer) -> None:
    await us.queue.set_limits(concurrency=2)
    held = await claimed_after_adding(us, 5)
    await peer.call("work", options={"concurrency": 5})
    await peer.call("work", OTHER, options={})
    await served(us)
    assert (await us.queue.counts()).waiting == 3
    await us.settle(held[0])
    await us.events(EventKind.COMPLETED, 4)


@cell("limit of the rate", TO_PEER)
async def test_the_peer_keeps_to_our_limit_of_the_rate(us: Us, peer: Peer) -> None:
    await us.queue.set_limits(rate=rate(2, per=3600))
    await us.queue.add_bulk([us.queue.prepare("a") for _ in range(5)])
    await peer.call("work", options={"concurrency": 5})
    await peer.call("work", OTHER, options={})
    await us.events(EventKind.COMPLETED, 2)
    await served(us)
    assert (await us.queue.counts()).waiting == 3


async def claimed_after_adding(us: Us, count: int) -> tuple[ClaimedJob, ...]:
    """As many as may run, held by us."""
    await us.queue.add_bulk([us.queue.prepare("a") for _ in range(count)])
    held = await claimed(us, "held")
    assert len(held) == 2
    return held


@cell("group", TO_BULLPEN)
async def test_the_peer_adds_to_a_group(us: Us, peer: Peer) -> None:
    """Named in the options; turns, caps and pauses of ours hold for it."""
    await us.queue.groups.pause("acme")
    grouped = await peer.call("add", name="a", data={}, opts={"bullpen": {"group": "acme"}})
    other = await peer.call("add", name="b", data={}, opts={})
    async with us.working():
        await us.job(other).result(60)
        assert (await us.record(grouped)).state == State.WAITING
        await us.queue.groups.resume("acme")
        await us.job(grouped).result(60)


# ── drain, clean, obliterate ─────────────────────────────────────────────────────────────


@cell("drain", TO_BULLPEN)
async def test_the_peer_drains_our_jobs(us: Us, peer: Peer, harness: RedisHarness) -> None:
    await us.queue.add("a", dedup="s")
    await us.queue.add("b", priority=3)
    kept = await us.queue.add("c", delay=3600)
    await peer.call("drain", delayed=False)
    counts = await us.queue.counts()
    assert (counts.unfinished, counts.delayed) == (1, 1)
    assert (await kept.record()).state == State.DELAYED
    await peer.call("drain", delayed=True)
    assert (await us.queue.counts()).unfinished == 0


@cell("drain", TO_PEER)
async def test_we_drain_the_peers_jobs(us: Us, peer: Peer) -> None:
    for opts in ({"deduplication": {"id": "s"}}, {"priority": 3}, {"delay": 3_600_000}):
        await peer.call("add", name="a", data={}, opts=opts)
    assert await us.queue.drain() == 2
    assert await peer.call("subject", id="s") is None
    assert await us.queue.drain(delayed=True) == 1
    assert sum((await peer.call("counts")).values()) == 0


@cell("clean", TO_BULLPEN)
async def test_the_peer_cleans_our_jobs(us: Us, peer: Peer) -> None:
    async with us.working():
        done = await us.queue.add("a")
        await done.result(60)
    waiting = await us.queue.add("b")
    assert await peer.call("clean", grace=0, limit=100, state="completed") == [done.id]
    assert await peer.call("clean", grace=0, limit=100, state="wait") == [waiting.id]
    assert (await us.queue.counts()).completed == 0


@cell("clean", TO_PEER)
async def test_we_clean_the_peers_jobs(us: Us, peer: Peer) -> None:
    await peer.call("work", options={})
    job_id = await peer.call("add", name="a", data={}, opts={})
    await us.job(job_id).result(60)
    await peer.call("rest")
    await peer.call("add", name="b", data={}, opts={})
    assert await us.queue.clean("completed") == 1
    assert await us.queue.clean("waiting") == 1
    assert sum((await peer.call("counts")).values()) == 0


@cell("obliterate", TO_BULLPEN)
async def test_the_peer_obliterates_our_queue(us: Us, peer: Peer, harness: RedisHarness) -> None:
    async with us.working():
        await (await us.queue.add("a")).result(60)
    await us.queue.add("b", delay=3600)
    await us.queue.add("c", priority=2)
    await peer.call("obliterate", force=False)
    with pytest.raises(QueueMissing):
        await us.queue.counts()
    assert await us.store.queues() == []


@cell("obliterate", TO_PEER)
async def test_we_obliterate_the_peers_queue(us: Us, peer: Peer, harness: RedisHarness) -> None:
    await peer.call("work", options={})
    await us.job(await peer.call("add", name="a", data={"logs": ["x"]}, opts={})).result(60)
    await peer.call("rest")
    for opts in ({}, {"delay": 3_600_000}, {"priority": 2}, {"deduplication": {"id": "s"}}):
        await peer.call("add", name="b", data={}, opts=opts)
    await us.queue.obliterate()
    # The log is emptied; its numbers may stay for a while, for those who follow it.
    log = f"{harness.prefix}:{QUEUE}:events"
    assert {key for key in await harness.keys() if key.startswith(f"{harness.prefix}:{QUEUE}:")} <= {log}
    assert await harness.raw.xlen(log) == 0
    assert sum((await peer.call("counts")).values()) == 0


@cell("obliterate", TO_PEER)
async def test_the_log_of_a_queue_that_the_peer_begins_anew_has_no_end(
    us: Us, peer: Peer, harness: RedisHarness
) -> None:
    """Nothing of the obliterated queue may later take the new one's events away: our workers see to that."""
    await peer.call("add", name="a", data={}, opts={})
    await us.queue.obliterate()
    await peer.call("add", name="b", data={}, opts={})
    await us.queue.store.rescue([QUEUE], limits=CrashLimits())
    assert await harness.raw.pttl(f"{harness.prefix}:{QUEUE}:events") == -1
