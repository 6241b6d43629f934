"""An application on each store, with a clock that moves when told to."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen import Bullpen
from bullpen.testing import ManualClock
from tests.support.redis_harness import RedisHarness
from tests.support.redis_server import redis_server
from tests.support.sqlite_harness import SqliteHarness

__all__ = ["redis_server"]

AnyHarness = SqliteHarness | RedisHarness


@pytest.fixture(params=["sqlite", "redis"])
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AnyHarness]:
    harness: AnyHarness
    if request.param == "sqlite":
        harness = SqliteHarness(tmp_path)
    else:
        harness = RedisHarness(request.getfixturevalue("redis_server").url)
    yield harness
    await harness.check()
    await harness.close()


@pytest.fixture
def clock(harness: AnyHarness) -> ManualClock:
    assert isinstance(harness.clock, ManualClock)
    return harness.clock


@pytest.fixture
async def pen(harness: AnyHarness) -> Bullpen:
    return Bullpen(await harness.open())
