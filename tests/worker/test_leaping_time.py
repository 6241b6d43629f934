"""The machine slept, or its clock was set: leases seem to have run out, and their holders live."""

import asyncio
from collections.abc import Sequence

from bullpen import Context, CrashLimits, Queue, Store, Worker, WorkerOptions
from bullpen.clock import SystemClock
from bullpen.stores.base import Rescued
from tests.support.around import StoreAround
from tests.support.places import Place, only_on_sqlite
from tests.support.working import working
from tests.worker.waiting import until

_LEASE_S = 6.0
"""Each second somebody looks for lost jobs, and every other second the lease is renewed."""


class _Leaping(SystemClock):
    """Its wall time leaps when told to; its monotonic time stands still meanwhile, as in a machine that sleeps."""

    def __init__(self) -> None:
        self._ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self._ahead_ms

    def leap(self, ms: int) -> None:
        self._ahead_ms += ms


class _Swept(StoreAround):
    """Tells who has looked for lost jobs."""

    def __init__(self, inner: Store, swept: set[int]) -> None:
        super().__init__(inner)
        self._swept = swept

    def another(self) -> "_Swept":
        return _Swept(self.inner.another(), self._swept)

    async def rescue(self, queues: Sequence[str], *, limits: CrashLimits) -> Rescued:
        rescued = await self.inner.rescue(queues, limits=limits)
        self._swept.add(id(self))
        return rescued


@only_on_sqlite  # the leases on Redis run by the server's clock
async def test_a_worker_does_not_rescue_what_it_runs_itself_after_time_leapt(place: Place) -> None:
    clock = _Leaping()
    started = asyncio.Event()

    async def work(ctx: Context) -> int:
        started.set()
        await asyncio.sleep(_LEASE_S / 2)
        return ctx.epoch

    swept: set[int] = set()

    async def sweepers() -> int:
        return len(swept)

    store = _Swept(place.store(clock=clock), swept)
    await store.open()
    options = WorkerOptions(lease=_LEASE_S)
    async with working(Worker(store, {"work": work}, options)), working(Worker(store, {"work": work}, options)):
        job = await Queue(store, "work").add("work")
        await started.wait()
        await until(sweepers, lambda count: count == 2)
        clock.leap(3_600_000)
        assert await job.result(20) == 1
    assert (await job.record()).crashes == {}
    await store.close()
