"""Child: a flow of many children, or a job of many durable steps, from its add to its result, with one worker."""

import argparse
import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

from benchmarks.children import run, say
from bullpen import Context, FlowProducer, Queue, Worker, WorkerOptions
from bullpen.settings import store_from
from bullpen.stores.base import Store
from bullpen.worker.handlers import HandlerFunction

_QUEUE = "long"
_PATIENCE_S = 300


@contextlib.asynccontextmanager
async def working(store: Store, handlers: dict[str, HandlerFunction]) -> AsyncIterator[None]:
    worker = Worker(store, {_QUEUE: dict(handlers)}, WorkerOptions(concurrency=50, timeout=_PATIENCE_S))
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


async def flow(store: Store, children: int) -> dict[str, float]:
    """One parent that asks for the results of so many children."""
    gathering_s = 0.0

    async def child(ctx: Context) -> int:
        return int(ctx.data["n"])

    async def parent(ctx: Context) -> int:
        nonlocal gathering_s
        start = time.perf_counter()
        results = await ctx.child_results()
        gathering_s = time.perf_counter() - start
        return sum(results.values())

    producer = FlowProducer(store)
    tree = producer.prepare(
        _QUEUE, "parent", children=[producer.prepare(_QUEUE, "child", {"n": n}) for n in range(children)]
    )
    start = time.perf_counter()
    node = await producer.add(tree)
    added = time.perf_counter()
    async with working(store, {"child": child, "parent": parent}):
        result = await node.job.result(timeout=_PATIENCE_S)
        done = time.perf_counter()
    if result != sum(range(children)):
        raise SystemExit(f"the parent saw {result}")
    return {"add_s": added - start, "run_s": done - added, "gather_s": gathering_s}


async def steps(store: Store, count: int) -> dict[str, float]:
    """So many steps, then an error, so that the next attempt finds all of them on record."""
    took: list[float] = []

    async def step(n: int) -> int:
        return n

    async def handle(ctx: Context) -> int:
        start = time.perf_counter()
        total = 0
        for n in range(count):
            total += await ctx.step(f"step {n}", step, n)
        took.append(time.perf_counter() - start)
        if ctx.attempt == 1:
            raise RuntimeError("once more")
        return total

    handlers: dict[str, Any] = {"steps": handle}
    async with working(store, handlers):
        job = await Queue(store, _QUEUE).add("steps", attempts=2)
        if await job.result(timeout=_PATIENCE_S) != sum(range(count)):
            raise SystemExit("the steps' results are not what they were")
    first, again = took
    return {"first_s": first, "again_s": again}


async def main(args: argparse.Namespace) -> None:
    store = store_from(args.address)
    await store.open()
    say(await (flow if args.what == "flow" else steps)(store, args.count))
    await store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("what", choices=["flow", "steps"])
    parser.add_argument("--count", type=int, required=True)
    run(main(parser.parse_args()))
