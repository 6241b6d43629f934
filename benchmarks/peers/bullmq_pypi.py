"""Drives bullmq of PyPI; runs in its own environment, imports nothing of ours, speaks as bullmq_node.mjs does."""

import argparse
import asyncio
import json
import sys
import time
from importlib.metadata import version
from typing import Any

import uvloop
from bullmq import Queue, Worker  # type: ignore[import-not-found,import-untyped,unused-ignore]  # seldom in ours

NAME = "bench"
JOB = "noop"
COMPANY = 200


async def add(queue: Any, *, way: str, jobs: int, data: dict[str, Any], delay_ms: int) -> None:
    opts = {"delay": delay_ms} if delay_ms else {}
    if way == "one":
        for _ in range(jobs):
            await queue.add(JOB, data, opts)
        return
    for n in range(0, jobs, COMPANY):
        size = min(COMPANY, jobs - n)
        if way == "concurrent":
            await asyncio.gather(*[queue.add(JOB, data, opts) for _ in range(size)])
        else:
            await queue.addBulk([{"name": JOB, "data": data, "opts": opts} for _ in range(size)])


async def noop(_job: Any, _token: str) -> bool:
    return True


async def drain(connection: dict[str, Any], *, jobs: int, concurrency: int) -> float:
    worker = Worker(NAME, noop, {"connection": connection, "concurrency": concurrency, "autorun": False})
    completed = 0
    done = asyncio.Event()

    def count(*_: Any) -> None:
        nonlocal completed
        completed += 1
        if completed == jobs:
            done.set()

    worker.on("completed", count)
    start = time.perf_counter()
    running = asyncio.ensure_future(worker.run())
    await done.wait()
    seconds = time.perf_counter() - start
    await worker.close(force=True)
    running.cancel()
    return seconds


async def main(port: int) -> None:
    connection = {"host": "127.0.0.1", "port": port}
    queue = Queue(NAME, {"connection": connection})
    print(json.dumps({"version": version("bullmq")}), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        asked = json.loads(line)
        if asked.pop("do") == "drain":
            seconds = await drain(connection, **asked)
        else:
            start = time.perf_counter()
            await add(queue, **asked)
            seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds}), flush=True)
    await queue.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    uvloop.run(main(parser.parse_args().port))
