"""A worker for deliveries inside another process: the server's, so that webhooks need no more to be set up."""

import asyncio
import logging

from bullpen.app import Bullpen
from bullpen.builtin.messages import QUEUE
from bullpen.builtin.outgoing import Outgoing
from bullpen.builtin.webhooks import Deliveries
from bullpen.errors import RecordsUnavailable
from bullpen.records.records import Records
from bullpen.records.stopping import wait_for_any
from bullpen.stores.base import Store
from bullpen.worker.options import WorkerOptions
from bullpen.worker.worker import Worker

logger = logging.getLogger("bullpen.webhooks")

_LOOK_S = 1.0
_AT_ONCE = 20


class Deliverer:
    """Delivers from when there is somebody to deliver to; until then it is no worker, and is not listed as one."""

    def __init__(self, records: Records, store: Store, outgoing: Outgoing) -> None:
        self._records = records
        self._store = store
        self._outgoing = outgoing
        self._worker: Worker | None = None
        self._running: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._nudged = asyncio.Event()

    def start(self) -> None:
        if self._running is None:
            # Owned by this deliverer; ended and awaited by `stop`.
            self._stopping.clear()
            self._running = asyncio.create_task(self._run(), name="deliveries")

    def nudge(self) -> None:
        """There may be somebody now."""
        self._nudged.set()

    async def stop(self) -> None:
        """Hand back what is under way; safe to call twice."""
        running, self._running = self._running, None
        self._stopping.set()
        if self._worker is not None:
            self._worker.stop_now()
        if running is not None:
            await asyncio.gather(running, return_exceptions=True)

    async def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if await self._is_needed():
                    await self._work()
            except RecordsUnavailable as error:
                logger.warning("deliveries wait for the records: %s", error)
            except Exception:
                logger.exception("the worker of deliveries ended, trying again")
            await wait_for_any(self._stopping, self._nudged, seconds=_LOOK_S)
            self._nudged.clear()

    async def _is_needed(self) -> bool:
        return bool(await self._records.webhooks.list() or await self._records.alerts.list())

    async def _work(self) -> None:
        pen = Bullpen(self._store)
        Deliveries(self._records, self._outgoing).declare(pen)
        self._worker = pen.worker([QUEUE], WorkerOptions(concurrency=_AT_ONCE, grace=0))
        if not self._stopping.is_set():
            await self._worker.run()
