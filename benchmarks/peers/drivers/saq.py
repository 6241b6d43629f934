"""SAQ on Redis; results kept for ten minutes, as by default."""

from importlib.metadata import version
from typing import Any

from saq import Queue, Worker

from benchmarks.peers.driving import Data, Peer, handle, main, run


class OnSaq(Peer):
    @property
    def version(self) -> str:
        return version("saq")

    async def connect(self) -> None:
        self._queue = Queue.from_url(self.where)
        await self._queue.connect()

    async def add(self, data: Data) -> None:
        await self._queue.enqueue("noop", data=data)

    def work(self) -> None:
        async def noop(_ctx: Any, *, data: Data) -> bool:
            return handle(data)

        async def serve() -> None:
            queue = Queue.from_url(self.where)
            await queue.connect()
            await Worker(queue, [("noop", noop)], concurrency=self.concurrency).start()

        run(serve())

    async def disconnect(self) -> None:
        await self._queue.disconnect()


if __name__ == "__main__":
    main(OnSaq)
