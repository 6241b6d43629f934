"""A worker that is killed amid its ticks: `python -m tests.chaos.ticking <address> <prefix>`."""

import asyncio
import sys

from bullpen import Context, SqliteStore, Store, Worker, WorkerOptions
from bullpen.stores.redis import RedisStore

QUEUE = "ticks"


def open_store(address: str, prefix: str) -> Store:
    return RedisStore(address, prefix=prefix) if address.startswith("redis:") else SqliteStore(address)


async def handle(ctx: Context) -> None:
    await asyncio.sleep(0.05)  # long enough to be killed in, now and then


async def work(address: str, prefix: str) -> None:
    # Crashes must not fail a tick here.
    options = WorkerOptions(max_stalled=1_000, lease=3)
    await Worker(open_store(address, prefix), {QUEUE: handle}, options).run(signals=True)


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
