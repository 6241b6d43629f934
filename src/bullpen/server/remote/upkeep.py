"""The chores that a worker beside the store does for all: for queues that have none, the server does them."""

import asyncio
import logging
from collections.abc import Iterable

from bullpen.errors import StoreError
from bullpen.job.record import JobRef
from bullpen.scheduling.pauses import Pauses
from bullpen.settings import may_advance_schedules
from bullpen.stores.base import Store
from bullpen.upkeep.advancer import advance
from bullpen.worker.options import WorkerOptions

logger = logging.getLogger("bullpen.server")

_EVERY_S = 1.0


class Upkeep:
    """Takes back what remote workers lost and lets schedules go on, for every queue that one was served of."""

    def __init__(self, store: Store, options: WorkerOptions) -> None:
        self._store = store
        self._limits = options.limits
        self._queues: set[str] = set()
        self._working: asyncio.Task[None] | None = None
        self._has_stopped = False

    def serve(self, queues: Iterable[str]) -> None:
        """From now on, these too."""
        self._queues.update(queues)
        if self._queues and self._working is None and not self._has_stopped:
            # Owned by this upkeep until `stop`.
            self._working = asyncio.create_task(self._work(), name="remote upkeep")

    async def stop(self) -> None:
        """Safe to call twice."""
        self._has_stopped = True
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)
            self._working = None

    async def _work(self) -> None:
        may_advance = may_advance_schedules()
        pauses = Pauses(_EVERY_S, _EVERY_S)
        while True:
            # Varied, so that replicas do not come as a crowd.
            await asyncio.sleep(pauses.next_s())
            queues = sorted(self._queues)
            try:
                rescued = await self._store.rescue(queues, limits=self._limits)
                for record in await self._store.idle_schedules(queues) if may_advance else ():
                    await advance(self._store, record)
            except StoreError as error:
                logger.warning("cannot look after the queues of remote workers: %s", error)
                continue
            _tell("lost its worker and waits again", rescued.recovered)
            _tell("lost its worker too often and failed", rescued.failed)


def _tell(what: str, refs: Iterable[JobRef]) -> None:
    for ref in refs:
        logger.warning("job %s %s", ref, what)
