"""Connections that end or go silent, and the store that comes back."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

import bullpen.stores.redis.client
import bullpen.stores.redis.eventlog
from bullpen.errors import StoreReadOnly, StoreUnavailable
from bullpen.job.spec import NewJob
from bullpen.stores.redis import RedisStore
from tests.support.proxy import SilentProxy, silent_proxy
from tests.support.redis_harness import fresh_prefix
from tests.support.redis_server import RedisServer, running_redis, wait_until

JOB = [NewJob("mail", "welcome")]


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    """A server that a test may spoil, and that keeps its jobs over a restart."""
    with running_redis("--appendonly", "yes", "--appendfsync", "always") as server:
        yield server


@pytest.fixture
async def proxy(redis_server: RedisServer) -> AsyncIterator[SilentProxy]:
    async with silent_proxy(redis_server.port) as proxy:
        yield proxy


@pytest.fixture
async def remote(proxy: SilentProxy) -> AsyncIterator[RedisStore]:
    store = RedisStore(proxy.url, prefix=fresh_prefix())
    await store.open()
    yield store
    await store.close()


def _blocked(server: RedisServer) -> int:
    with server.client() as client:
        return int(client.info("clients")["blocked_clients"])


async def test_a_server_that_was_restarted(own_server: RedisServer) -> None:
    """Its scripts are forgotten, its connections cut, its port closed for a while."""
    store = RedisStore(own_server.url)
    await store.open()
    await store.add(JOB, request="r1")
    await asyncio.to_thread(own_server.kill)
    with pytest.raises(StoreUnavailable):
        await store.add(JOB, request="r2")
    await asyncio.to_thread(own_server.start_again)
    await store.add(JOB, request="r2")
    assert (await store.counts("mail")).waiting == 2
    await store.close()


async def test_killed_connections_are_replaced(own_server: RedisServer) -> None:
    store = RedisStore(own_server.url)
    await store.open()
    asleep = asyncio.create_task(store.wait(["mail"], timeout_ms=20_000))
    await asyncio.to_thread(wait_until, lambda: _blocked(own_server) == 1, "the sleeper is asleep")
    with own_server.client() as client:
        client.client_kill_filter(_type="normal", skipme=True)
    with pytest.raises(StoreUnavailable):
        await asleep
    await store.add(JOB, request="r1")
    assert await store.wait(["mail"], timeout_ms=20_000)
    await store.close()


async def test_connections_that_were_cut_are_replaced(remote: RedisStore, proxy: SilentProxy) -> None:
    await remote.add(JOB, request="r1")
    await proxy.cut()
    while True:
        try:
            await remote.add(JOB, request="r2")
            break
        except StoreUnavailable:
            pass  # the cut may be seen only when the connection is used
    assert (await remote.counts("mail")).waiting == 2


async def test_a_blocking_read_on_a_dead_connection_ends(
    remote: RedisStore, proxy: SilentProxy, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither side knows that the network between them is gone."""
    monkeypatch.setattr(bullpen.stores.redis.eventlog, "LONGEST_BLOCK_MS", 200)
    await remote.add(JOB, request="r1")
    start = (await remote.events("mail", after=None, limit=1, timeout_ms=0)).cursor
    reading = asyncio.create_task(remote.events("mail", after=start, limit=1, timeout_ms=100_000))
    await asyncio.to_thread(wait_until, lambda: _blocked(redis_server) > 0, "the reader is blocked")
    proxy.silence()
    with pytest.raises(StoreUnavailable, match="blocking read"):
        await reading
    await remote.add(JOB, request="r2")
    assert (await remote.events("mail", after=start, limit=1, timeout_ms=1)).events


async def test_a_question_on_a_dead_connection_ends(
    remote: RedisStore, proxy: SilentProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All connections of the pool are as dead as the one that was noticed, and none is tried again."""
    monkeypatch.setattr(bullpen.stores.redis.client, "ANSWER_S", 0.5)
    remote._connection.client.drop()
    await asyncio.gather(*(remote.add(JOB, request=f"r{n}") for n in range(5)))
    proxy.silence()
    with pytest.raises(StoreUnavailable):
        await remote.add(JOB, request="again")
    await remote.add(JOB, request="again")
    assert (await remote.counts("mail")).waiting == 6


async def test_a_server_that_was_demoted_is_connected_to_anew(own_server: RedisServer) -> None:
    """Behind its name or proxy there may be a new master by now."""
    store = RedisStore(own_server.url)
    await store.open()
    await store.add(JOB, request="r1")
    with own_server.client() as client:
        client.replicaof("127.0.0.1", "1")
        with pytest.raises(StoreReadOnly):
            await store.add(JOB, request="r2")
        old = {one["id"] for one in client.client_list(_type="normal")}
        client.replicaof("NO", "ONE")
        await store.add(JOB, request="r2")
        mine = {one["id"] for one in client.client_list(_type="normal")} - old
    assert mine
    await store.close()


async def test_a_silent_server_does_not_hold_up_closing(remote: RedisStore, proxy: SilentProxy) -> None:
    await remote.add(JOB, request="r1")
    proxy.silence()
    await remote.close()


async def test_what_runs_while_the_link_is_left_ends_well(remote: RedisStore) -> None:
    """One call found the connection broken; the answers of the others are still good."""
    await remote.add(JOB, request="r0")
    asleep = asyncio.create_task(remote.wait(["other"], timeout_ms=50))
    adds = [asyncio.create_task(remote.add(JOB, request=f"r{n}")) for n in range(1, 4)]
    await asyncio.sleep(0)
    remote._connection.client.drop()
    await asyncio.gather(*adds)
    assert not await asleep
    assert (await remote.counts("mail")).waiting == 4
