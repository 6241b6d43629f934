"""A worker that works for as long as a block lasts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from bullpen import Worker


@contextlib.asynccontextmanager
async def working(worker: Worker) -> AsyncIterator[None]:
    running = asyncio.create_task(worker.run())  # awaited below
    try:
        yield
    finally:
        worker.stop()
        await running
