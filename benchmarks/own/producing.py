"""Child: adds jobs to a store, as fast as one way of adding can, or at given times.

At given times means an open loop: each job has the time for which it is meant, as if many users
sent them, and a job that is added late is late by the producer's fault too.
"""

import argparse
import asyncio
import random
import time

from benchmarks.children import run, say
from benchmarks.workload import JOB, QUEUE, payload
from bullpen import JobOptions, Queue, keep
from bullpen.settings import store_from

COMPANY = 200
"""Adds at a time, concurrent or in bulk."""
NOW_AND_THEN_S = (0.010, 0.030)
"""Gaps that let a worker come to rest; random, so that they meet no rhythm of a poll."""
_HEAD_START_NS = 100_000_000


async def add_all(queue: Queue, way: str, jobs: int) -> None:
    data = payload(n=0)
    if way == "bulk":
        for start in range(0, jobs, COMPANY):
            await queue.add_bulk([queue.prepare(JOB, data) for _ in range(min(COMPANY, jobs - start))])
        return

    async def produce(share: int) -> None:
        for _ in range(share):
            await queue.add(JOB, data)

    producers = COMPANY if way == "concurrent" else 1
    await asyncio.gather(*[produce(len(range(n, jobs, producers))) for n in range(producers)])


async def add_in_time(queue: Queue, jobs: int, rate: float | None) -> float:
    """Add at random times, so many a second on average, or now and then; how late the latest add began, in ms."""
    due_ns = time.monotonic_ns() + _HEAD_START_NS
    latest_ns = 0
    async with asyncio.TaskGroup() as adds:
        for _ in range(jobs):
            gap_s = random.uniform(*NOW_AND_THEN_S) if rate is None else random.expovariate(rate)
            due_ns += round(gap_s * 1e9)
            while (early_ns := due_ns - time.monotonic_ns()) > 0:
                await asyncio.sleep(early_ns / 1e9)
            latest_ns = max(latest_ns, -early_ns)
            adds.create_task(queue.add(JOB, payload(due_ns=due_ns)))
    return latest_ns / 1e6


async def main(args: argparse.Namespace) -> None:
    store = store_from(args.address)
    await store.open()
    queue = Queue(store, QUEUE, defaults=JobOptions(keep_completed=keep()))
    if args.way == "in-time":
        late_ms = await add_in_time(queue, args.jobs, args.rate)
        say({"late_ms": late_ms})
    else:
        await queue.add(JOB, payload(n=0))  # the queue exists, and every statement and script is known
        start = time.perf_counter()
        await add_all(queue, args.way, args.jobs)
        say({"per_s": args.jobs / (time.perf_counter() - start)})
    await store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("way", choices=["one", "concurrent", "bulk", "in-time"])
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--rate", type=float, help="jobs a second, of those at given times; else now and then")
    run(main(parser.parse_args()))
