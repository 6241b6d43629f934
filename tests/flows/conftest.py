"""An application on each store, and workers that are stopped when the test ends."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from bullpen import Bullpen, SqliteStore, Store, Worker, WorkerOptions
from bullpen.stores.redis import RedisStore
from tests.support.redis_harness import fresh_prefix
from tests.support.redis_server import redis_server

__all__ = ["redis_server"]

StartWorker = Callable[..., Worker]


@pytest.fixture(params=["sqlite", "redis"])
async def pen(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bullpen]:
    store: Store = SqliteStore(tmp_path / "queue.db")
    if request.param == "redis":
        store = RedisStore(request.getfixturevalue("redis_server").url, prefix=fresh_prefix())
    async with Bullpen(store) as pen:
        yield pen


@pytest.fixture
async def start_worker(pen: Bullpen) -> AsyncIterator[StartWorker]:
    started: list[tuple[Worker, asyncio.Task[object]]] = []

    def start(options: WorkerOptions | None = None) -> Worker:
        worker = pen.worker((), options)
        started.append((worker, asyncio.create_task(worker.run())))
        return worker

    yield start
    for worker, task in started:
        worker.stop_now()
        await task
