"""A system under test: who it is, how it is set up here, and on what it runs."""

import contextlib
import dataclasses
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

from benchmarks.postgres import running_postgres
from benchmarks.redis.server import HOST, running_redis
from benchmarks.series import Series

StoreName = Literal["Redis", "SQLite", "PostgreSQL"]
Way = Literal["one", "concurrent", "bulk"]

WAYS: dict[Way, str] = {"one": "one at a time", "concurrent": "200 at once", "bulk": "in bulk of 200"}


def slug(name: str) -> str:
    """A system's name for commands and ratios: "BullMQ, Node" is bullmq_node."""
    return re.sub(r"\W+", "_", name.lower()).strip("_")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class System:
    name: str
    store: StoreName
    setting: str
    """Of its drain, in words."""
    concurrency: int = 1
    processes: int = 1
    ways: tuple[Way, ...] = ("one", "concurrent")
    """How jobs can be added."""
    pace: float = 1.0
    """Its share of a round's jobs, so that a slow system takes about as long as a fast one."""
    sampled: bool = False
    """Whether its pickups are compared, so that they need many samples."""
    acknowledges: bool = True
    """Whether a job outlives the death of its worker."""
    scripted: bool = False
    """Whether it speaks to Redis in scripts, so that what clients send and what scripts call can be told apart."""
    file_url: str = "{}"
    """How it is told of a file."""
    aof: bool = False

    def arguments(self, where: str) -> list[str]:
        return ["drive", where, "--concurrency", str(self.concurrency), "--processes", str(self.processes)]

    def enqueue(self, way: Way) -> Series:
        return Series(self.name, f"enqueue, {self.store}", WAYS[way] + self._persistence)

    @property
    def drain(self) -> Series:
        return Series(self.name, f"drain, {self.store}", self.setting + self._persistence)

    @property
    def pickup(self) -> tuple[Series, Series]:
        return self.pickup_at(50), self.pickup_at(99)

    def pickup_at(self, percent: int) -> Series:
        return Series(self.name, f"pickup p{percent}, {self.store}", self.setting + self._persistence, "ms")

    @property
    def _persistence(self) -> str:
        return ", AOF every second" if self.aof else ""


@contextlib.asynccontextmanager
async def place_for(system: System, folder: Path) -> AsyncIterator[str]:
    """Where it keeps its jobs: an empty store, gone after the block."""
    match system.store:
        case "SQLite":
            yield system.file_url.format(folder / "jobs.db")
        case "PostgreSQL":
            async with running_postgres(folder) as url:
                yield url
        case "Redis":
            async with running_redis(folder, aof=system.aof) as port:
                yield f"redis://{HOST}:{port}/0"
