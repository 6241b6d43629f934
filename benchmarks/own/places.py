"""Where a trial's jobs are: in a fresh file, or on a fresh Redis server of our own."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.redis.server import HOST, running_redis
from bullpen.stores.sqlite.connection import Sync


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    name: str
    """As the settings of its figures begin."""
    sync: Sync | None
    """None: Redis."""

    @property
    def is_redis(self) -> bool:
        return self.sync is None

    @contextlib.asynccontextmanager
    async def opened(self, folder: Path) -> AsyncIterator["Spot"]:
        if self.sync is not None:
            yield Spot(f"sqlite:{folder / 'queue.db'}?sync={self.sync}", path=folder / "queue.db")
            return
        async with running_redis(folder) as port:
            yield Spot(f"redis://{HOST}:{port}/0", port=port)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One place while a trial has it; `path` or `port` says what is behind the address."""

    address: str = dataclasses.field(kw_only=False)
    path: Path | None = None
    port: int | None = None


FULL = Place("SQLite full", "full")
NORMAL = Place("SQLite normal", "normal")
REDIS = Place("Redis", None)
ALL = (FULL, NORMAL, REDIS)
