"""A worker's own endpoints: is it alive, does it take jobs, how is everything, and its metrics."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.errors import BullpenError, QueueMissing
from bullpen.job.options import to_ms
from bullpen.observing import Observer, Serving
from bullpen.stores.base import Store, WorkerState
from bullpen.stores.workplace import is_store
from bullpen.telemetry.checks import Check, Health, HealthOptions, Status, judge, look_at, worst
from bullpen.telemetry.gauges import StoreGauges, WorkerGauges
from bullpen.telemetry.http import Answer, HttpServer, Place, json_answer
from bullpen.telemetry.metrics import Metrics
from bullpen.telemetry.registry import CONTENT_TYPE

LIVE, READY, HEALTH, METRICS = "/health/live", "/health/ready", "/health", "/metrics"

_BEAT_S = 0.25
_STORE_S = 2.0
"""A probe is answered within this time, whatever the store does."""


class Heart:
    """Asks an event loop again and again for a sign of life, from another one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._last_ms = clock.mono_ms()

    async def beat(self) -> None:
        while True:
            with contextlib.suppress(RuntimeError):  # the loop has ended: it stays silent
                self._loop.call_soon_threadsafe(self._sign)
            await asyncio.sleep(_BEAT_S)

    def silent_ms(self) -> int:
        return max(0, self._clock.mono_ms() - self._last_ms - round(_BEAT_S * 1000))

    def _sign(self) -> None:
        self._last_ms = self._clock.mono_ms()


class HealthServer(Observer):
    """Serves `/health/live`, `/health/ready`, `/health` and `/metrics` while a worker runs.

    Loopback unless another host is named. `with_store=False` leaves out what is the same in all
    processes of a store.
    """

    def __init__(
        self,
        metrics: Metrics,
        place: Place,
        options: HealthOptions | None = None,
        *,
        with_store: bool = True,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.place = place
        """With port 0, the port that it got is here while it serves."""
        self.options = options or HealthOptions()
        self._metrics = metrics
        self._clock = clock
        self._store_gauges = StoreGauges(metrics.registry) if with_store else None
        self._worker_gauges = WorkerGauges(metrics.registry)

    @contextlib.asynccontextmanager
    async def serving(self, worker: Serving) -> AsyncIterator[None]:
        pages = _Pages(self, worker, Heart(asyncio.get_running_loop(), self._clock))
        server = HttpServer(
            self.place, {LIVE: pages.live, READY: pages.ready, HEALTH: pages.health, METRICS: pages.metrics}
        )
        server.around(pages.open, pages.close)
        await asyncio.to_thread(server.start)
        self.place = server.place
        try:
            yield
        finally:
            await asyncio.to_thread(server.stop)

    async def metrics_text(self, worker: Serving, store: Store | None, silent_ms: int) -> str:
        """Without a store, what the process itself knows."""
        self._worker_gauges.show(worker.info(), silent_ms)
        if self._store_gauges is not None and store is not None:
            self._store_gauges.show(await look_at(store, worker.info().queues, self._clock))
        return self._metrics.text()


class _Pages:
    """What is served for one worker; lives in the server's thread and loop."""

    def __init__(self, health: HealthServer, worker: Serving, heart: Heart) -> None:
        self._health = health
        self._worker = worker
        self._heart = heart
        self._place = place = worker.store.another()
        self._store = place if is_store(place) else None
        """None for a remote worker, which sees no counts of its queues: the server tells them."""
        self._beating: asyncio.Task[None] | None = None

    async def open(self) -> None:
        # Owned by these pages until they close.
        self._beating = asyncio.create_task(self._heart.beat())

    async def close(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
        await self._place.close()

    async def live(self) -> Answer:
        check = self._loop_check(to_ms("live_within", self._health.options.live_within))
        return json_answer(Health(check.status, {"event_loop": check}), ok=check.status == Status.HEALTHY)

    async def ready(self) -> Answer:
        checks = {
            "event_loop": self._loop_check(to_ms("ready_within", self._health.options.ready_within)),
            "pool": self._pool_check(),
            "server" if self._store is None else "store": await self._place_check(),
        }
        status = worst(check.status for check in checks.values())
        return json_answer(Health(status, checks), ok=status == Status.HEALTHY)

    async def health(self) -> Answer:
        if self._store is None:
            return await self.ready()
        found = judge(await look_at(self._store, self._worker.info().queues), self._health.options)
        return json_answer(found, ok=found.status != Status.UNHEALTHY)

    async def metrics(self) -> Answer:
        text = await self._health.metrics_text(self._worker, self._store, self._heart.silent_ms())
        return Answer(text, content_type=CONTENT_TYPE)

    def _loop_check(self, within_ms: int) -> Check:
        silent_ms = self._heart.silent_ms()
        return Check(Status.HEALTHY if silent_ms <= within_ms else Status.UNHEALTHY, {"silent_ms": silent_ms})

    def _pool_check(self) -> Check:
        """It takes jobs, and has a slot that is not lost to a handler which does not give way."""
        info = self._worker.info()
        slots = sum(info.queues.values())
        is_well = info.state in (WorkerState.READY, WorkerState.PROCESSING) and len(info.stuck) < slots
        details = {"state": info.state, "slots": slots, "running": len(info.running), "stuck": len(info.stuck)}
        return Check(Status.HEALTHY if is_well else Status.UNHEALTHY, details)

    async def _place_check(self) -> Check:
        """Of a server it is enough to be opened: that is a heartbeat, with the worker's token."""
        try:
            async with asyncio.timeout(_STORE_S):
                await self._place.open()
                if self._store is not None:
                    await self._store.counts(next(iter(self._worker.info().queues)))
        except TimeoutError:
            return Check(Status.UNHEALTHY, {"error": f"no answer within {_STORE_S:g} s"})
        except QueueMissing:
            return Check(Status.HEALTHY)  # nothing was added yet, and it said so
        except BullpenError as error:
            return Check(Status.UNHEALTHY, {"error": f"{type(error).__name__}: {error}"})
        return Check(Status.HEALTHY)
