"""The server stays and disturbs: it forgets its scripts, and it hangs up, again and again."""

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.chaos.redis_cast import a_part, keep_all_events, on_stage, repeat, settle_up
from tests.support.redis_server import RedisServer, running_redis

pytestmark = [pytest.mark.xdist_group("redis-chaos"), pytest.mark.timeout(300)]

_SPELL = 20
"""So many disturbances in a row, before it is seen whether work goes on."""
_FLUSH_EVERY_S = 0.02
_KILL_EVERY_S = 0.1


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with running_redis() as server:
        keep_all_events(server, "bull")
        yield server


# ── scripts ──────────────────────────────────────────────────────────────────────────────


async def flushes(server: RedisServer, folder: Path, times: int, soak_s: float | None = None) -> str:
    async with on_stage(a_part(server.url, folder, soak_s)) as cast:

        async def flush() -> None:
            with server.client() as client:
                for _ in range(_SPELL):
                    client.script_flush()
                    await asyncio.sleep(_FLUSH_EVERY_S)  # the beat of the flushes
            await cast.goes_on()

        made = await repeat(flush, times, soak_s)
        account = await settle_up(cast, lambda: server)
    assert account.lost == set()
    assert account.refused == {}, "a script that is not known is sent: nobody is to notice"
    assert account.story.stalls == 0
    return f"{made * _SPELL} flushes: {account}"


async def test_scripts_that_are_forgotten_are_not_missed(server: RedisServer, tmp_path: Path) -> None:
    print(await flushes(server, tmp_path, 5))


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_ten_minutes_of_flushes(server: RedisServer, tmp_path: Path) -> None:
    print(await flushes(server, tmp_path, 0, float(os.environ["SOAK_SECONDS"])))


# ── connections ──────────────────────────────────────────────────────────────────────────


def hang_up(client: "redis.Redis") -> int:
    """On all, on some, on sleepers only, or on subscribers; how many."""
    match random.randrange(4):
        case 0:
            return _killed(client, "TYPE", "normal")
        case 1:
            return _killed(client, "TYPE", "pubsub")
        case 2:
            others = [one for one in _others(client) if one["cmd"] in ("bzpopmin", "blpop", "xread")]
        case _:
            others = [one for one in _others(client) if random.random() < 0.5]
    return sum(_killed(client, "ID", one["id"]) for one in others)


def _others(client: "redis.Redis") -> list[dict[str, Any]]:
    own = client.client_id()
    found: list[dict[str, Any]] = client.client_list()
    return [one for one in found if int(one["id"]) != own]


def _killed(client: "redis.Redis", *whom: str) -> int:
    return int(client.execute_command("CLIENT", "KILL", *whom))  # type: ignore[no-untyped-call] # redis-py's own


async def hang_ups(server: RedisServer, folder: Path, times: int, soak_s: float | None = None) -> str:
    killed = 0
    async with on_stage(a_part(server.url, folder, soak_s)) as cast:

        async def hang_up_often() -> None:
            nonlocal killed
            with server.client() as client:
                for _ in range(_SPELL):
                    killed += hang_up(client)
                    await asyncio.sleep(_KILL_EVERY_S)  # the beat of the kills
            await cast.goes_on()

        await repeat(hang_up_often, times, soak_s)
        account = await settle_up(cast, lambda: server)
    assert account.lost == set()
    assert killed > 0
    return f"{killed} connections killed: {account}"


async def test_connections_that_are_killed_lose_nothing(server: RedisServer, tmp_path: Path) -> None:
    print(await hang_ups(server, tmp_path, 3))


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_ten_minutes_of_killed_connections(server: RedisServer, tmp_path: Path) -> None:
    print(await hang_ups(server, tmp_path, 0, float(os.environ["SOAK_SECONDS"])))
