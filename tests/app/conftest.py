"""An application on a file of its own, and workers that are stopped when the test ends."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from bullpen import Bullpen, SqliteStore, Worker, WorkerOptions

StartWorker = Callable[..., Worker]


@pytest.fixture
async def pen(tmp_path: Path) -> AsyncIterator[Bullpen]:
    async with Bullpen(SqliteStore(tmp_path / "queue.db")) as pen:
        yield pen


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
