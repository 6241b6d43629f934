"""The real Bull Board, over HTTP, on our queues: what it shows, and that our worker obeys what it does."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from bullpen import EventKind, JobFailed, JobMissing, Queue, QueueMissing, State
from bullpen.clock import SYSTEM_CLOCK, SystemClock
from bullpen.job.record import CrashLimits
from bullpen.stores.redis import RedisStore
from tests.interop.cells import board
from tests.interop.peers import Peer
from tests.interop.us import QUEUE, Us
from tests.support.redis_harness import RedisHarness
from tests.worker.waiting import until

OTHER = "other"
HOUR_S = 3600


class Board:
    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def get(self, path: str, **query: Any) -> Any:
        answer = await self._client.get(path, params=query)
        answer.raise_for_status()
        return answer.json()

    async def page(self, path: str) -> str:
        answer = await self._client.get(path)
        answer.raise_for_status()
        assert answer.headers["content-type"].startswith("text/html")
        return answer.text

    async def do(self, action: str, method: str = "PUT", **body: Any) -> Any:
        answer = await self._client.request(method, f"/api/queues/{QUEUE}/{action}", json=body)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    async def queue(self, name: str = QUEUE, **query: Any) -> Any:
        queues = (await self.get("/api/queues", page=1, jobsPerPage=20, **query))["queues"]
        (found,) = [queue for queue in queues if queue["name"] == name]
        return found

    async def ids(self, status: str) -> list[str]:
        found = await self.queue(activeQueue=QUEUE, status=status)
        return [job["id"] for job in found["jobs"]]


@pytest.fixture
async def dashboard(peer: Peer) -> AsyncIterator[Board]:
    port = await peer.call("board", queues=[QUEUE, OTHER])
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        yield Board(client)


# ── what it shows ────────────────────────────────────────────────────────────────────────


@board("lists queues with their counts")
async def test_it_lists_our_queues(us: Us, dashboard: Board) -> None:
    await us.queue.add("a")
    await us.queue.add("b", priority=3)
    await us.queue.add("c", delay=HOUR_S)
    await Queue(us.store, OTHER).pause()
    shown = await dashboard.queue()
    counts = {state: shown["counts"][state] for state in ("waiting", "prioritized", "delayed", "failed")}
    assert counts == {"waiting": 1, "prioritized": 1, "delayed": 1, "failed": 0}
    assert (shown["isPaused"], (await dashboard.queue(OTHER))["isPaused"]) == (False, True)
    assert "<html" in (await dashboard.page("/")).lower()


@board("lists jobs of each state")
async def test_it_lists_our_jobs_of_each_state(us: Us, dashboard: Board) -> None:
    async with us.working():
        done = await us.queue.add("done", {"n": 1})
        await done.result(60)
        failed = await us.queue.add("bad", {"fail": "no luck"})
        with pytest.raises(JobFailed):
            await failed.result(60)
    await us.queue.add("run")
    running = await us.claim()
    waiting = [await us.queue.add("a"), await us.queue.add("b")]
    prioritized = await us.queue.add("c", priority=3)
    delayed = await us.queue.add("d", delay=HOUR_S)
    assert await dashboard.ids("completed") == [done.id]
    assert await dashboard.ids("failed") == [failed.id]
    assert await dashboard.ids("active") == [running.job.id]
    assert await dashboard.ids("waiting") == [waiting[1].id, waiting[0].id]
    assert await dashboard.ids("prioritized") == [prioritized.id]
    assert await dashboard.ids("delayed") == [delayed.id]
    assert len(await dashboard.ids("latest")) == 7
    await us.settle(running)


@board("shows a job: data, result, failure, progress")
async def test_it_shows_a_job_of_ours(us: Us, dashboard: Board) -> None:
    async with us.working():
        done = await us.queue.add("done", {"progress": 50, "text": "ü"}, tenant="acme")
        await done.result(60)
        failed = await us.queue.add("bad", {"fail": "no luck"})
        with pytest.raises(JobFailed):
            await failed.result(60)
    shown = await dashboard.get(f"/api/queues/{QUEUE}/{done.id}")
    job = shown["job"]
    assert (shown["status"], job["name"], job["data"]["text"], job["progress"]) == ("completed", "done", "ü", 50)
    assert (job["returnValue"]["attempt"], job["processedBy"], job["isFailed"]) == (1, "bullpen-1", False)
    shown = await dashboard.get(f"/api/queues/{QUEUE}/{failed.id}")
    assert (shown["status"], shown["job"]["failedReason"]) == ("failed", "no luck")
    assert "handling.py" in shown["job"]["stacktrace"][0]


@board("shows a job's log")
async def test_it_shows_our_log(us: Us, dashboard: Board) -> None:
    async with us.working():
        job = await us.queue.add("a", {"logs": ["one", "zwö"]})
        await job.result(60)
    assert await dashboard.get(f"/api/queues/{QUEUE}/{job.id}/logs") == ["one", "zwö"]


@board("lists workers")
async def test_it_lists_our_worker(us: Us, dashboard: Board) -> None:
    async with us.working(name="our-worker"):
        await (await us.queue.add("a")).result(60)
        shown = await dashboard.get(f"/api/queues/{QUEUE}/workers")
        assert [worker["name"] for worker in shown["workers"]] == ["our-worker"]
        assert (await dashboard.queue())["hasWorkers"]
    assert not (await dashboard.queue())["hasWorkers"]


# ── what it does to a job ────────────────────────────────────────────────────────────────


@board("retries a failed job")
async def test_a_job_that_it_retries_is_run_by_us(us: Us, dashboard: Board) -> None:
    async with us.working():
        job = await us.queue.add("a", {"fail": "no luck"})
        with pytest.raises(JobFailed):
            await job.result(60)
        await dashboard.do(f"{job.id}/update-data", "PATCH", jobData={"mended": True})
        await dashboard.do(f"{job.id}/retry")
        await us.events(EventKind.COMPLETED)
    assert (await job.record()).state == State.COMPLETED


@board("retries all failed jobs")
async def test_all_jobs_that_it_retries_are_run_by_us(us: Us, dashboard: Board) -> None:
    async with us.working():
        jobs = [await us.queue.add("a", {"fail": "no luck"}) for _ in range(3)]
        await us.events(EventKind.FAILED, 3)
        for job in jobs:
            await job.update_data({})
        assert await dashboard.do("retry/failed") == {"retried": 3, "skipped": 0}
        await us.events(EventKind.COMPLETED, 3)


@board("promotes a delayed job")
async def test_a_job_that_it_promotes_is_run_by_us(us: Us, dashboard: Board) -> None:
    async with us.working():
        job = await us.queue.add("a", delay=HOUR_S)
        await dashboard.do(f"{job.id}/promote")
        await job.result(60)


@board("promotes all delayed jobs")
async def test_all_jobs_that_it_promotes_are_run_by_us(us: Us, dashboard: Board) -> None:
    async with us.working():
        jobs = [await us.queue.add("a", delay=HOUR_S) for _ in range(3)]
        await dashboard.do("promote")
        for job in jobs:
            await job.result(60)


@board("removes a job")
async def test_a_job_that_it_removes_is_gone(us: Us, dashboard: Board) -> None:
    for job in (await us.queue.add("a"), await us.queue.add("b", delay=HOUR_S), await us.queue.add("c", priority=2)):
        await dashboard.do(f"{job.id}/clean")
        with pytest.raises(JobMissing):
            await job.record()
    assert (await us.queue.counts()).unfinished == 0


@board("removes a job that runs, in a group")
async def test_a_job_that_it_removes_while_active_does_not_starve_its_group(us: Us, dashboard: Board) -> None:
    """It may only where the lease has run out; the group's one place is free again with the next sweep."""
    await us.queue.groups.set("acme", concurrency=1)
    first, second = [await us.queue.add("a", group="acme") for _ in range(2)]
    held = await us.claim(lease_ms=1)
    assert held.job.id == first.id
    await until(lambda: _is_removed(dashboard, first.id), bool)
    assert (await us.queue.groups.get("acme")).active == 1, "nobody has told the group yet"
    await us.store.rescue([QUEUE], limits=CrashLimits())
    assert (await us.claim("again")).job.id == second.id


