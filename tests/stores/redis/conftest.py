"""What only the Redis store has."""

from collections.abc import AsyncIterator

import pytest

from bullpen.stores.redis import RedisStore
from tests.support.redis_harness import RedisHarness
from tests.support.redis_server import RedisServer, redis_server

__all__ = ["redis_server"]


@pytest.fixture
async def harness(redis_server: RedisServer) -> AsyncIterator[RedisHarness]:
    harness = RedisHarness(redis_server.url)
    yield harness
    await harness.check()
    await harness.close()


@pytest.fixture
async def store(harness: RedisHarness) -> RedisStore:
    return await harness.open()
