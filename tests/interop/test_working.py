"""What a worker does with a job of the other side: results, retries, failures, progress, logs, retention."""

import json
from typing import Any

import pytest

from bullpen import EventKind, FailureKind, JobFailed, State, exponential, keep
from bullpen.job.record import Failure
from bullpen.job.spec import Keep
from tests.interop.cells import PYPI, TO_BULLPEN, TO_PEER, cell
from tests.interop.peers import Peer
from tests.interop.us import Us


@cell("process", TO_BULLPEN)
async def test_what_we_did_with_a_job_is_shown_by_the_peer(us: Us, peer: Peer) -> None:
    async with us.working():
        job_id = await peer.call("add", name="welcome", data={"user": 7}, opts={})
        await us.job(job_id).result(60)
    seen = await peer.call("job", id=job_id)
    assert seen["returnvalue"] == {"echo": {"user": 7}, "name": "welcome", "attempt": 1}
    assert (seen["state"], seen["attemptsMade"], seen["attemptsStarted"]) == ("completed", 1, 1)
    assert seen.get("failedReason") is None
    # BullMQ for Python does not read who ran a job.
    assert seen.get("processedBy", "bullpen-1") == "bullpen-1"


@cell("process", TO_PEER)
async def test_what_the_peer_did_with_a_job_is_shown_by_us(us: Us, peer: Peer) -> None:
    await peer.call("work", options={"name": "peer-1"})
    job = await us.queue.add("welcome", {"user": 7})
    await job.result(60)
    record = await job.record()
    assert record.state == State.COMPLETED
    assert (record.attempts_made, record.epoch, record.failure) == (1, 1, None)
    assert record.worker in {"peer-1", None}  # BullMQ for Python does not say who ran a job
    assert record.started_ms is not None
    assert record.finished_ms is not None
    assert record.added_ms <= record.started_ms <= record.finished_ms


# ── attempts ─────────────────────────────────────────────────────────────────────────────

_BACKOFF = {"type": "exponential", "delay": 20}


@cell("retry with backoff", TO_BULLPEN)
async def test_we_retry_a_job_of_the_peer_as_it_says(us: Us, peer: Peer) -> None:
    data = {"fail": "not yet", "times": 2}
    async with us.working():
        job_id = await peer.call("add", name="shaky", data=data, opts={"attempts": 3, "backoff": _BACKOFF})
        assert (await us.job(job_id).result(60))["attempt"] == 3
    seen = await peer.call("job", id=job_id)
    assert (seen["state"], seen["attemptsMade"], len(seen["stacktrace"])) == ("completed", 3, 2)
    delayed = [event for event in await us.events(EventKind.COMPLETED) if event.kind == EventKind.DELAYED]
    assert [event.job_id for event in delayed] == [job_id, job_id]


@cell("retry with backoff", TO_PEER)
async def test_the_peer_retries_a_job_of_ours_as_we_say(us: Us, peer: Peer) -> None:
    await peer.call("work", options={})
    data = {"fail": "not yet", "times": 2}
    job = await us.queue.add("shaky", data, attempts=3, backoff=exponential(0.02))
    assert (await job.result(60))["attempt"] == 3
    record = await job.record()
    assert (record.state, record.attempts_made, record.epoch) == (State.COMPLETED, 3, 3)
    delayed = [event for event in await us.events(EventKind.COMPLETED) if event.kind == EventKind.DELAYED]
    assert [event.job_id for event in delayed] == [job.id, job.id]


@cell("retry: attempts of both counted together", TO_BULLPEN)
async def test_we_go_on_with_a_retry_of_the_peer(us: Us, peer: Peer) -> None:
    """A first attempt there, a second one here."""
    await peer.call("work", options={})
    opts = {"attempts": 2, "backoff": {"type": "fixed", "delay": 3_600_000}}
    job_id = await peer.call("add", name="shaky", data={"fail": "not yet", "times": 1}, opts=opts)
    await us.told_of(job_id, EventKind.DELAYED)
    await peer.call("rest")
    waiting = await us.record(job_id)
    assert (waiting.state, waiting.failure) == (State.DELAYED, Failure("not yet"))
    async with us.working():
        await us.job(job_id).promote()
        assert (await us.job(job_id).result(60))["attempt"] == 2
    seen = await peer.call("job", id=job_id)
    assert (seen["attemptsMade"], seen["attemptsStarted"]) == (2, 2)


