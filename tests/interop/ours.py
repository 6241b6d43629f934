"""Our worker in a process of its own, for tests to kill.

python -m tests.interop.ours <redis url> <prefix> <queue> <lease ms>
"""

import asyncio
import sys

from bullpen import Worker, WorkerOptions
from bullpen.stores.redis import RedisStore
from tests.interop.handling import Handling


async def main(url: str, prefix: str, queue: str, lease_ms: str) -> None:
    options = WorkerOptions(name="doomed", lease=int(lease_ms) / 1000)
    await Worker(RedisStore(url, prefix=prefix), {queue: Handling()}, options).run(signals=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
