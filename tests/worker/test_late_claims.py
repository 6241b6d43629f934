"""Claims whose answer comes late: their leases run from the moment at which the store gave the jobs."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bullpen import Context, Queue, Store, Worker, WorkerOptions
from bullpen.job.verdicts import Settlement
from bullpen.stores.base import Exchanged, StoreFacts, WorkerState
from tests.support.around import StoreAround
from tests.support.working import working
from tests.worker.waiting import until

_LEASE_S = 3.0


class _Blocked(StoreAround):
    """The first claim arrives just as the loop is blocked, for two leases."""

    def __init__(self, inner: Store, was_blocked: asyncio.Event) -> None:
        super().__init__(inner)
        self._was_blocked = was_blocked

    def another(self) -> "_Blocked":
        return _Blocked(self.inner.another(), self._was_blocked)

    async def exchange(self, settlements: Sequence[Settlement], wants: Mapping[str, int], **rest: Any) -> Exchanged:
        answer = await self.inner.exchange(settlements, wants, **rest)
        if answer.claimed.jobs and not self._was_blocked.is_set():
            self._was_blocked.set()
            await self._keep_waiting()
        return answer

    async def _keep_waiting(self) -> None:
        time.sleep(2 * _LEASE_S)


class _FarAway(_Blocked):
    """A place where no claim can be handed back by its request, and on a slow line: the loop goes on."""

    @property
    def facts(self) -> StoreFacts:
        return msgspec.structs.replace(self.inner.facts, only_works=True)

    def another(self) -> "_FarAway":
        return _FarAway(self.inner.another(), self._was_blocked)

    async def _keep_waiting(self) -> None:
        await asyncio.sleep(0.6 * _LEASE_S)


async def test_a_claim_that_comes_late_and_is_held_still_is_started(queue: Queue) -> None:
    """A worker on a slow line would else start nothing at all."""

    async def work(ctx: Context) -> int:
        return ctx.epoch

    job = await queue.add("work")
    store = _FarAway(queue.store, asyncio.Event())
    async with working(Worker(store, {"work": work}, WorkerOptions(lease=_LEASE_S))):
        assert await job.result(20) == 1
    assert (await job.record()).crashes == {}


async def test_a_claim_that_comes_late_is_handed_back_before_another_takes_it(queue: Queue) -> None:
    """No crash is counted, and the job runs once."""
    runs: list[int] = []

    async def work(ctx: Context) -> None:
        runs.append(ctx.epoch)

    other = Worker(queue.store, {"work": work}, WorkerOptions(lease=_LEASE_S, name="other"))
    other.pause()  # it looks for lost jobs, and takes none for now
    async with working(other):
        await until(queue.store.workers, lambda workers: [one.state for one in workers] == [WorkerState.READY])
        job = await queue.add("work")
        was_blocked = asyncio.Event()
        blocked = _Blocked(queue.store, was_blocked)
        async with working(Worker(blocked, {"work": work}, WorkerOptions(lease=_LEASE_S))):
            await was_blocked.wait()
            other.resume()
            await job.result(20)
    assert len(runs) == 1
    assert (await job.record()).crashes == {}
