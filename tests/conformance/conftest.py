"""Every promise of the contract, on every store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen.stores.base import Store
from bullpen.testing.harness import Harness
from tests.support.redis_harness import RedisHarness
from tests.support.redis_server import redis_server
from tests.support.sqlite_harness import SqliteHarness

__all__ = ["redis_server"]

pytest.register_assert_rewrite("bullpen.testing.conformance")


@pytest.fixture(params=["sqlite", "redis"])
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Harness]:
    harness: SqliteHarness | RedisHarness
    if request.param == "sqlite":
        harness = SqliteHarness(tmp_path)
    else:
        harness = RedisHarness(request.getfixturevalue("redis_server").url)
    yield harness
    await harness.check()
    await harness.close()


@pytest.fixture
async def store(harness: Harness) -> Store:
    return await harness.open()
