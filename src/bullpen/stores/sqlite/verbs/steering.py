"""What is done to one job, or to a whole queue."""

from collections.abc import Callable, Sequence

from bullpen.job.record import JobRef
from bullpen.job.state import State
from bullpen.stores.base import Cancellation
from bullpen.stores.sqlite import steering
from bullpen.stores.sqlite.opened import OpenFile
from bullpen.stores.sqlite.transaction import Transaction


class Steering(OpenFile):
    async def cancel(self, ref: JobRef, *, reason: str) -> Cancellation:
        return await self._write(lambda tx: steering.cancel(tx, ref, reason))

    async def retry(self, ref: JobRef) -> None:
        await self._write(lambda tx: steering.retry(tx, ref))

    async def retry_all(self, queue: str, state: State, *, limit: int) -> int:
        by_ms = self._clock.now_ms()  # a job that fails again meanwhile is not one of those that were meant
        return await self._in_portions(limit, lambda tx, n: steering.retry_all(tx, queue, state, by_ms, n))

    async def promote(self, ref: JobRef) -> None:
        await self._write(lambda tx: steering.promote(tx, ref))

    async def change_delay(self, ref: JobRef, delay_ms: int) -> None:
        await self._write(lambda tx: steering.change_delay(tx, ref, delay_ms))

    async def change_priority(self, ref: JobRef, priority: int) -> None:
        await self._write(lambda tx: steering.change_priority(tx, ref, priority))

    async def remove(self, ref: JobRef) -> None:
        await self._write(lambda tx: steering.remove(tx, ref))

    async def update_data(self, ref: JobRef, data: bytes) -> None:
        await self._write(lambda tx: steering.update_data(tx, ref, data))

    async def set_progress(self, ref: JobRef, progress: bytes) -> None:
        await self._write(lambda tx: steering.set_progress(tx, ref, progress))

    async def add_log(self, ref: JobRef, lines: Sequence[str]) -> int:
        return await self._write(lambda tx: steering.log(tx, ref, lines))

    async def pause(self, queue: str) -> None:
        await self._write(lambda tx: steering.pause(tx, queue))

    async def resume(self, queue: str) -> None:
        await self._write(lambda tx: steering.resume(tx, queue))

    async def drain(self, queue: str, *, delayed: bool) -> int:
        return await self._in_portions(None, lambda tx, _: steering.drain(tx, queue, delayed=delayed))

    async def clean(self, queue: str, state: State, *, older_than_ms: int, limit: int) -> int:
        by_ms = self._clock.now_ms() - older_than_ms
        return await self._in_portions(limit, lambda tx, n: steering.clean(tx, queue, state, by_ms, n))

    async def obliterate(self, queue: str, *, force: bool) -> None:
        while not await self._write(lambda tx: steering.obliterate(tx, queue, force=force)):
            pass

    async def _in_portions(self, limit: int | None, move: Callable[[Transaction, int], int]) -> int:
        """Move many jobs in commits of bounded size, so that others get their turn in between."""
        moved = 0
        while limit is None or moved < limit:
            portion = steering.BULK if limit is None else min(steering.BULK, limit - moved)
            some = await self._write(lambda tx, portion=portion: move(tx, portion))  # type: ignore[misc]
            moved += some
            if some < portion:
                break
        return moved
