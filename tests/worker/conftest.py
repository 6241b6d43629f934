"""A store, a queue, and workers that are stopped when the test ends."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from bullpen import Queue, Store, Worker, WorkerOptions
from bullpen.settings import STORE
from bullpen.worker.handlers import Handlers
from tests.support.places import Place, place, redis_server

__all__ = ["place", "redis_server"]

StartWorker = Callable[..., Worker]


@pytest.fixture
async def store(place: Place, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Store]:
    """Other processes find it by their environment."""
    monkeypatch.setenv(STORE, place.address)
    store = place.store()
    await store.open()
    yield store
    await store.close()
    await place.check()


@pytest.fixture
def queue(store: Store) -> Queue:
    return Queue(store, "work")


@pytest.fixture
async def start_worker(store: Store) -> AsyncIterator[StartWorker]:
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
