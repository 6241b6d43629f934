"""Jobs that outlast their timeout, or seem to, while the store is away."""

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from bullpen import Context, Ended, JobFailed, Queue, Store, StoreUnavailable, Worker, WorkerOptions
from bullpen.job.verdicts import Settlement
from bullpen.stores.base import Exchanged, SettleOutcome
from bullpen.worker.supervised import SUPERVISED
from tests.support.around import StoreAround
from tests.support.working import working


class Away:
    """For whom the store is away: shared by all that a worker opens of it."""

    def __init__(self, *, settles: int = 0, verdicts_s: float = 0.0) -> None:
        self.settles = settles
        """How many of the lease thread's settlements are refused."""
        self.verdicts_s = verdicts_s
        """For how long no verdict gets through, from the first one on."""
        self.first_verdict_s: float | None = None


class AwayStore(StoreAround):
    def __init__(self, inner: Store, away: Away) -> None:
        super().__init__(inner)
        self._away = away

    def another(self) -> "AwayStore":
        return AwayStore(self.inner.another(), self._away)

    async def settle(self, settlements: Sequence[Settlement], *, request: str) -> Sequence[SettleOutcome]:
        if self._away.settles:
            self._away.settles -= 1
            raise StoreUnavailable("away")
        return await self.inner.settle(settlements, request=request)

    async def exchange(self, settlements: Sequence[Settlement], wants: Mapping[str, int], **rest: Any) -> Exchanged:
        if settlements:
            now_s = time.monotonic()
            self._away.first_verdict_s = self._away.first_verdict_s or now_s
            if now_s < self._away.first_verdict_s + self._away.verdicts_s:
                raise StoreUnavailable("away")
        return await self.inner.exchange(settlements, wants, **rest)


@pytest.fixture
def let_go() -> threading.Event:
    return threading.Event()


async def test_an_overdue_job_is_ended_though_the_store_refused_at_first(
    queue: Queue, let_go: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker, which a supervisor replaces, drains at once, and the job is ended when the store is back."""
    monkeypatch.setenv(SUPERVISED, "1")
    away = Away(settles=1)

    def never(ctx: Context) -> None:
        let_go.wait()

    worker = Worker(AwayStore(queue.store, away), {"work": never}, WorkerOptions(timeout_grace=0.05, grace=30))
    running = asyncio.create_task(worker.run())  # awaited below
    job = await queue.add("never", timeout=0.1)
    with pytest.raises(JobFailed, match="timed out"):
        await job.result(20)
    assert away.settles == 0
    async with asyncio.timeout(20):
        assert await running == Ended.RECYCLED
    let_go.set()


async def test_a_worker_with_an_overdue_job_is_replaced_though_the_store_is_away(
    queue: Queue, let_go: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SUPERVISED, "1")

    def never(ctx: Context) -> None:
        let_go.wait()

    options = WorkerOptions(timeout_grace=0.05, grace=0.1)
    worker = Worker(AwayStore(queue.store, Away(settles=1_000)), {"work": never}, options)
    running = asyncio.create_task(worker.run())  # awaited below
    await queue.add("never", timeout=0.1)
    async with asyncio.timeout(20):
        assert await running == Ended.RECYCLED
    let_go.set()


async def test_a_job_that_ended_in_time_is_not_overdue_while_its_verdict_waits_for_the_store(queue: Queue) -> None:
    async def quick(ctx: Context) -> str:
        return "done"

    away = Away(verdicts_s=1.5)
    async with working(Worker(AwayStore(queue.store, away), {"work": quick}, WorkerOptions(timeout_grace=0.05))):
        job = await queue.add("quick", timeout=0.2)
        assert await job.result(20) == "done"
    assert (await job.record()).failure is None
