"""PgQueuer: batches of 500, one buffered acknowledgement for many; its log keeps what became of each job."""

import json
from collections.abc import Sequence
from datetime import timedelta
from importlib.metadata import version

import asyncpg
from pgqueuer import AsyncpgDriver, AsyncpgPoolDriver, Job, PgQueuer, Queries

from benchmarks.peers.driving import Data, Peer, handle, main, run

ENTRYPOINT = "noop"
POOL = 10


class OnPgQueuer(Peer):
    @property
    def version(self) -> str:
        return version("pgqueuer")

    async def connect(self) -> None:
        self._connection = await asyncpg.connect(self.where)
        self._queries = Queries(AsyncpgDriver(self._connection))
        await self._queries.install()
        self._pool = await asyncpg.create_pool(self.where, min_size=POOL, max_size=POOL)
        self._pooled = Queries(AsyncpgPoolDriver(self._pool))

    async def add(self, data: Data) -> None:
        await self._queries.enqueue(ENTRYPOINT, json.dumps(data).encode())

    async def add_while_others_do(self, data: Data) -> None:
        # One connection answers one question at a time: those at the same time need several.
        await self._pooled.enqueue(ENTRYPOINT, json.dumps(data).encode())

    async def add_in_bulk(self, jobs: Sequence[Data]) -> None:
        payloads = [json.dumps(data).encode() for data in jobs]
        await self._queries.enqueue([ENTRYPOINT] * len(jobs), payloads, [0] * len(jobs))

    def work(self) -> None:
        async def noop(job: Job) -> None:
            handle(json.loads(job.payload or b"{}"))

        async def serve() -> None:
            queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(self.where)))
            queue.entrypoint(ENTRYPOINT)(noop)
            await queue.run(dequeue_timeout=timedelta(seconds=30), batch_size=self.concurrency)

        run(serve())

    async def disconnect(self) -> None:
        await self._connection.close()
        await self._pool.close()


if __name__ == "__main__":
    main(OnPgQueuer)
