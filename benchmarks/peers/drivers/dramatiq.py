"""Dramatiq on Redis: processes of 8 threads; the results middleware keeps what the actor returns."""

import time
from importlib.metadata import version

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from benchmarks.peers.driving import Data, ThreadedPeer, handle, main


class OnDramatiq(ThreadedPeer):
    def connect_now(self) -> None:
        self._broker = RedisBroker(url=self.where)
        self._broker.add_middleware(Results(backend=RedisBackend(url=self.where)))
        dramatiq.set_broker(self._broker)
        self._noop = dramatiq.actor(handle, actor_name="noop", store_results=True)

    @property
    def version(self) -> str:
        return version("dramatiq")

    async def connect(self) -> None:
        self.connect_now()

    def add_now(self, data: Data) -> None:
        self._noop.send(data)

    def work(self) -> None:
        self.connect_now()
        dramatiq.Worker(self._broker, worker_threads=self.concurrency).start()
        while True:
            time.sleep(60)


if __name__ == "__main__":
    main(OnDramatiq)
