"""Child: the time from before `add` to the start of the handler, with a worker that has nothing else to do.

    alone    producer and worker in this process
    serve    the worker only; says `ready`, and ends when its input closes
    produce  the producer only
"""

import argparse
import asyncio
import math
import random
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.children import run, say, when_input_closes
from benchmarks.workload import JOB, QUEUE, payload, queue_on
from bullpen import Context, SqliteStore, Worker

WARM_UP = 10
"""Samples before those that count."""
GAP_S = (0.010, 0.030)
"""The pause between two jobs is random in this range, so that it meets no rhythm of a poll."""


def summary(delays_ns: Sequence[int]) -> dict[str, float]:
    ordered = sorted(delays_ns[WARM_UP:])
    return {
        "samples": len(ordered),
        **{f"p{share}": ordered[math.ceil(len(ordered) * share / 100) - 1] / 1e6 for share in (50, 99)},
    }


class Catcher:
    """A worker that notes how late each job started."""

    def __init__(self, store: SqliteStore) -> None:
        self.delays_ns: list[int] = []
        self.worker = Worker(store, {QUEUE: self._catch})

    async def _catch(self, ctx: Context) -> bool:
        self.delays_ns.append(time.time_ns() - ctx.data["sent_ns"])
        return True


async def produce(store: SqliteStore, samples: int) -> None:
    await store.open()
    queue = queue_on(store, keep_all=True)
    for _ in range(WARM_UP + samples):
        await asyncio.sleep(random.uniform(*GAP_S))
        await queue.add(JOB, payload(sent_ns=time.time_ns()))
    await asyncio.sleep(0.5)
    await store.close()


async def serve(store: SqliteStore) -> None:
    catcher = Catcher(store)
    when_input_closes(catcher.worker.stop)
    asyncio.get_running_loop().call_later(0.5, say, {"ready": True})
    await catcher.worker.run()
    say(summary(catcher.delays_ns))


async def alone(store: SqliteStore, samples: int) -> None:
    catcher = Catcher(store)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(catcher.worker.run())
        await asyncio.sleep(0.5)
        await produce(store, samples)
        catcher.worker.stop()
    say(summary(catcher.delays_ns))


async def main(args: argparse.Namespace) -> None:
    store = SqliteStore(args.path, sync="full")
    match args.role:
        case "alone":
            await alone(store, args.samples)
        case "serve":
            await serve(store)
        case "produce":
            await produce(store, args.samples)
            say({})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("role", choices=["alone", "serve", "produce"])
    parser.add_argument("--samples", type=int, default=0)
    run(main(parser.parse_args()))
