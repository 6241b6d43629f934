"""A worker in a process of its own that takes jobs off and does nothing with them.

    python -m benchmarks.serving.draining STORE JOBS_PER_S      (0: without a pause)

It ends when its standard input does, and then tells how many jobs a second it ran.
"""

import asyncio
import contextlib
import json
import sys
import time
import uuid
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator

from bullpen import Failure
from bullpen.job.verdicts import Completed, Failed, Settlement, Verdict
from bullpen.settings import store_from
from bullpen.stores.base import Store

QUEUES = 4
_AT_ONCE = 40


class Drained:
    """How fast it went; known after the block."""

    per_s = 0


@contextlib.asynccontextmanager
async def draining(address: str, pace: int) -> AsyncIterator[Drained]:
    """Jobs run at this pace for the time of a block."""
    command = [sys.executable, "-m", "benchmarks.serving.draining", address, str(pace)]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert process.stdin is not None
    drained = Drained()
    try:
        yield drained
    finally:
        process.stdin.close()
        told, _ = await process.communicate()
        drained.per_s = json.loads(told)


async def work_off(store: Store, how_many: int) -> int:
    """Run that many, the same share of each queue; a tenth of them fails."""
    request = uuid.uuid4().hex
    wants = {f"queue-{n}": how_many // QUEUES for n in range(QUEUES)}
    claimed = await store.claim(wants, worker="w", lease_ms=60_000, request=request)
    await store.settle(
        [Settlement(job.lease, _verdict(n)) for n, job in enumerate(claimed.jobs)], request=f"{request} settles"
    )
    return len(claimed.jobs)


def _verdict(number: int) -> Verdict:
    return Completed(b"1") if number % 10 else Failed(Failure(f"no answer from host {number % 3}"))


async def main(address: str, pace: int) -> None:
    store = store_from(address)
    await store.open()
    end = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    begun, drained = time.monotonic(), 0
    while not end.done():
        drained += await work_off(store, _AT_ONCE)
        if pace:
            await asyncio.sleep(max(0.0, begun + drained / pace - time.monotonic()))
    print(round(drained / (time.monotonic() - begun)))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
