"""Processes that are killed at any moment: `python -m tests.chaos.actors producer|worker <file> <acknowledged>`."""

import asyncio
import os
import random
import sys

from bullpen import Context, JobOptions, Queue, SqliteStore, Worker, WorkerOptions, keep

QUEUE = "chaos"


async def produce(path: str, acknowledged: str) -> None:
    """Add jobs for ever; an id is written down only once its add has returned."""
    store = SqliteStore(path)
    await store.open()
    queue = Queue(store, QUEUE, defaults=JobOptions(keep_completed=keep(), attempts=2))
    notes = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    while True:
        jobs = await asyncio.gather(*[queue.add("work", {"fails": random.random() < 0.1}) for _ in range(5)])
        os.write(notes, "".join(f"{job.id}\n" for job in jobs).encode())
        await asyncio.sleep(0.02)


async def handle(ctx: Context) -> str:
    await asyncio.sleep(random.random() / 50)
    if ctx.data["fails"]:
        raise ConnectionError("always")
    return "done"


async def work(path: str) -> None:
    # Crashes must not fail a job here: only its own attempts may.
    await Worker(SqliteStore(path), {QUEUE: handle}, WorkerOptions(max_stalled=1_000, lease=5)).run(signals=True)


if __name__ == "__main__":
    _, role, path, acknowledged = sys.argv
    asyncio.run(produce(path, acknowledged) if role == "producer" else work(path))
