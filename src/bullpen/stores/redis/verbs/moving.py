"""Taking jobs to another store."""

from collections.abc import Mapping, Sequence

from bullpen.job.state import State
from bullpen.stores.moving import NO_SIGNALS, Cargo, MemoryPage, Move, SavedJob
from bullpen.stores.redis import exporting, restoring
from bullpen.stores.redis.opened import OpenSite


class Moving(OpenSite):
    async def export_jobs(self, queue: str, state: State, *, limit: int) -> Sequence[SavedJob]:
        return await exporting.export_jobs(self._site, queue, state, limit)

    async def export_memory(self, queue: str, *, limit: int, cursor: str | None = None) -> MemoryPage:
        return await exporting.export_memory(self._site, queue, limit, cursor)

    async def depart(self, queue: str, ids: Sequence[str], *, signals: Mapping[str, int] = NO_SIGNALS) -> Sequence[str]:
        return await exporting.depart(self._site, queue, ids, signals)

    async def begin_move(self, queue: str, move: Move) -> None:
        await restoring.begin_move(self._site, queue, move)

    async def restore(self, queue: str, cargo: Cargo, *, run: str) -> int:
        return await restoring.restore(self._site, queue, cargo, run)
