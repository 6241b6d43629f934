"""arq, with a poll of 10 ms instead of its default of 500; results kept for an hour, as by default."""

from importlib.metadata import version
from typing import Any

from arq import Worker, create_pool, func
from arq.connections import RedisSettings

from benchmarks.peers.driving import Data, Peer, handle, main, run

POLL_S = 0.01


class OnArq(Peer):
    @property
    def version(self) -> str:
        return version("arq")

    async def connect(self) -> None:
        self._pool = await create_pool(RedisSettings.from_dsn(self.where))

    async def add(self, data: Data) -> None:
        await self._pool.enqueue_job("noop", data)

    def work(self) -> None:
        async def noop(_ctx: Any, data: Data) -> bool:
            return handle(data)

        async def serve() -> None:
            await Worker(
                [func(noop, name="noop")],
                redis_settings=RedisSettings.from_dsn(self.where),
                max_jobs=self.concurrency,
                poll_delay=POLL_S,
                handle_signals=False,
            ).async_run()

        run(serve())

    async def disconnect(self) -> None:
        await self._pool.aclose()


if __name__ == "__main__":
    main(OnArq)
