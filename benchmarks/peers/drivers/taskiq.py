"""taskiq on a Redis stream, the broker of its documentation that acknowledges; results kept in Redis."""

from importlib.metadata import version

from taskiq.api import run_receiver_task
from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

from benchmarks.peers.driving import Data, Peer, handle, main, run

PREFETCH = 500


class OnTaskiq(Peer):
    def _build(self) -> None:
        # "0": a worker that starts after the producer gets what was added before.
        self._broker = RedisStreamBroker(self.where, consumer_id="0", xread_count=PREFETCH).with_result_backend(
            RedisAsyncResultBackend(self.where)
        )

        async def noop(data: Data) -> bool:
            return handle(data)

        self._noop = self._broker.register_task(noop, "noop")

    @property
    def version(self) -> str:
        return version("taskiq")

    async def connect(self) -> None:
        self._build()
        await self._broker.startup()

    async def add(self, data: Data) -> None:
        await self._noop.kiq(data)

    def work(self) -> None:
        async def serve() -> None:
            self._build()
            self._broker.is_worker_process = True
            await run_receiver_task(
                self._broker, max_async_tasks=self.concurrency, max_prefetch=PREFETCH, run_startup=True
            )

        run(serve())

    async def disconnect(self) -> None:
        await self._broker.shutdown()


if __name__ == "__main__":
    main(OnTaskiq)
