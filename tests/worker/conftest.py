"""A store, a queue, and workers that are stopped when the test ends."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from bullpen import Queue, SqliteStore, Worker, WorkerOptions
from bullpen.worker.handlers import Handlers

StartWorker = Callable[..., Worker]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "queue.db")
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def queue(store: SqliteStore) -> Queue:
    return Queue(store, "work")


@pytest.fixture
async def start_worker(store: SqliteStore) -> AsyncIterator[StartWorker]:
    """Start a worker in this process; it is stopped at the end, and its failure is the test's."""
    started: list[tuple[Worker, asyncio.Task[object]]] = []

    def start(handlers: Handlers, options: WorkerOptions | None = None) -> Worker:
        worker = Worker(store, handlers, options)
        started.append((worker, asyncio.create_task(worker.run())))
        return worker

    yield start
    for worker, task in started:
        worker.stop_now()
        await task