@cell("retry: attempts of both counted together", TO_PEER)
async def test_the_peer_goes_on_with_a_retry_of_ours(us: Us, peer: Peer) -> None:
    """A first attempt here, a second one there."""
    async with us.working() as handling:
        job = await us.queue.add("shaky", {"hold": True, "fail": "not yet", "times": 1}, attempts=2, backoff=3600)
        await us.held(handling)
        handling.release()
        await us.told_of(job.id, EventKind.DELAYED)
    waiting = await job.record()
    assert (waiting.state, waiting.attempts_made) == (State.DELAYED, 1)
    await peer.call("work", options={})
    await peer.call("promote", id=job.id)
    await peer.hears("holding", id=job.id)
    await peer.call("release")
    assert (await job.result(60))["attempt"] == 2
    record = await job.record()
    assert (record.attempts_made, record.epoch) == (2, 2)


# ── failures ─────────────────────────────────────────────────────────────────────────────


@cell("fail with stack", TO_BULLPEN)
async def test_the_peer_sees_our_failure_with_its_stack(us: Us, peer: Peer) -> None:
    async with us.working():
        job_id = await peer.call("add", name="welcome", data={"fail": "no such üser"}, opts={})
        with pytest.raises(JobFailed, match="no such üser"):
            await us.job(job_id).result(60)
    seen = await peer.call("job", id=job_id)
    assert (seen["state"], seen["failedReason"], seen["attemptsMade"]) == ("failed", "no such üser", 1)
    (stack,) = seen["stacktrace"]
    assert "handling.py" in stack
    assert "ValueError: no such üser" in stack


@cell("fail with stack", TO_PEER)
async def test_we_see_the_peers_failure_with_its_stack(us: Us, peer: Peer) -> None:
    await peer.call("work", options={})
    job = await us.queue.add("welcome", {"fail": "no such üser"})
    with pytest.raises(JobFailed, match="no such üser"):
        await job.result(60)
    record = await job.record()
    assert record.failure == Failure("no such üser", FailureKind.ERROR)
    (stack,) = record.stacks
    assert "no such üser" in stack
    assert ("pypi.py" if peer.name == PYPI else "bullmq.mjs") in stack


@cell("unrecoverable", TO_BULLPEN)
async def test_what_we_call_unrecoverable_is_failed_for_the_peer_at_once(us: Us, peer: Peer) -> None:
    async with us.working():
        job_id = await peer.call("add", name="a", data={"unrecoverable": "no use"}, opts={"attempts": 5})
        with pytest.raises(JobFailed):
            await us.job(job_id).result(60)
    seen = await peer.call("job", id=job_id)
    assert (seen["state"], seen["failedReason"], seen["attemptsMade"]) == ("failed", "no use", 1)


@cell("unrecoverable", TO_PEER)
async def test_what_the_peer_calls_unrecoverable_is_failed_for_us_at_once(us: Us, peer: Peer) -> None:
    await peer.call("work", options={})
    job = await us.queue.add("a", {"unrecoverable": "no use"}, attempts=5)
    with pytest.raises(JobFailed, match="no use"):
        await job.result(60)
    record = await job.record()
    assert (record.state, record.attempts_made) == (State.FAILED, 1)


# ── words on a running job ───────────────────────────────────────────────────────────────

_PROGRESS: list[Any] = [42, {"step": "ü", "of": 3}]


