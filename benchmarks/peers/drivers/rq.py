"""RQ: SimpleWorker, which works in its own process instead of forking for each job; results kept as by default."""

from collections.abc import Sequence
from importlib.metadata import version

from redis import Redis
from rq import Queue, SimpleWorker

from benchmarks.peers.driving import Data, ThreadedPeer, main

HANDLER = "benchmarks.peers.driving.handle"
"""By its name: RQ imports it in the worker."""


class OnRq(ThreadedPeer):
    def connect_now(self) -> None:
        self._redis = Redis.from_url(self.where)
        self._queue = Queue("bench", connection=self._redis)

    @property
    def version(self) -> str:
        return version("rq")

    async def connect(self) -> None:
        self.connect_now()

    def add_now(self, data: Data) -> None:
        self._queue.enqueue(HANDLER, data)

    async def add_in_bulk(self, jobs: Sequence[Data]) -> None:
        self._queue.enqueue_many([Queue.prepare_data(HANDLER, (data,)) for data in jobs])

    def work(self) -> None:
        self.connect_now()
        SimpleWorker([self._queue], connection=self._redis).work(logging_level="ERROR")


if __name__ == "__main__":
    main(OnRq)
