"""The server has no memory left: adds are refused by their code, workers make room, adds go on."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen import StoreFull
from bullpen.stores.redis import RedisStore
from tests.chaos.redis_actors import QUEUE, Part
from tests.chaos.redis_cast import keep_all_events, on_stage, repeat, settle_up
from tests.support.redis_server import RedisServer, running_redis
from tests.worker.waiting import until

pytestmark = [pytest.mark.xdist_group("redis-chaos"), pytest.mark.timeout(300)]

_ROOM_BYTES = 2_000_000
_PAYLOAD_BYTES = 20_000


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with running_redis("--maxmemory-policy", "noeviction") as server:
        keep_all_events(server, "bull")
        yield server


def _leave_room(server: RedisServer, room: int | None) -> None:
    """So many bytes more than are used now; None is without limit."""
    with server.client() as client:
        used = int(client.info("memory")["used_memory"])
        client.config_set("maxmemory", 0 if room is None else used + room)


async def fill_ups(server: RedisServer, folder: Path, times: int, soak_s: float | None = None) -> str:
    """Without a worker until nothing fits in; then with one, who drains while adds are refused."""
    # Nothing is kept of a job that ended: so work makes room.
    part = Part(role="", url=server.url, folder=str(folder), payload_bytes=_PAYLOAD_BYTES, pace_s=0, kept=0)
    async with on_stage(part, workers=1) as cast:

        async def fill_up() -> None:
            await cast.leave("worker")
            _leave_room(server, _ROOM_BYTES)
            await cast.is_refused(StoreFull.code, 20)
            await cast.enter("worker")  # it starts on a full server
            # By the room that its work made, and by nothing else, adds go on.
            await cast.goes_on()
            # The log of events grows without end here, and with it what is used.
            _leave_room(server, None)

        made = await repeat(fill_up, times, soak_s)
        account = await settle_up(cast, lambda: server)
    assert account.lost == set()
    assert account.refused.keys() == {StoreFull.code}
    assert account.story.added == set(account.acknowledged), "what was refused changed nothing"
    return f"full {made} times: {account}"


async def test_a_full_server_is_drained_and_goes_on(server: RedisServer, tmp_path: Path) -> None:
    print(await fill_ups(server, tmp_path, 2))


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_ten_minutes_of_full_memory(server: RedisServer, tmp_path: Path) -> None:
    print(await fill_ups(server, tmp_path, 0, float(os.environ["SOAK_SECONDS"])))


async def test_a_sleeping_worker_ends_at_once_on_a_full_server(server: RedisServer) -> None:
    """It would give back the marker that it may have been sent, and there is no room for one."""
    store = RedisStore(server.url)
    await store.open()
    asleep = asyncio.create_task(store.wait([QUEUE], timeout_ms=20_000))
    await until(lambda: asyncio.to_thread(_sleepers, server), lambda sleepers: sleepers > 0)
    _leave_room(server, -1_000_000)
    asleep.cancel()
    await asyncio.wait([asleep])
    assert asleep.cancelled()
    await store.close()


def _sleepers(server: RedisServer) -> int:
    with server.client() as client:
        return int(client.info("clients")["blocked_clients"])
