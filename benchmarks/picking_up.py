"""Child: the time from before `add` to the start of the handler, with a worker that has nothing else to do.

alone    producer and worker in this process
serve    the worker only; says `ready`, and ends after the last sample
produce  the producer only
"""

import argparse
import asyncio
import math
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.children import run, say, when_input_closes
from benchmarks.working import Stopwatch, TimedStore, say_ready
from benchmarks.workload import JOB, QUEUE, payload, queue_on
from bullpen import Context, SqliteStore, Worker
from bullpen.worker.runner import calm_collector

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
    """A worker that notes how late each job started, and stops after the last."""

    def __init__(self, path: Path, samples: int, *, on_ready: Callable[[], None]) -> None:
        self._store = TimedStore(path, sync="full", watch=Stopwatch(on_ready=on_ready))
        self._expected = WARM_UP + samples
        self._delays_ns: list[int] = []
        self._worker = Worker(self._store, {QUEUE: self._catch})

    async def run(self) -> None:
        when_input_closes(self._worker.stop)
        calm_collector()  # as `bullpen worker` does
        await self._worker.run()
        say(summary(self._delays_ns))

    async def _catch(self, ctx: Context) -> bool:
        self._delays_ns.append(time.time_ns() - ctx.data["sent_ns"])
        if len(self._delays_ns) == self._expected:
            self._worker.stop()
        return True


async def produce(path: Path, samples: int) -> None:
    store = SqliteStore(path, sync="full")
    await store.open()
    queue = queue_on(store, keep_all=True)
    for _ in range(WARM_UP + samples):
        await asyncio.sleep(random.uniform(*GAP_S))
        await queue.add(JOB, payload(sent_ns=time.time_ns()))
    await store.close()


async def alone(path: Path, samples: int) -> None:
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(Catcher(path, samples, on_ready=ready.set).run())
        await ready.wait()
        await produce(path, samples)


async def main(args: argparse.Namespace) -> None:
    match args.role:
        case "alone":
            await alone(args.path, args.samples)
        case "serve":
            await Catcher(args.path, args.samples, on_ready=say_ready).run()
        case "produce":
            await produce(args.path, args.samples)
            say({})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("role", choices=["alone", "serve", "produce"])
    parser.add_argument("--samples", type=int, required=True)
    run(main(parser.parse_args()))
