"""An application on a place of its own, and workers that are stopped when the test ends."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from bullpen import Bullpen, Worker, WorkerOptions
from tests.support.places import Place, place, redis_server

__all__ = ["place", "redis_server"]

StartWorker = Callable[..., Worker]


@pytest.fixture
async def pen(place: Place) -> AsyncIterator[Bullpen]:
    async with Bullpen(place.store()) as pen:
        yield pen
    await place.check()


@pytest.fixture
async def start_worker(pen: Bullpen) -> AsyncIterator[StartWorker]:
    """Start a worker of the application; it is stopped at the end, and its failure is the test's."""
    started: list[tuple[Worker, asyncio.Task[object]]] = []

    def start(*queues: str, options: WorkerOptions | None = None) -> Worker:
        worker = pen.worker(queues, options)
        started.append((worker, asyncio.create_task(worker.run())))
        return worker

    yield start
    for worker, task in started:
        worker.stop_now()
        await task
