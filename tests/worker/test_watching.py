"""For which queues a worker waits: those whose jobs it can start."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import pytest

from bullpen import Context, Queue, Store, Worker, WorkerOptions
from bullpen.stores.base import Exchanged
from bullpen.worker import exchanger
from tests.support.around import StoreAround

_PATIENCE_S = 60


class WatchedStore(StoreAround):
    """Notes for which queues a worker waits, and how often it asked without waiting."""

    def __init__(self, inner: Store, watches: "asyncio.Queue[set[str]] | None" = None) -> None:
        super().__init__(inner)
        self.watches: asyncio.Queue[set[str]] = asyncio.Queue() if watches is None else watches

    def another(self) -> "WatchedStore":
        return WatchedStore(self.inner.another(), self.watches)

    async def wait_and_claim(self, wants: Mapping[str, int], **asked: Any) -> Exchanged:
        self.watches.put_nowait(set(wants))
        came: Exchanged = await self.inner.wait_and_claim(wants, **asked)
        return came

    async def watches_for(self, queues: set[str]) -> None:
        async with asyncio.timeout(_PATIENCE_S):
            while await self.watches.get() != queues:
                pass


@pytest.fixture
async def watched(store: Store, monkeypatch: pytest.MonkeyPatch) -> WatchedStore:
    """A worker that sleeps through something is not woken by its next look."""
    monkeypatch.setattr(exchanger, "_WATCH_MS", 600_000)
    return WatchedStore(store)


@pytest.fixture
async def start(watched: WatchedStore) -> AsyncIterator[Callable[..., Worker]]:
    workers: list[tuple[Worker, asyncio.Task[object]]] = []

    def start(queues: Sequence[str], work: Callable[[Context], Any]) -> Worker:
        worker = Worker(watched, dict.fromkeys(queues, work), WorkerOptions(concurrency=1))
        workers.append((worker, asyncio.create_task(worker.run())))
        return worker

    yield start
    for worker, task in workers:
        worker.stop_now()
        await task


async def test_jobs_for_no_free_slot_do_not_end_the_watch(
    store: Store, watched: WatchedStore, start: Callable[..., Worker]
) -> None:
    """One queue is full and has more, the other is empty: the worker waits for the other, and asks nobody else."""
    may_end = asyncio.Event()

    async def work(_: Context) -> None:
        await may_end.wait()

    busy = Queue(store, "busy")
    jobs = [await busy.add("x") for _ in range(3)]
    start(["busy", "idle"], work)
    await watched.watches_for({"idle"})
    may_end.set()
    for job in jobs:
        await job.result(_PATIENCE_S)
    # No watch was begun in vain, over and over: the next is for both, when the backlog is done.
    assert await asyncio.wait_for(watched.watches.get(), _PATIENCE_S) == {"busy", "idle"}


async def test_a_queue_whose_slot_is_free_again_is_watched_again(
    store: Store, watched: WatchedStore, start: Callable[..., Worker]
) -> None:
    """Though a watch for the other queue is under way."""

    async def work(_: Context) -> str:
        return "done"

    start(["busy", "idle"], work)
    await watched.watches_for({"busy", "idle"})
    for _ in range(3):
        for name in ("busy", "idle"):
            assert await (await Queue(store, name).add("x")).result(_PATIENCE_S) == "done"
