"""Bullpen's side of a shared queue, as its users have it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from bullpen import FROM_START, Event, EventKind, JobRecord, Queue, Worker, WorkerOptions
from bullpen.job.record import ClaimedJob, JobRef
from bullpen.job.verdicts import Completed, Settlement, Verdict
from bullpen.stores.base import SettleOutcome
from bullpen.stores.redis import RedisStore
from tests.interop.handling import Handling
from tests.interop.peers import PATIENCE_S

QUEUE = "mail"
_ENDS = (EventKind.COMPLETED, EventKind.FAILED)


class Us:
    def __init__(self, store: RedisStore) -> None:
        self.store = store
        self.queue = Queue(store, QUEUE)

    def job(self, job_id: str) -> Any:
        return self.queue.job(job_id)

    async def record(self, job_id: str) -> JobRecord:
        return await self.store.job(JobRef(QUEUE, job_id))

    @contextlib.asynccontextmanager
    async def working(self, *queues: str, **options: Any) -> AsyncIterator[Handling]:
        """Our worker, one job at a time unless told otherwise; what it holds at the end goes on."""
        handling = Handling()
        settings = WorkerOptions(**{"name": "bullpen-1", "concurrency": 1, **options})
        worker = Worker(self.store, dict.fromkeys(queues or (QUEUE,), handling), settings)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run(), name="our worker")
            try:
                yield handling
            finally:
                handling.release()
                worker.stop(grace=5)

    async def held(self, handling: Handling) -> str:
        """The id of the next job that our handler holds."""
        return await asyncio.wait_for(handling.holding.get(), PATIENCE_S)

    # ── a worker's steps, one by one ─────────────────────────────────────────────────────

    async def claim(self, request: str = "claim", *, lease_ms: int = 30_000) -> ClaimedJob:
        assert await self.store.wait([QUEUE], timeout_ms=20_000)
        claimed = await self.store.claim({QUEUE: 1}, worker="bullpen-1", lease_ms=lease_ms, request=request)
        (job,) = claimed.jobs
        return job

    async def settle(self, claimed: ClaimedJob, verdict: Verdict | None = None) -> None:
        settlement = Settlement(claimed.lease, verdict or Completed())
        outcomes = await self.store.settle([settlement], request=f"settle {claimed.lease.token}")
        assert list(outcomes) == [SettleOutcome.SETTLED]

    # ── what happened, whoever did it ────────────────────────────────────────────────────

    async def events(self, kind: EventKind, count: int = 1) -> list[Event]:
        """All events of the queue, once there are that many of this kind."""
        seen: list[Event] = []
        cursor = FROM_START
        async with asyncio.timeout(PATIENCE_S):
            while sum(event.kind == kind for event in seen) < count:
                page = await self.store.events(QUEUE, after=cursor, limit=500, timeout_ms=5_000)
                cursor = page.cursor
                seen += page.events
        return seen

    async def order(self, count: int) -> list[str]:
        """The ids of jobs in the order in which they were started, once that many have ended well."""
        events = await self.events(EventKind.COMPLETED, count)
        return [event.job_id or "" for event in events if event.kind == EventKind.ACTIVE]

    async def told_of(self, job_id: str, kind: EventKind, count: int = 1) -> list[str]:
        """The kinds of a job's events, in order."""
        return [event.kind.value for event in await self.events(kind, count) if event.job_id == job_id]
