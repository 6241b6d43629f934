"""streaQ: results kept for five minutes, as by default."""

from collections.abc import Sequence
from importlib.metadata import version

from streaq import Worker

from benchmarks.peers.driving import Data, Peer, handle, main, run


class OnStreaq(Peer):
    def _build(self) -> None:
        self._worker = Worker(redis_url=self.where, concurrency=self.concurrency, handle_signals=False)

        async def noop(data: Data) -> bool:
            return handle(data)

        self._noop = self._worker.task(noop)

    @property
    def version(self) -> str:
        return version("streaq")

    async def connect(self) -> None:
        self._build()
        await self._worker.__aenter__()  # it stays open until disconnect

    async def add(self, data: Data) -> None:
        await self._noop.enqueue(data)

    async def add_in_bulk(self, jobs: Sequence[Data]) -> None:
        await self._worker.enqueue_many([self._noop.enqueue(data) for data in jobs])

    def work(self) -> None:
        async def serve() -> None:
            self._build()
            await self._worker.run_async()

        run(serve())

    async def disconnect(self) -> None:
        await self._worker.__aexit__(None, None, None)


if __name__ == "__main__":
    main(OnStreaq)
