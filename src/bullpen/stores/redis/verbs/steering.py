"""What is done to one job, or to a whole queue."""

from collections.abc import Sequence

from bullpen.job.record import JobRef
from bullpen.job.state import State
from bullpen.stores.base import Cancellation
from bullpen.stores.redis import steering
from bullpen.stores.redis.opened import OpenSite


class Steering(OpenSite):
    async def cancel(self, ref: JobRef, *, reason: str) -> Cancellation:
        return await steering.cancel(self._site, ref, reason)

    async def retry(self, ref: JobRef) -> None:
        await steering.retry(self._site, ref)

    async def retry_all(self, queue: str, state: State, *, limit: int) -> int:
        return await steering.retry_all(self._site, queue, state, limit)

    async def promote(self, ref: JobRef) -> None:
        await steering.promote(self._site, ref)

    async def change_delay(self, ref: JobRef, delay_ms: int) -> None:
        await steering.change_delay(self._site, ref, delay_ms)

    async def change_priority(self, ref: JobRef, priority: int) -> None:
        await steering.change_priority(self._site, ref, priority)

    async def remove(self, ref: JobRef) -> None:
        await steering.remove(self._site, ref)

    async def update_data(self, ref: JobRef, data: bytes) -> None:
        await steering.update_data(self._site, ref, data)

    async def set_progress(self, ref: JobRef, progress: bytes) -> None:
        await steering.set_progress(self._site, ref, progress)

    async def add_log(self, ref: JobRef, lines: Sequence[str]) -> int:
        return await steering.add_log(self._site, ref, lines)

    async def pause(self, queue: str) -> None:
        await steering.pause(self._site, queue)

    async def resume(self, queue: str) -> None:
        await steering.resume(self._site, queue)

    async def drain(self, queue: str, *, delayed: bool) -> int:
        return await steering.drain(self._site, queue, delayed=delayed)

    async def clean(self, queue: str, state: State, *, older_than_ms: int, limit: int) -> int:
        return await steering.clean(self._site, queue, state, older_than_ms, limit)

    async def obliterate(self, queue: str, *, force: bool) -> None:
        await steering.obliterate(self._site, queue, force=force)
