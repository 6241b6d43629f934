"""Drives Bullpen on Redis as the peers are driven, with everything on: leases, retries, events, results."""

from collections.abc import Sequence
from importlib.metadata import version

from benchmarks.peers.driving import Data, Peer, handle, main, run
from benchmarks.redis.working import watched
from benchmarks.working import Stopwatch
from benchmarks.workload import JOB, QUEUE, noop
from bullpen import Context, JobOptions, Queue, Worker, WorkerOptions, keep
from bullpen.stores.redis import RedisStore
from bullpen.worker.runner import calm_collector


class BullpenOnRedis(Peer):
    @property
    def version(self) -> str:
        return version("bullpen")

    async def connect(self) -> None:
        self._store = RedisStore(self.where)
        await self._store.open()
        self._queue = Queue(self._store, QUEUE, defaults=None if self.defaults else JobOptions(keep_completed=keep()))

    async def add(self, data: Data) -> None:
        await self._queue.add(JOB, data)

    async def add_in_bulk(self, jobs: Sequence[Data]) -> None:
        await self._queue.add_bulk([self._queue.prepare(JOB, data) for data in jobs])

    async def drain(self, jobs: int) -> float:
        """Seconds from the first claim to the last settlement: a little more than is asked of the others."""
        watch = Stopwatch(until=jobs, on_ready=lambda: None)
        store = watched(RedisStore(self.where), watch)
        worker = Worker(store, {QUEUE: noop}, WorkerOptions(concurrency=self.concurrency))
        watch.on_end = worker.stop
        calm_collector()  # as `bullpen worker` does
        await worker.run()
        return (watch.last_ns - watch.first_ns) / 1e9

    def work(self) -> None:
        async def catch(ctx: Context) -> bool:
            return handle(ctx.data)

        async def serve() -> None:
            await Worker(RedisStore(self.where), {QUEUE: catch}, WorkerOptions(concurrency=self.concurrency)).run()

        run(serve())

    async def disconnect(self) -> None:
        await self._store.close()


if __name__ == "__main__":
    main(BullpenOnRedis)
