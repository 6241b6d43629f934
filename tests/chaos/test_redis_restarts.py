"""The server ends and comes back while jobs are added and run: what it acknowledged is still there."""

import asyncio
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen import Queue
from bullpen.stores.redis import RedisStore
from tests.chaos.redis_cast import a_part, keep_all_events, on_stage, repeat, settle_up
from tests.support.redis_server import RedisServer, running_redis

pytestmark = [pytest.mark.xdist_group("redis-chaos"), pytest.mark.timeout(300)]


@pytest.fixture
def careful() -> Iterator[RedisServer]:
    """Answers once the write is on the disk."""
    with running_redis("--appendonly", "yes", "--appendfsync", "always") as server:
        keep_all_events(server, "bull")
        yield server


async def restarts(server: RedisServer, folder: Path, times: int, soak_s: float | None = None) -> str:
    """Killed and stopped by turns; after each restart producers and workers go on by themselves."""
    ways = itertools.cycle([server.kill, server.stop])
    async with on_stage(a_part(server.url, folder, soak_s)) as cast:

        async def restart() -> None:
            await asyncio.to_thread(next(ways))
            await asyncio.to_thread(server.start_again)
            await cast.goes_on()

        made = await repeat(restart, times, soak_s)
        account = await settle_up(cast, lambda: server)
    assert account.lost == set()
    return f"{made} restarts: {account}"


async def test_restarts_lose_nothing_that_was_acknowledged(careful: RedisServer, tmp_path: Path) -> None:
    print(await restarts(careful, tmp_path, 4))


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_ten_minutes_of_restarts(careful: RedisServer, tmp_path: Path) -> None:
    print(await restarts(careful, tmp_path, 0, float(os.environ["SOAK_SECONDS"])))


# ── what else the server's settings mean ─────────────────────────────────────────────────


async def _jobs_after_restart(server: RedisServer, how: str) -> int:
    store = RedisStore(server.url)
    await store.open()
    queue = Queue(store, "mail")
    await queue.add_bulk([queue.prepare("welcome") for _ in range(100)])
    await store.close()
    getattr(server, how)()
    server.start_again()
    await store.open()
    found = [job.id for job in (await queue.jobs("waiting", limit=1_000)).jobs] if await store.queues() else []
    await store.close()
    return len(found)


async def test_a_stop_in_good_order_loses_nothing_with_either_log() -> None:
    """`everysec` writes what is left before the server ends."""
    for fsync in ("everysec", "always"):
        with running_redis("--appendonly", "yes", "--appendfsync", fsync) as server:
            assert await _jobs_after_restart(server, "stop") == 100


async def test_a_stop_in_good_order_loses_nothing_with_snapshots() -> None:
    with running_redis("--save", "3600 1000000") as server:
        assert await _jobs_after_restart(server, "stop") == 100


async def test_a_kill_loses_what_no_snapshot_has() -> None:
    with running_redis("--save", "3600 1000000") as server:
        assert await _jobs_after_restart(server, "kill") == 0


async def test_without_log_and_snapshots_a_restart_loses_all() -> None:
    """And says nothing of it: an empty server is a server."""
    with running_redis() as server:
        assert await _jobs_after_restart(server, "stop") == 0
