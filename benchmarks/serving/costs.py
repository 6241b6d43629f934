"""What a server that looks on costs the store: python -m benchmarks.serving.costs [--jobs 50000]

The same jobs are added and drained twice on Redis: alone, and beside a server that feeds the read model,
with its page of all queues open, which knew the queue beforehand. Told are the calls that clients make and the
commands that the server carries out, inside scripts too, for each job: in sum, and those that the looking on adds to.
"""

import argparse
import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import redis

from benchmarks.redis.server import running_redis
from benchmarks.serving.place import HOST, open_stream, serving
from benchmarks.workload import noop, prepared
from bullpen import JobOptions, Queue, Worker, WorkerOptions, keep
from bullpen.settings import store_from

QUEUE = "bench"
_SCRIPTS = ("evalsha", "eval", "fcall")
_BATCH = 200
_SETTLE_S = 5.0
"""For the read model: to meet the queue, and to read on after the last job."""
_SHOWN = 12


class Meter:
    """What a Redis server was asked to do."""

    def __init__(self, port: int) -> None:
        self._client = redis.Redis(HOST, port)

    def read(self) -> dict[str, int]:
        """Calls by command."""
        stats = self._client.info("commandstats")
        return {name.removeprefix("cmdstat_"): int(told["calls"]) for name, told in stats.items()}


async def measure(folder: Path, jobs: int, *, is_watched: bool) -> dict[str, float]:
    folder.mkdir()
    async with running_redis(folder) as port:
        url = f"redis://{HOST}:{port}/0"
        store = store_from(url)
        await store.open()
        queue = Queue(store, QUEUE, defaults=JobOptions(keep_completed=keep(1_000)))
        # A queue that is new to the server is scanned once, which is no cost of its jobs.
        await queue.add_bulk(prepared(queue, _BATCH))
        meter = Meter(port)
        async with _watched(folder, url) if is_watched else contextlib.nullcontext():
            await asyncio.sleep(_SETTLE_S)
            before = meter.read()
            for _ in range(jobs // _BATCH):
                await queue.add_bulk(prepared(queue, _BATCH))
            worker = Worker(store, {QUEUE: noop}, WorkerOptions(concurrency=50))
            working = asyncio.create_task(worker.run())  # awaited below
            while (await queue.counts()).unfinished:
                await asyncio.sleep(0.5)
            await asyncio.sleep(_SETTLE_S)
            worker.stop()
            await working
            after = meter.read()
        await store.close()
    return {name: (after[name] - before.get(name, 0)) / jobs for name in after}


@contextlib.asynccontextmanager
async def _watched(folder: Path, url: str) -> AsyncIterator[None]:
    async with serving(folder, url) as served:
        reader, writer = await open_stream(served.port, "/v1/live")
        reading = asyncio.create_task(_read_on(reader))  # ended below
        try:
            yield
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            writer.close()


async def _read_on(reader: asyncio.StreamReader) -> None:
    while await reader.read(65_536):
        pass


async def main(args: argparse.Namespace) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        alone = await measure(Path(name) / "alone", args.jobs, is_watched=False)
        watched = await measure(Path(name) / "watched", args.jobs, is_watched=True)
    return compare(alone, watched)


def compare(alone: dict[str, float], watched: dict[str, float]) -> dict[str, object]:
    """The sums, by how much they are more, and the commands that grew most, each for one job."""
    sums = [
        {"scripts": sum(calls.get(name, 0) for name in _SCRIPTS), "commands": sum(calls.values())}
        for calls in (alone, watched)
    ]
    more = {name: watched[name] - alone.get(name, 0) for name in watched}
    most = sorted(more, key=lambda name: -more[name])[:_SHOWN]
    return {
        "alone": sums[0],
        "watched": sums[1],
        "more": {name: sums[1][name] / sums[0][name] - 1 for name in sums[0]},
        "by command": {
            name: {"alone": alone.get(name, 0), "watched": watched[name], "more": more[name]} for name in most
        },
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=50_000)
    print(json.dumps(asyncio.run(main(parser.parse_args())), indent=2))
