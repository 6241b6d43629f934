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
_KEPT_MS = 600_000
"""So long after the last call about it, and the end of the lease that this gave, a queue is still looked after."""


class Upkeep:
    """Takes back what remote workers lost and lets schedules go on, for every queue that one was served of.

    Of a queue that nobody asks for any more the last lease is over when its name is forgotten, and it was looked after
    since then. A queue that does not exist is not looked after: names come from outside, and any may be said.
    """

    def __init__(self, store: Store, options: WorkerOptions) -> None:
        self._store = store
        self._limits = options.limits
        self._until_ms: dict[str, int] = {}
        """Of each name that was said, when to forget it."""
        self._known: set[str] = set()
        """Those of them that exist."""
        self._working: asyncio.Task[None] | None = None
        self._has_stopped = False

    def serve(self, queues: Iterable[str], *, lease_ms: int = 0, exist: bool = False) -> None:
        """From now on, these too; leases of them may be held for as long as that, and then they do `exist`."""
        until_ms = self._store.clock.mono_ms() + lease_ms + _KEPT_MS
        for queue in queues:
            self._until_ms[queue] = max(until_ms, self._until_ms.get(queue, 0))
            if exist:
                self._known.add(queue)
        if self._until_ms and self._working is None and not self._has_stopped:
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
            try:
                await self.look_after(may_advance=may_advance)
            except StoreError as error:
                logger.warning("cannot look after the queues of remote workers: %s", error)

    async def look_after(self, *, may_advance: bool) -> None:
        """Once, all queues that exist; then forget those whose time was over before."""
        begun_ms = self._store.clock.mono_ms()
        if queues := await self._queues():
            rescued = await self._store.rescue(queues, limits=self._limits)
            _tell("lost its worker and waits again", rescued.recovered)
            _tell("lost its worker too often and failed", rescued.failed)
            for record in await self._store.idle_schedules(queues) if may_advance else ():
                await advance(self._store, record)
        for queue in [queue for queue, until_ms in self._until_ms.items() if until_ms <= begun_ms]:
            del self._until_ms[queue]
            self._known.discard(queue)

    async def _queues(self) -> list[str]:
        """Those that are there; whether a name is of one is asked as long as it is of none."""
        if self._until_ms.keys() - self._known:
            self._known |= self._until_ms.keys() & set(await self._store.queues())
        return sorted(self._known)


def _tell(what: str, refs: Iterable[JobRef]) -> None:
    for ref in refs:
        logger.warning("job %s %s", ref, what)
