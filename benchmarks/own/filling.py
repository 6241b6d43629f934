"""Jobs that are there before a trial begins."""

import contextlib
from collections.abc import AsyncIterator

from benchmarks.workload import QUEUE, prepared
from bullpen import JobOptions, Queue, keep
from bullpen.settings import store_from

_AT_ONCE = 1_000


@contextlib.asynccontextmanager
async def queue_at(address: str, *, kept: int | None = None) -> AsyncIterator[Queue]:
    """The queue, whose jobs leave that many results behind; None is all."""
    store = store_from(address)
    await store.open()
    try:
        yield Queue(store, QUEUE, defaults=JobOptions(keep_completed=keep(kept)))
    finally:
        await store.close()


async def fill(queue: Queue, jobs: int) -> None:
    for start in range(0, jobs, _AT_ONCE):
        await queue.add_bulk(prepared(queue, min(_AT_ONCE, jobs - start)))
