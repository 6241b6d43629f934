"""One side steers a job of the other: promoted, retried, removed, changed."""

import pytest

from bullpen import EventKind, JobFailed, JobMissing, State
from tests.interop.cells import PYPI, TO_BULLPEN, TO_PEER, cell
from tests.interop.peers import Peer, PeerError
from tests.interop.us import Us

HOUR_S = 3600


@cell("promote", TO_BULLPEN)
async def test_a_job_of_ours_that_the_peer_promotes_is_run_by_us(us: Us, peer: Peer) -> None:
    async with us.working():
        job = await us.queue.add("later", delay=HOUR_S)
        await peer.call("promote", id=job.id)
        await job.result(60)
    record = await job.record()
    assert record.run_at_ms is None


@cell("promote", TO_PEER)
async def test_a_job_of_the_peer_that_we_promote_is_run_by_the_peer(us: Us, peer: Peer) -> None:
    await peer.call("work", options={})
    job_id = await peer.call("add", name="later", data={}, opts={"delay": HOUR_S * 1000})
    await us.job(job_id).promote()
    await us.job(job_id).result(60)
    assert (await peer.call("job", id=job_id))["delay"] == 0


@cell("promote", TO_PEER)
async def test_a_job_that_we_promote_keeps_the_peers_priority(us: Us, peer: Peer) -> None:
    job_id = await peer.call("add", name="later", data={}, opts={"delay": HOUR_S * 1000, "priority": 5})
    await us.job(job_id).promote()
    assert (await peer.call("job", id=job_id))["state"] == "prioritized"


# ── retry of finished jobs ───────────────────────────────────────────────────────────────


@cell("retry of failed", TO_BULLPEN)
async def test_a_job_that_failed_here_is_retried_by_the_peer(us: Us, peer: Peer) -> None:
    async with us.working():
        job = await us.queue.add("a", {"fail": "no"})
        with pytest.raises(JobFailed):
            await job.result(60)
        await job.update_data({})
        await peer.call("retry", id=job.id, state="failed")
        await us.events(EventKind.COMPLETED)
    record = await job.record()
    assert (record.state, record.failure) == (State.COMPLETED, None)


@cell("retry of failed", TO_PEER)
async def test_a_job_that_failed_there_is_retried_by_us(us: Us, peer: Peer) -> None:
    await peer.call("work", options={})
    job_id = await peer.call("add", name="a", data={"fail": "no"}, opts={})
    await us.events(EventKind.FAILED)
    await us.job(job_id).update_data({})
    await us.job(job_id).retry()
    await us.events(EventKind.COMPLETED)
    seen = await peer.call("job", id=job_id)
    assert (seen["state"], seen.get("failedReason")) == ("completed", None)


@cell("retry of completed", TO_BULLPEN)
async def test_a_job_that_completed_here_is_run_again_by_the_peers_word(us: Us, peer: Peer) -> None:
    async with us.working():
        job = await us.queue.add("a", {"n": 1})
        await job.result(60)
        await peer.call("retry", id=job.id, state="completed")
        assert await us.order(2) == [job.id, job.id]


@cell("retry of completed", TO_PEER)
async def test_a_job_that_completed_there_is_run_again_by_our_word(us: Us, peer: Peer) -> None:
    await peer.call("work", options={})
    job_id = await peer.call("add", name="a", data={"n": 1}, opts={})
    await us.job(job_id).result(60)
    await us.job(job_id).retry()
    assert await us.order(2) == [job_id, job_id]
    assert (await peer.call("job", id=job_id))["state"] == "completed"


@cell("retry of failed", TO_PEER)
async def test_the_subject_of_a_job_that_we_retry_is_free_again_when_it_ends(us: Us, peer: Peer) -> None:
    job_id = await peer.call("add", name="a", data={"fail": "no", "times": 1}, opts={"deduplication": {"id": "s"}})
    async with us.working():
        await us.events(EventKind.FAILED)
        await us.job(job_id).update_data({})
        await us.job(job_id).retry()
        await us.events(EventKind.COMPLETED)
    other = await peer.call("add", name="b", data={}, opts={"deduplication": {"id": "s"}})
    assert other != job_id


# ── remove, change ───────────────────────────────────────────────────────────────────────


@cell("remove", TO_BULLPEN)
async def test_a_job_of_ours_that_the_peer_removes_is_gone(us: Us, peer: Peer) -> None:
    jobs = [await us.queue.add("a"), await us.queue.add("b", delay=HOUR_S), await us.queue.add("c", priority=3)]
    for job in jobs:
        await job.log("a word")
        await peer.call("remove", id=job.id)
        with pytest.raises(JobMissing):
            await job.record()
    assert (await us.queue.counts()).unfinished == 0


