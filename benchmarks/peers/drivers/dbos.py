"""DBOS on SQLite or PostgreSQL: a queue of workflows of one step, polled every 50 ms instead of each second."""

import threading
from collections.abc import Sequence
from importlib.metadata import version

import sqlalchemy
from dbos import DBOS, DBOSClient, run_dbos_database_migrations

from benchmarks.peers.driving import Data, ThreadedPeer, handle, main

QUEUE = "bench"
POLL_S = 0.05
OPTIONS = {"queue_name": QUEUE, "workflow_name": "noop", "app_version": "bench"}


class OnDbos(ThreadedPeer):
    @property
    def version(self) -> str:
        return version("dbos")

    async def connect(self) -> None:
        run_dbos_database_migrations(self.where)
        self._engine = sqlalchemy.create_engine(self.where)
        self._client = DBOSClient(system_database_url=self.where)

    def add_now(self, data: Data) -> None:
        self._client.enqueue(OPTIONS, data)

    async def add_in_bulk(self, jobs: Sequence[Data]) -> None:
        with self._engine.begin() as transaction:
            for data in jobs:
                self._client.enqueue_in_transaction(transaction, OPTIONS, data)

    def work(self) -> None:
        async def step(data: Data) -> bool:
            return handle(data)

        step = DBOS.step(name="step")(step)

        async def noop(data: Data) -> bool:
            return await step(data)

        DBOS(
            config={
                "name": "bench",
                "system_database_url": self.where,
                "log_level": "ERROR",
                "application_version": "bench",
            }
        )
        DBOS.workflow(name="noop")(noop)
        DBOS.launch()
        DBOS.register_queue(QUEUE, worker_concurrency=self.concurrency, polling_interval_sec=POLL_S)
        threading.Event().wait()

    async def disconnect(self) -> None:
        self._client.destroy()
        self._engine.dispose()


if __name__ == "__main__":
    main(OnDbos)