async def _is_removed(dashboard: Board, job_id: str) -> bool:
    try:
        await dashboard.do(f"{job_id}/clean")
    except httpx.HTTPStatusError:
        return False  # its lease still stands
    return True


@board("changes data, delay and priority")
async def test_what_it_changes_is_what_we_run(us: Us, dashboard: Board) -> None:
    async with us.working():
        job = await us.queue.add("a", {"n": 1}, delay=HOUR_S)
        await dashboard.do(f"{job.id}/update-data", "PATCH", jobData={"n": 2})
        await dashboard.do(f"{job.id}/delay", "PATCH", runAt=SYSTEM_CLOCK.now_ms() + 100)
        assert (await job.result(60))["echo"] == {"n": 2}
    other = await us.queue.add("b", priority=3)
    await dashboard.do(f"{other.id}/priority", "PATCH", priority=8)
    assert (await other.record()).priority == 8


@board("adds a job")
async def test_a_job_that_it_adds_is_run_by_us(us: Us, dashboard: Board) -> None:
    async with us.working():
        added = await dashboard.do("add", "POST", name="by-hand", data={"n": 1}, options={"attempts": 2})
        job_id = added["job"]["id"]
        assert (await us.job(job_id).result(60))["name"] == "by-hand"


# ── what it does to a queue ──────────────────────────────────────────────────────────────


