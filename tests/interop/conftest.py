"""Bullpen and the real BullMQ on one queue."""

from collections.abc import AsyncIterator

import pytest

from bullpen.clock import SYSTEM_CLOCK
from bullpen.stores.redis import RedisStore
from tests.interop.node import Node, running_node
from tests.support.redis_harness import RedisHarness
from tests.support.redis_server import RedisServer, redis_server

__all__ = ["redis_server"]


@pytest.fixture
async def harness(redis_server: RedisServer) -> AsyncIterator[RedisHarness]:
    # Node goes by the system's time, so we do too.
    harness = RedisHarness(redis_server.url, clock=SYSTEM_CLOCK)
    yield harness
    await harness.check()
    await harness.close()


@pytest.fixture
async def store(harness: RedisHarness) -> RedisStore:
    return await harness.open()


@pytest.fixture
async def node(redis_server: RedisServer, harness: RedisHarness) -> AsyncIterator[Node]:
    async with running_node(redis_server.port, harness.prefix) as node:
        yield node
