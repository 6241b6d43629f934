"""Producers and workers on one server, one of them killed every 200 ms: nothing lost, nothing settled twice."""

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen import Queue
from bullpen.stores.redis import RedisStore
from tests.chaos.redis_actors import QUEUE
from tests.chaos.redis_cast import (
    PATIENCE_S,
    a_part,
    check_layout,
    draw_up,
    keep_all_events,
    on_stage,
    repeat,
    unfinished,
)
from tests.support.redis_server import RedisServer, running_redis
from tests.worker.waiting import until

pytestmark = [pytest.mark.xdist_group("redis-chaos"), pytest.mark.timeout(300)]

_KILL_EVERY_S = 0.2


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with running_redis() as server:
        keep_all_events(server, "bull")
        yield server


async def kills(server: RedisServer, folder: Path, times: int, soak_s: float | None = None) -> str:
    store = RedisStore(server.url)
    await store.open()
    async with on_stage(a_part(server.url, folder, soak_s), workers=4) as cast:

        async def kill() -> None:
            await asyncio.sleep(_KILL_EVERY_S)  # the beat of the kills
            await cast.kill_one(random.choice(["producer", "worker", "worker"]))

        made = await repeat(kill, times, soak_s)
        cast.kill_all("producer")
        await until(lambda: unfinished(Queue(store, QUEUE)), lambda left: left == 0, limit_s=PATIENCE_S)
        await cast.end()
        account = await draw_up(cast, store)
    await store.close()
    await check_layout(server, "bull")
    assert account.lost == set()
    return f"{made} kills: {account}"


async def test_kills_on_redis_lose_nothing(server: RedisServer, tmp_path: Path) -> None:
    """Every add that returned ended, once, by its own doing; the layout is sound."""
    print(await kills(server, tmp_path, 25))


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_ten_minutes_of_kills_on_redis(server: RedisServer, tmp_path: Path) -> None:
    print(await kills(server, tmp_path, 0, float(os.environ["SOAK_SECONDS"])))
