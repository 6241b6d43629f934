"""Child: Bullpen on a Redis server; it speaks as peers/bullmq_node.mjs does.

A drain is by the Worker, or by a bare loop of exchanges with as many under way and as many jobs out at a time.
"""

import argparse
import asyncio
import itertools
import json
import sys
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from benchmarks.children import run, say
from benchmarks.working import Stopwatch
from benchmarks.workload import JOB, QUEUE, noop
from bullpen import JobOptions, Queue, Worker, WorkerOptions, keep
from bullpen.job.options import OptionFields
from bullpen.job.verdicts import Completed, Settlement
from bullpen.stores.base import Exchanged
from bullpen.stores.redis import RedisStore

COMPANY = 200
_LEASE_MS = 30_000
_RESULT = b"true"


async def add(queue: Queue, *, way: str, jobs: int, data: Mapping[str, Any], delay_ms: int) -> None:
    options: OptionFields = {"delay": delay_ms / 1000} if delay_ms else {}
    if way == "one":
        for _ in range(jobs):
            await queue.add(JOB, data, **options)
        return
    for n in range(0, jobs, COMPANY):
        size = min(COMPANY, jobs - n)
        if way == "concurrent":
            await asyncio.gather(*[queue.add(JOB, data, **options) for _ in range(size)])
        else:
            await queue.add_bulk([queue.prepare(JOB, data, **options) for _ in range(size)])


async def drain_by_worker(store: RedisStore, *, jobs: int, concurrency: int) -> float:
    watch = Stopwatch(until=jobs, on_ready=lambda: None)
    worker = Worker(watched(store, watch), {QUEUE: noop}, WorkerOptions(concurrency=concurrency))
    watch.on_end = worker.stop
    await worker.run()
    return (watch.last_ns - watch.first_ns) / 1e9


def watched(store: RedisStore, watch: Stopwatch) -> RedisStore:
    """The store, and each that is made of it, with a stopwatch at the one verb that claims and settles."""
    exchange, another = store.exchange, store.another

    async def timed_exchange(*args: Any, **named: Any) -> Exchanged:
        watch.asked()
        answer = await exchange(*args, **named)
        watch.answered(answer)
        return answer

    store.exchange = timed_exchange  # type: ignore[method-assign]  # on this instance only
    store.another = lambda: watched(another(), watch)  # type: ignore[method-assign]
    return store


async def drain_by_exchanges(store: RedisStore, *, jobs: int, concurrency: int) -> float:
    lanes = store.facts.exchanges_in_flight
    requests = itertools.count(1)
    settled = 0

    async def handle(data: bytes) -> bytes:
        json.loads(data)
        return _RESULT

    async def lane() -> None:
        nonlocal settled
        ended: list[Settlement] = []
        while True:
            answer = await store.exchange(
                ended,
                {QUEUE: concurrency // lanes},
                worker="bench",
                lease_ms=_LEASE_MS,
                request=f"bench-{next(requests)}",
            )
            settled += len(answer.settled)
            claimed = answer.claimed.jobs
            if not claimed:
                return
            results = await asyncio.gather(*[asyncio.create_task(handle(each.job.data)) for each in claimed])
            ended = [Settlement(each.lease, Completed(result)) for each, result in zip(claimed, results, strict=True)]

    start = time.perf_counter()
    await asyncio.gather(*[lane() for _ in range(lanes)])
    if settled != jobs:
        raise SystemExit(f"{settled} of {jobs} jobs were settled")
    return time.perf_counter() - start


async def main(args: argparse.Namespace) -> None:
    url = f"redis://127.0.0.1:{args.port}/0"
    store = RedisStore(url)
    await store.open()
    queue = Queue(store, QUEUE, defaults=JobOptions(keep_completed=keep()) if args.keep_all else None)
    drain = drain_by_worker if args.by == "worker" else drain_by_exchanges
    say({"version": version("bullpen")})
    while line := await asyncio.to_thread(sys.stdin.readline):
        asked = json.loads(line)
        if asked.pop("do") == "drain":
            seconds = await drain(store, **asked)
        else:
            start = time.perf_counter()
            await add(queue, **asked)
            seconds = time.perf_counter() - start
        say({"seconds": seconds})
    await store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--by", choices=["worker", "exchanges"], required=True)
    parser.add_argument("--keep-all", action="store_true", help="keep every result, as BullMQ does by default")
    parser.add_argument("port", type=int)
    run(main(parser.parse_args()))
