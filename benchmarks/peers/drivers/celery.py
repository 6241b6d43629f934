"""Celery on Redis: the solo pool, acknowledged after the work, results kept in Redis as well."""

from importlib.metadata import version

from celery import Celery

from benchmarks.peers.driving import Data, ThreadedPeer, handle, main

PREFETCH = 50
"""Its documentation advises a large one for many short tasks."""


class OnCelery(ThreadedPeer):
    def connect_now(self) -> None:
        self._app = Celery("bench", broker=self.where, backend=self.where)
        self._app.conf.update(
            task_acks_late=True,
            worker_prefetch_multiplier=PREFETCH,
            task_serializer="json",
            broker_connection_retry_on_startup=True,
            worker_hijack_root_logger=False,
        )
        self._noop = self._app.task(name="noop")(handle)

    @property
    def version(self) -> str:
        return version("celery")

    async def connect(self) -> None:
        self.connect_now()

    def add_now(self, data: Data) -> None:
        self._noop.delay(data)

    def work(self) -> None:
        self.connect_now()
        self._app.worker_main(
            ["worker", "--pool", "solo", "--loglevel", "ERROR", "--without-gossip", "--without-mingle"]
        )


if __name__ == "__main__":
    main(OnCelery)
