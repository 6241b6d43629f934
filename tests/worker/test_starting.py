"""How a worker begins."""

import asyncio

import pytest

from bullpen import Context, Queue, QueueLimits, StoreTooNew, StoreUnavailable, Worker, WorkerOptions
from bullpen.job.limits import QueueStanding
from bullpen.stores.base import Store, WorkerInfo
from tests.support.around import StoreAround
from tests.worker.waiting import until


class FirstBeatRefused(StoreAround):
    """Opens, and refuses the first beats that come."""

    def __init__(self, inner: Store, errors: list[Exception]) -> None:
        super().__init__(inner)
        self._errors = errors

    def another(self) -> "FirstBeatRefused":
        return FirstBeatRefused(self.inner.another(), self._errors)

    async def beat(self, info: WorkerInfo, *, ttl_ms: int) -> None:
        if self._errors:
            raise self._errors.pop()
        await self.inner.beat(info, ttl_ms=ttl_ms)


class WayCutOnce(StoreAround):
    """Each opening takes the next of these: the worker's own store is the first, the lease thread's the second."""

    def __init__(self, inner: Store, openings: list[Exception | None]) -> None:
        super().__init__(inner)
        self._openings = openings

    def another(self) -> "WayCutOnce":
        return WayCutOnce(self.inner.another(), self._openings)

    async def open(self) -> None:
        if self._openings and (error := self._openings.pop(0)) is not None:
            raise error
        await self.inner.open()


class NoLimits(StoreAround):
    """Cannot say which limits a queue has."""

    def __init__(self, inner: Store, closed: list[str]) -> None:
        super().__init__(inner)
        self._closed = closed

    def another(self) -> "NoLimits":
        return NoLimits(self.inner.another(), self._closed)

    async def limits(self, queue: str) -> QueueStanding:
        raise StoreUnavailable("cut")

    async def close(self) -> None:
        self._closed.append("closed")
        await self.inner.close()


async def _nothing(ctx: Context) -> None: ...


async def test_a_store_that_is_away_for_a_moment_keeps_no_worker_from_beginning(queue: Queue) -> None:
    """It was there a moment ago, when it was opened: its keys may be on their way to another server."""
    worker = Worker(FirstBeatRefused(queue.store, [StoreUnavailable("away")]), {queue.name: _nothing})
    working = asyncio.create_task(worker.run())  # awaited below
    job = await queue.add("work")
    await job.result(60)
    await until(queue.store.workers, bool)
    worker.stop()
    await working


async def test_a_way_that_is_cut_while_the_lease_thread_opens_is_tried_again(queue: Queue) -> None:
    openings: list[Exception | None] = [None, StoreUnavailable("cut")]
    worker = Worker(WayCutOnce(queue.store, openings), {queue.name: _nothing})
    working = asyncio.create_task(worker.run())  # awaited below
    job = await queue.add("work")
    assert await job.result(60) is None
    assert openings == []
    worker.stop()
    await working


async def test_a_store_that_will_not_do_ends_a_worker_at_once(queue: Queue) -> None:
    worker = Worker(FirstBeatRefused(queue.store, [StoreTooNew("newer")]), {queue.name: _nothing})
    with pytest.raises(StoreTooNew):
        await worker.run()


async def test_a_worker_that_cannot_declare_its_limits_leaves_no_store_open(queue: Queue) -> None:
    closed: list[str] = []
    options = WorkerOptions(queue_limits={queue.name: QueueLimits(concurrency=1)})
    worker = Worker(NoLimits(queue.store, closed), {queue.name: _nothing}, options)
    with pytest.raises(StoreUnavailable):
        await worker.run()
    assert closed == ["closed"]