@cell("progress", TO_BULLPEN)
async def test_our_progress_is_shown_by_the_peer(us: Us, peer: Peer) -> None:
    async with us.working():
        for progress in _PROGRESS:
            job_id = await peer.call("add", name="long", data={"progress": progress}, opts={})
            await us.job(job_id).result(60)
            assert (await peer.call("job", id=job_id))["progress"] == progress


@cell("progress", TO_PEER)
async def test_the_peers_progress_is_shown_by_us(us: Us, peer: Peer) -> None:
    await peer.call("work", options={})
    for progress in _PROGRESS:
        job = await us.queue.add("long", {"progress": progress})
        await job.result(60)
        assert json.loads((await job.record()).progress or b"") == progress


@cell("logs", TO_BULLPEN)
async def test_our_log_is_shown_by_the_peer(us: Us, peer: Peer) -> None:
    async with us.working():
        job_id = await peer.call("add", name="long", data={"logs": ["one", "zwö", "three"]}, opts={"keepLogs": 2})
        await us.job(job_id).result(60)
    assert await peer.call("logs", id=job_id) == ["zwö", "three"]


@cell("logs", TO_PEER)
async def test_the_peers_log_is_shown_by_us(us: Us, peer: Peer) -> None:
    await peer.call("work", options={})
    job = await us.queue.add("long", {"logs": ["one", "zwö", "three"]}, keep_logs=2)
    await job.result(60)
    assert await job.logs() == ("zwö", "three")


# ── what is kept ─────────────────────────────────────────────────────────────────────────


@cell("remove on complete", TO_BULLPEN)
@pytest.mark.parametrize("form", [True, 2, {"count": 2}, {"age": 3600, "count": 2}, False])
async def test_we_keep_as_many_completed_jobs_as_the_peer_says(us: Us, peer: Peer, form: Any) -> None:
    opts = {"removeOnComplete": form}
    ids = [await peer.call("add", name="a", data={}, opts=opts) for _ in range(3)]
    async with us.working():
        await us.order(3)
    kept = {True: [], False: ids}.get(form, ids[1:]) if isinstance(form, bool) else ids[1:]
    assert await peer.call("ids", state="completed", asc=True) == kept


@cell("remove on complete", TO_PEER)
@pytest.mark.parametrize("form", [keep(0), keep(2), keep(2, age=3600), keep()])
async def test_the_peer_keeps_as_many_completed_jobs_as_we_say(us: Us, peer: Peer, form: Keep) -> None:
    ids = [(await us.queue.add("a", keep_completed=form)).id for _ in range(3)]
    await peer.call("work", options={})
    await us.order(3)
    kept = ids if form.count is None else ids[3 - form.count :]
    assert await peer.call("ids", state="completed", asc=True) == kept


@cell("remove on fail", TO_BULLPEN)
@pytest.mark.parametrize("form", [True, 2, {"age": 3600, "count": 2}, False])
async def test_we_keep_as_many_failed_jobs_as_the_peer_says(us: Us, peer: Peer, form: Any) -> None:
    opts = {"removeOnFail": form}
    ids = [await peer.call("add", name="a", data={"fail": "no"}, opts=opts) for _ in range(3)]
    async with us.working():
        await us.events(EventKind.FAILED, 3)
    kept = {True: [], False: ids}.get(form, ids[1:]) if isinstance(form, bool) else ids[1:]
    assert await peer.call("ids", state="failed", asc=True) == kept


@cell("remove on fail", TO_PEER)
@pytest.mark.parametrize("form", [keep(0), keep(2), keep(2, age=3600), keep()])
async def test_the_peer_keeps_as_many_failed_jobs_as_we_say(us: Us, peer: Peer, form: Keep) -> None:
    ids = [(await us.queue.add("a", {"fail": "no"}, keep_failed=form)).id for _ in range(3)]
    await peer.call("work", options={})
    await us.events(EventKind.FAILED, 3)
    kept = ids if form.count is None else ids[3 - form.count :]
    assert await peer.call("ids", state="failed", asc=True) == kept