@cell("remove", TO_BULLPEN)
async def test_a_job_that_we_run_is_not_removed_by_the_peer(us: Us, peer: Peer) -> None:
    job = await us.queue.add("a")
    claimed = await us.claim()
    with pytest.raises(PeerError, match="locked"):
        await peer.call("remove", id=job.id)
    await us.settle(claimed)


@cell("remove", TO_PEER)
async def test_a_job_of_the_peer_that_we_remove_is_gone(us: Us, peer: Peer) -> None:
    options = [{}, {"delay": HOUR_S * 1000}, {"priority": 3}]
    for opts in options:
        job_id = await peer.call("add", name="a", data={}, opts={**opts, "deduplication": {"id": "s"}})
        await peer.call("log", id=job_id, line="a word")
        await us.job(job_id).remove()
        assert await peer.call("job", id=job_id) is None
        assert await peer.call("subject", id="s") is None
    assert sum((await peer.call("counts")).values()) == 0


@cell("update data", TO_BULLPEN)
async def test_the_peers_new_data_is_what_we_run(us: Us, peer: Peer) -> None:
    job = await us.queue.add("a", {"n": 1})
    await peer.call("updateData", id=job.id, data={"n": 2})
    async with us.working():
        assert (await job.result(60))["echo"] == {"n": 2}


@cell("update data", TO_PEER)
async def test_our_new_data_is_what_the_peer_runs(us: Us, peer: Peer) -> None:
    job_id = await peer.call("add", name="a", data={"n": 1}, opts={})
    await us.job(job_id).update_data({"n": 2})
    await peer.call("work", options={})
    assert (await us.job(job_id).result(60))["echo"] == {"n": 2}


@cell("change delay", TO_BULLPEN, lacks={PYPI: "its jobs have no changeDelay"})
async def test_the_peers_new_delay_is_when_we_run(us: Us, peer: Peer) -> None:
    async with us.working():
        job = await us.queue.add("a", delay=HOUR_S)
        await peer.call("changeDelay", id=job.id, delay=50)
        await job.result(60)


@cell("change delay", TO_PEER)
async def test_our_new_delay_is_when_the_peer_runs(us: Us, peer: Peer) -> None:
    await peer.call("work", options={})
    job_id = await peer.call("add", name="a", data={}, opts={"delay": HOUR_S * 1000})
    await us.job(job_id).change_delay(0.05)
    await us.job(job_id).result(60)


@cell("change priority", TO_BULLPEN)
async def test_the_peers_new_priority_is_our_order(us: Us, peer: Peer) -> None:
    jobs = [await us.queue.add("a", priority=1), await us.queue.add("b", priority=2), await us.queue.add("c")]
    await peer.call("changePriority", id=jobs[0].id, priority=3)
    await peer.call("changePriority", id=jobs[2].id, priority=9)
    async with us.working():
        assert await us.order(3) == [jobs[1].id, jobs[0].id, jobs[2].id]


@cell("change priority", TO_PEER)
async def test_our_new_priority_is_the_peers_order(us: Us, peer: Peer) -> None:
    ids = [await peer.call("add", name="a", data={}, opts={"priority": n}) for n in (1, 2, 0)]
    await us.job(ids[0]).change_priority(3)
    await us.job(ids[2]).change_priority(9)
    assert (await peer.call("job", id=ids[0]))["priority"] == 3
    await peer.call("work", options={})
    assert await us.order(3) == [ids[1], ids[0], ids[2]]


@cell("words from outside: progress, log", TO_BULLPEN)
async def test_the_peers_words_on_a_job_of_ours_are_shown_by_us(us: Us, peer: Peer) -> None:
    job = await us.queue.add("a", keep_logs=10)
    await peer.call("log", id=job.id, line="a word")
    await peer.call("progress", id=job.id, value={"half": True})
    assert await job.logs() == ("a word",)
    assert b"half" in ((await job.record()).progress or b"")


@cell("words from outside: progress, log", TO_PEER)
async def test_our_words_on_a_job_of_the_peer_are_shown_by_the_peer(us: Us, peer: Peer) -> None:
    job_id = await peer.call("add", name="a", data={}, opts={})
    await us.job(job_id).log("a word", "another")
    await us.job(job_id).set_progress({"half": True})
    assert await peer.call("logs", id=job_id) == ["a word", "another"]
    assert (await peer.call("job", id=job_id))["progress"] == {"half": True}
