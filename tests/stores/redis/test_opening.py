"""Opening: a server is examined once, not with each add that makes sure of an open store."""

import asyncio
import time

import pytest

from bullpen.stores.redis import RedisStore, client
from tests.support.redis_harness import RedisHarness
from tests.support.redis_server import RedisServer


def _examined(server: RedisServer) -> int:
    """How often the server was asked for its time, which only an examination does."""
    with server.client() as client:
        stats = client.info("commandstats")
    assert isinstance(stats, dict)
    return int(stats["cmdstat_time"]["calls"])


async def test_an_open_store_is_not_examined_again(store: RedisStore, redis_server: RedisServer) -> None:
    """`await job_type.add(…)` opens the store each time: an open one must cost no trip."""
    before = _examined(redis_server)
    for _ in range(3):
        await store.open()
    assert _examined(redis_server) == before
    await store.close()
    await store.open()
    assert _examined(redis_server) == before + 1


async def test_a_process_that_was_held_up_does_not_call_the_server_silent(
    harness: RedisHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A paused machine, a stopped process, a blocked loop: the connection is there, and its time is over too."""
    monkeypatch.setattr(client, "_CONNECT_S", 0.05)
    opening = asyncio.create_task(harness.open())
    await asyncio.sleep(0)  # it connects now
    time.sleep(0.1)  # a process that is held up is what is tested
    assert (await opening).place
