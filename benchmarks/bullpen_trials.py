"""The trials of Bullpen."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.children import ask, child, module
from benchmarks.series import Series
from benchmarks.trials import (
    DRAIN,
    ENQUEUE,
    PROCESSES,
    Measured,
    Trial,
    WentWrong,
    pickup_series,
)
from benchmarks.workload import fill, queue_on
from bullpen import Queue, SqliteStore
from bullpen.stores.sqlite.connection import Sync

BULLPEN = "Bullpen"
_WAYS = {"one": "one at a time", "concurrent": "200 at once", "bulk": "in bulk of 200"}
_LONGEST_DRAIN_S = 120


def enqueue_series(way: str, sync: Sync) -> Series:
    return Series(BULLPEN, ENQUEUE, f"{_WAYS[way]}, sync {sync}")


def adding(way: str, sync: Sync, jobs: int) -> Trial:
    series = enqueue_series(way, sync)

    async def measure(folder: Path) -> Measured:
        answer = await ask(*module("adding", folder / "queue.db", way, "--sync", sync, "--jobs", jobs))
        return {series: answer["per_s"]}

    return Trial([series], measure)


def drain_series(concurrency: int, sync: Sync, *, keep_all: bool = True) -> Series:
    kept = "all results kept" if keep_all else "the newest 1,000 kept (default)"
    return Series(BULLPEN, DRAIN, f"concurrency {concurrency}, sync {sync}, {kept}")


def draining(concurrency: int, sync: Sync, jobs: int, *, keep_all: bool = True) -> Trial:
    series = drain_series(concurrency, sync, keep_all=keep_all)

    async def measure(folder: Path) -> Measured:
        path = folder / "queue.db"
        await fill(path, jobs, keep_all=keep_all)
        command = module("working", path, "--sync", sync, "--concurrency", concurrency, "--until", jobs)
        async with child(*command) as worker:
            await worker.answer()  # ready
            answer = await worker.answer()
        return {series: jobs / ((answer["last_ns"] - answer["first_ns"]) / 1e9)}

    return Trial([series], measure)


def processes_series(count: int) -> Series:
    return Series(BULLPEN, PROCESSES, f"{count} × concurrency 50, sync full, all results kept")


def processes(count: int, jobs: int) -> Trial:
    """From the moment the queue is resumed, with every worker waiting, to the last settlement of any."""
    series = processes_series(count)

    async def measure(folder: Path) -> Measured:
        path = folder / "queue.db"
        await fill(path, jobs, paused=True)
        command = module("working", path, "--sync", "full", "--concurrency", 50)
        store = SqliteStore(path)
        await store.open()
        try:
            return {series: await settled_by(command, count, queue_on(store, keep_all=True))}
        finally:
            await store.close()

    return Trial([series], measure)


async def settled_by(command: Sequence[str], count: int, queue: Queue) -> float:
    """Jobs a second: that many workers wait at a paused queue, which is then resumed."""
    jobs = (await queue.counts()).unfinished
    async with contextlib.AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(child(*command)) for _ in range(count)]
        for worker in workers:
            await worker.answer()  # ready
        start_ns = time.monotonic_ns()
        await queue.resume()
        await until_empty(queue)
        answers = [await worker.last_answer() for worker in workers]
    if (settled := sum(answer["settled"] for answer in answers)) != jobs:
        raise WentWrong(f"{settled} of {jobs} jobs were settled")
    end_ns: int = max(answer["last_ns"] for answer in answers)
    return jobs / ((end_ns - start_ns) / 1e9)


async def until_empty(queue: Queue) -> None:
    """Only to know when to stop: the workers' own clocks say when they were done."""
    try:
        async with asyncio.timeout(_LONGEST_DRAIN_S):
            while (await queue.counts()).unfinished:
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise WentWrong("the queue was not drained in time") from None


def pickup_alone(samples: int) -> Trial:
    p50, p99 = pickup_series(BULLPEN, "producer and worker in one process")

    async def measure(folder: Path) -> Measured:
        answer = await ask(*module("picking_up", folder / "queue.db", "alone", "--samples", samples))
        return {p50: answer["p50"], p99: answer["p99"]}

    return Trial([p50, p99], measure)


def pickup_apart(samples: int) -> Trial:
    p50, p99 = pickup_series(BULLPEN, "producer and worker in two processes")

    async def measure(folder: Path) -> Measured:
        path = folder / "queue.db"
        async with child(*module("picking_up", path, "serve", "--samples", samples)) as server:
            await server.answer()  # ready
            await ask(*module("picking_up", path, "produce", "--samples", samples))
            answer = await server.answer()
        return {p50: answer["p50"], p99: answer["p99"]}

    return Trial([p50, p99], measure)