@board("pauses and resumes a queue")
async def test_our_worker_obeys_its_pause_and_resume(us: Us, dashboard: Board) -> None:
    async with us.working(QUEUE, OTHER):
        await dashboard.do("pause")
        job = await us.queue.add("a")
        await (await Queue(us.store, OTHER).add("b")).result(60)
        assert (await us.queue.counts()).paused
        assert (await job.record()).state == State.WAITING
        await dashboard.do("resume")
        await job.result(60)


class Earlier(SystemClock):
    """Ten seconds ago: Bull Board cleans only what is older than five."""

    def now_ms(self) -> int:
        return super().now_ms() - 10_000


@board("cleans finished jobs")
async def test_it_cleans_our_finished_jobs(us: Us, dashboard: Board, harness: RedisHarness) -> None:
    earlier = Us(RedisStore(harness.url, prefix=harness.prefix, clock=Earlier()))
    await earlier.store.open()
    for data in ({}, {"fail": "no"}):
        async with earlier.working():
            await earlier.queue.add("old", data)
            await us.events(EventKind.FAILED if data else EventKind.COMPLETED)
    await earlier.store.close()
    async with us.working():
        fresh = await us.queue.add("new")
        await fresh.result(60)
    await dashboard.do("clean/completed")
    await dashboard.do("clean/failed")
    counts = await us.queue.counts()
    assert (counts.completed, counts.failed) == (1, 0)
    assert await dashboard.ids("completed") == [fresh.id]


@board("empties and obliterates a queue")
async def test_it_empties_and_obliterates_our_queue(us: Us, dashboard: Board) -> None:
    await us.queue.add("a")
    kept = await us.queue.add("b", delay=HOUR_S)
    await dashboard.do("empty")
    assert (await us.queue.counts()).unfinished == 1
    assert (await kept.record()).state == State.DELAYED
    await us.queue.pause()
    await dashboard.do("obliterate")
    with pytest.raises(QueueMissing):
        await us.queue.counts()
