"""A store on each place in turn, applications on it, and workers that end with the test."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from bullpen import Bullpen, Store, WorkerOptions
from bullpen.observing import Observer
from tests.support.places import Place, place, redis_server

__all__ = ["place", "redis_server"]

MakePen = Callable[..., Bullpen]
Work = Callable[[Bullpen], None]


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    store = place.store()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def make_pen(store: Store) -> MakePen:
    def make(*telemetry: Observer) -> Bullpen:
        return Bullpen(store, telemetry=telemetry)

    return make


@pytest.fixture
async def work() -> AsyncIterator[Work]:
    """Start a worker for an application; it is stopped at the end, and its failure is the test's."""
    started = []

    def start(pen: Bullpen) -> None:
        worker = pen.worker(options=WorkerOptions(concurrency=2, grace=0))
        started.append((worker, asyncio.create_task(worker.run())))

    yield start
    for worker, task in started:
        worker.stop_now()
        await task
