"""bullmq of PyPI: everything as it comes, results kept."""

import asyncio
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from bullmq import Queue, Worker

from benchmarks.peers.driving import Data, Peer, handle, main, run

NAME = "bench"
JOB = "noop"


class BullmqOfPypi(Peer):
    @property
    def version(self) -> str:
        return version("bullmq")

    async def connect(self) -> None:
        self._queue = Queue(NAME, {"connection": self.where})

    async def add(self, data: Data) -> None:
        await self._queue.add(JOB, data)

    async def add_in_bulk(self, jobs: Sequence[Data]) -> None:
        await self._queue.addBulk([{"name": JOB, "data": data} for data in jobs])

    def work(self) -> None:
        async def noop(job: Any, _token: str) -> bool:
            return handle(job.data)

        async def serve() -> None:
            Worker(NAME, noop, {"connection": self.where, "concurrency": self.concurrency})
            await asyncio.Event().wait()

        run(serve())

    async def disconnect(self) -> None:
        await self._queue.close()


if __name__ == "__main__":
    main(BullmqOfPypi)
