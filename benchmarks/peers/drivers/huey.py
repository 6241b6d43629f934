"""huey on Redis or SQLite, results kept.

On SQLite in WAL mode with SQLite's default sync (FULL), and a poll of 10 ms; on Redis its consumer blocks.
"""

from importlib.metadata import version

from huey import RedisHuey, SqliteHuey

from benchmarks.peers.driving import Data, ThreadedPeer, handle, main

POLL_S = 0.01


class Huey(ThreadedPeer):
    def connect_now(self) -> None:
        on_redis = self.where.startswith("redis:")
        self._huey = (
            RedisHuey("bench", url=self.where)
            if on_redis
            else SqliteHuey("bench", filename=self.where, journal_mode="wal")
        )
        self._noop = self._huey.task(name="noop")(handle)

    @property
    def version(self) -> str:
        return version("huey")

    async def connect(self) -> None:
        self.connect_now()

    def add_now(self, data: Data) -> None:
        self._noop(data)

    def work(self) -> None:
        """One worker beside the consumer's thread: each process is one of its worker processes."""
        self.connect_now()
        self._huey.create_consumer(
            workers=1,
            worker_type="thread",
            initial_delay=POLL_S,
            max_delay=POLL_S,
            periodic=False,
            scheduler_interval=60,
        ).run()


if __name__ == "__main__":
    main(Huey)
