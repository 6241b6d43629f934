"""Where a test keeps its jobs, on each store in turn.

A `conftest.py` imports `place` and `redis_server`, and makes its own fixtures of them; all tests
that use these run on both stores. One that is about SQLite's file says `@only_on_sqlite`.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
import redis

from bullpen import JobRef, SqliteStore
from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.stores.base import Store
from bullpen.stores.redis import RedisStore
from tests.support.redis_harness import RedisHarness
from tests.support.redis_server import redis_server
from tests.support.sqlite_harness import check_file

__all__ = ["Place", "only_on_redis", "only_on_sqlite", "place", "redis_server"]


class Place(Protocol):
    """A place of the test's own; nothing is there yet."""

    @property
    def address(self) -> str:
        """For `BULLPEN_STORE`, `--store` and other processes."""

    def store(self, *, clock: Clock = SYSTEM_CLOCK) -> Store:
        """A store there, not yet opened."""

    def data_at_rest(self, ref: JobRef) -> bytes:
        """A job's data as anyone finds it there who has no Bullpen."""

    async def check(self) -> None:
        """What is kept there is sound."""


class FilePlace:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "queue.db"
        self.address = f"sqlite:{self.path}"

    def store(self, *, clock: Clock = SYSTEM_CLOCK) -> SqliteStore:
        return SqliteStore(self.path, clock=clock)

    def data_at_rest(self, ref: JobRef) -> bytes:
        query = "SELECT body.data FROM body JOIN job USING (key) JOIN queue ON queue.id = job.queue"
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            (found,) = db.execute(
                f"{query} WHERE queue.name = ? AND coalesce(own_id, CAST(key AS TEXT)) = ?", (ref.queue, ref.id)
            ).fetchone()
        return bytes(found)

    async def check(self) -> None:
        check_file(self.path)


class ServerPlace:
    """A prefix of the session's server."""

    def __init__(self, url: str) -> None:
        self._harness = RedisHarness(url)
        self.address = f"{url}?prefix={self._harness.prefix}"

    def store(self, *, clock: Clock = SYSTEM_CLOCK) -> RedisStore:
        return RedisStore(self.address, clock=clock)

    def data_at_rest(self, ref: JobRef) -> bytes:
        with contextlib.closing(redis.Redis.from_url(self._harness.url)) as server:
            found = server.hget(f"{self._harness.prefix}:{ref.queue}:{ref.id}", "data")
        assert isinstance(found, bytes)
        return found

    async def check(self) -> None:
        await self._harness.check()

    def clear(self) -> None:
        self._harness.clear()


@pytest.fixture(params=["sqlite", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        yield FilePlace(tmp_path)
    else:
        server = ServerPlace(request.getfixturevalue("redis_server").url)
        yield server
        server.clear()


only_on_sqlite = pytest.mark.parametrize("place", ["sqlite"], indirect=True)
only_on_redis = pytest.mark.parametrize("place", ["redis"], indirect=True)
