"""What jobs cost that sleep or wait for a signal: room in the store, and the work of an idle worker beside them.

    python -m benchmarks.sleepers [--jobs 10000] [--seconds 20] [--store redis://…]

A real worker with five slots runs each job to its `ctx.sleep` or `ctx.wait_for`, after one durable step. Then
it is left alone, and the processor time of the worker's process is counted, and that of the server.
"""

import argparse
import asyncio
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from bullpen import Bullpen, Context, WorkerOptions
from bullpen.settings import store_from

SLOTS = 5


def declare(pen: Bullpen) -> Any:
    @pen.job(queue="sleepers")
    async def sleeper(ctx: Context, n: int) -> None:
        await ctx.step("first", _nothing)
        if n % 2:
            await ctx.sleep(86_400)
        else:
            await ctx.wait_for("approved")

    @pen.job(queue="sleepers", priority=1)
    async def quick(_: Context) -> str:
        return "quick"

    return sleeper, quick


async def _nothing() -> None: ...


class Server:
    """The Redis server's own figures, where there is one."""

    def __init__(self, store: Any) -> None:
        self._connection = getattr(store, "_connection", None)

    async def figures(self) -> dict[str, float]:
        if self._connection is None:
            return {}
        lines = {**await self._connection.command("INFO", "cpu"), **await self._connection.command("INFO", "memory")}
        return {
            "cpu_s": float(lines["used_cpu_sys"]) + float(lines["used_cpu_user"]),
            "bytes": float(lines["used_memory"]),
        }


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def measure(pen: Bullpen, file: Path | None, jobs: int, seconds: float) -> None:
    sleeper, quick = declare(pen)
    queue = pen.queue("sleepers")
    async with pen:
        server = Server(pen.store)
        empty = await server.figures()
        new = [sleeper.prepare(n=n) for n in range(jobs)]
        for start in range(0, jobs, 1_000):
            await queue.add_bulk(new[start : start + 1_000])
        worker = pen.worker(options=WorkerOptions(concurrency=SLOTS))
        working = asyncio.create_task(worker.run())
        begun = time.monotonic()
        while (counts := await queue.counts()).delayed < jobs:
            await asyncio.sleep(0.2)
        print(f"{jobs:,} jobs ran one step and parked in {time.monotonic() - begun:.1f} s, on {SLOTS} slots")
        print(
            f"counts: {counts.delayed:,} delayed, {counts.active} active, {counts.waiting + counts.prioritized} waiting"
        )
        if file is not None:
            size = sum(part.stat().st_size for part in file.parent.glob(f"{file.name}*"))
            print(f"file and its log: {size / jobs:,.0f} bytes a job (events and free pages included)")
        before, cpu_s, since = await server.figures(), _cpu_s(), time.monotonic()
        await asyncio.sleep(seconds)
        idle_s = time.monotonic() - since
        print(f"worker beside them: {(_cpu_s() - cpu_s) / idle_s:.2%} of a core")
        if before:
            after = await server.figures()
            print(f"server: {(before['bytes'] - empty['bytes']) / jobs:,.0f} bytes a job, "
                  f"{(after['cpu_s'] - before['cpu_s']) / idle_s:.2%} of a core")  # fmt: skip
        took = []
        for _ in range(20):
            since = time.monotonic()
            await (await quick.add()).result(timeout=30)
            took.append(time.monotonic() - since)
        print(f"a new job, from its add to its result: {sorted(took)[10] * 1000:.1f} ms (median of 20)")
        worker.stop()
        await working


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--store", default=os.environ.get("BULLPEN_STORE"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        file = None if args.store else Path(folder) / "queue.db"
        store = store_from(args.store or f"sqlite:{file}")
        asyncio.run(measure(Bullpen(store), file, args.jobs, args.seconds))


if __name__ == "__main__":
    main()
