"""Taking jobs to another store."""

from collections.abc import Mapping, Sequence

from bullpen.job.state import State
from bullpen.stores.moving import NO_SIGNALS, Cargo, MemoryPage, Move, SavedJob
from bullpen.stores.sqlite import exporting, restoring
from bullpen.stores.sqlite.opened import OpenFile


class Moving(OpenFile):
    async def export_jobs(self, queue: str, state: State, *, limit: int) -> Sequence[SavedJob]:
        return await self._file.read(lambda db: exporting.export_jobs(db, queue, state, limit))

    async def export_memory(self, queue: str, *, limit: int, cursor: str | None = None) -> MemoryPage:
        now_ms = self._clock.now_ms()
        return await self._file.read(lambda db: exporting.export_memory(db, queue, limit, cursor, now_ms))

    async def depart(self, queue: str, ids: Sequence[str], *, signals: Mapping[str, int] = NO_SIGNALS) -> Sequence[str]:
        return await self._write(lambda tx: exporting.depart(tx, queue, ids, signals))

    async def begin_move(self, queue: str, move: Move) -> None:
        await self._write(lambda tx: restoring.begin_move(tx, queue, move))

    async def restore(self, queue: str, cargo: Cargo, *, run: str) -> int:
        return await self._write(lambda tx: restoring.restore(tx, queue, cargo, run))
