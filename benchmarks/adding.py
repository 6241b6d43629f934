"""Child: adds jobs to a new file in one of three ways, and says how many a second."""

import argparse
import asyncio
import time
from pathlib import Path

from benchmarks.children import run, say
from benchmarks.workload import JOB, payload, prepared, queue_on
from bullpen import Queue, SqliteStore

WAYS = ("one", "concurrent", "bulk")
COMPANY = 200
"""Adds at a time, concurrent or in bulk."""


async def add_one_by_one(queue: Queue, jobs: int) -> None:
    for n in range(jobs):
        await queue.add(JOB, payload(n=n))


async def add_concurrently(queue: Queue, jobs: int) -> None:
    await asyncio.gather(*[add_one_by_one(queue, len(range(n, jobs, COMPANY))) for n in range(COMPANY)])


async def add_in_bulk(queue: Queue, jobs: int) -> None:
    for _ in range(0, jobs, COMPANY):
        await queue.add_bulk(prepared(queue, COMPANY))


async def main(args: argparse.Namespace) -> None:
    store = SqliteStore(args.path, sync=args.sync)
    await store.open()
    queue = queue_on(store, keep_all=False)
    add = dict(zip(WAYS, (add_one_by_one, add_concurrently, add_in_bulk), strict=True))[args.way]
    await queue.add(JOB, payload(n=0))  # the queue exists and every statement is known
    start = time.perf_counter()
    await add(queue, args.jobs)
    seconds = time.perf_counter() - start
    added = (await queue.counts()).waiting - 1
    await store.close()
    say({"per_s": added / seconds})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("--sync", choices=["full", "normal"], required=True)
    parser.add_argument("--jobs", type=int, required=True)
    run(main(parser.parse_args()))
