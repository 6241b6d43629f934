"""Procrastinate: woken by LISTEN and NOTIFY; finished jobs stay in its table. It keeps no results."""

from collections.abc import Sequence
from importlib.metadata import version

from procrastinate import App, PsycopgConnector

from benchmarks.peers.driving import Data, Peer, handle, main, run


class OnProcrastinate(Peer):
    def _build(self) -> None:
        self._app = App(connector=PsycopgConnector(conninfo=self.where))

        async def noop(**data: object) -> None:
            handle(data)

        self._noop = self._app.task(name="noop")(noop)

    @property
    def version(self) -> str:
        return version("procrastinate")

    async def connect(self) -> None:
        self._build()
        await self._app.open_async()
        await self._app.schema_manager.apply_schema_async()

    async def add(self, data: Data) -> None:
        await self._noop.defer_async(**data)

    async def add_in_bulk(self, jobs: Sequence[Data]) -> None:
        await self._noop.batch_defer_async(*jobs)

    def work(self) -> None:
        async def serve() -> None:
            self._build()
            async with self._app.open_async():
                await self._app.run_worker_async(concurrency=self.concurrency, install_signal_handlers=False)

        run(serve())

    async def disconnect(self) -> None:
        await self._app.close_async()


if __name__ == "__main__":
    main(OnProcrastinate)
