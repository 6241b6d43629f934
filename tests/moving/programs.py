"""The old fleet and the new one, each in a process of its own.

python -m tests.moving.programs <program> <argument> …
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from bullpen import Context, Queue, Worker, WorkerOptions, keep
from bullpen.settings import store_from
from tests.moving.places import note_execution

QUEUE = "mail"
Program = Callable[..., Awaitable[None]]


def command(program: Program, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "tests.moving.programs", program.__name__, *map(str, arguments)]


async def work(address: str, executions: str, name: str) -> None:
    """Run jobs until told to stop. Each execution is noted; some hold on until their pipe is written to."""

    async def handle(ctx: Context) -> None:
        note_execution(Path(executions), f"{ctx.data['n']} {name}")
        if ctx.data.get("pipe"):
            print("holding", flush=True)
            await asyncio.to_thread(Path(ctx.data["pipe"]).read_bytes)

    store = store_from(address)
    await store.open()
    try:
        worker = Worker(store, {QUEUE: handle}, WorkerOptions(name=name, concurrency=4))
        await worker.run(signals=True)
    finally:
        await store.close()


async def produce(address: str) -> None:
    """For each line that is sent, add that many jobs, of all kinds; say so when all are acknowledged."""
    store = store_from(address)
    await store.open()
    queue = Queue(store, QUEUE)
    n = 0
    try:
        while line := await asyncio.to_thread(sys.stdin.readline):
            for _ in range(int(line)):
                options = ({}, {"priority": 3}, {"delay": 0.05}, {"id": f"own-{n}"}, {"keep_completed": keep(0)})[n % 5]
                await queue.add("one", {"n": n}, **options)
                n += 1
            print(n, flush=True)
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(globals()[sys.argv[1]](*sys.argv[2:]))
