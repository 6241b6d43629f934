"""A worker consumes again after whatever happened between it and the server: the failure most reported of others."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest

import bullpen.stores.redis.client
import bullpen.stores.redis.waiting
from bullpen import Context, Ended, Queue, Worker, WorkerOptions
from bullpen.errors import StoreUnavailable
from bullpen.stores.redis import RedisStore
from tests.support.proxy import SilentProxy, silent_proxy
from tests.support.redis_cluster import running_cluster, slot_of
from tests.support.redis_sentinel import running_sentinels
from tests.support.redis_server import RedisServer, running_redis

_LIMIT_S = 60


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead connections are noticed in half a second: the same code, waited for less."""
    monkeypatch.setattr(bullpen.stores.redis.client, "ANSWER_S", 0.5)
    monkeypatch.setattr(bullpen.stores.redis.connection, "_BLOCK_GRACE_S", 0.2)
    monkeypatch.setattr(bullpen.stores.redis.waiting, "LONGEST_BLOCK_MS", 200)


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    """Keeps its jobs over a restart."""
    with running_redis("--appendonly", "yes", "--appendfsync", "always") as server:
        yield server


@pytest.fixture
async def proxy(own_server: RedisServer) -> AsyncIterator[SilentProxy]:
    async with silent_proxy(own_server.port) as proxy:
        yield proxy


class Consumer:
    """A worker at one address, and a producer at another that asks whether it works."""

    def __init__(self, worker: Worker, queue: Queue) -> None:
        self.worker = worker
        self._queue = queue
        self._seen: asyncio.Queue[str] = asyncio.Queue()

    async def handle(self, ctx: Context) -> None:
        self._seen.put_nowait(ctx.job.name)

    async def consumes(self, name: str) -> bool:
        """Whether a job that is added now is run."""
        while True:
            try:
                await self._queue.add(name, id=name)
                break
            except StoreUnavailable:
                await asyncio.sleep(0.05)
        async with asyncio.timeout(_LIMIT_S):
            while await self._seen.get() != name:
                pass  # an attempt whose verdict was lost is made again
        return True


@contextlib.asynccontextmanager
async def consumer(worker_url: str, producer_url: str) -> AsyncIterator[Consumer]:
    store = RedisStore(producer_url)
    await store.open()

    async def handle(ctx: Context) -> None:
        await one.handle(ctx)

    worker = Worker(RedisStore(worker_url), {"mail": handle}, WorkerOptions(lease=3))
    one = Consumer(worker, Queue(store, "mail"))
    working = asyncio.create_task(worker.run())
    try:
        assert await one.consumes("first")
        yield one
        worker.stop()
        assert await asyncio.wait_for(working, _LIMIT_S) == Ended.STOPPED
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await store.close()


async def test_after_a_restart_of_the_server(own_server: RedisServer) -> None:
    async with consumer(own_server.url, own_server.url) as one:
        for n in range(2):
            await asyncio.to_thread(own_server.kill)
            await asyncio.to_thread(own_server.start_again)
            assert await one.consumes(f"after restart {n}")


async def test_after_all_its_connections_were_killed(own_server: RedisServer) -> None:
    async with consumer(own_server.url, own_server.url) as one:
        for n in range(3):
            with own_server.client() as client:
                client.client_kill_filter(_type="normal", skipme=True)
            assert await one.consumes(f"after kill {n}")


async def test_after_the_network_cut_its_connections(proxy: SilentProxy, own_server: RedisServer) -> None:
    async with consumer(proxy.url, own_server.url) as one:
        for n in range(3):
            await proxy.cut()
            assert await one.consumes(f"after cut {n}")


async def test_after_the_network_went_silent(proxy: SilentProxy, own_server: RedisServer) -> None:
    """Its connections are open on its side for ever, and nothing comes."""
    async with consumer(proxy.url, own_server.url) as one:
        for n in range(2):
            proxy.silence()
            assert await one.consumes(f"after silence {n}")


async def test_after_the_server_was_frozen(own_server: RedisServer) -> None:
    async with consumer(own_server.url, own_server.url) as one:
        own_server.freeze()
        adding = asyncio.create_task(one.consumes("after frost"))
        while not adding.done() and not await _is_noticed(one):
            await asyncio.sleep(0.05)
        own_server.thaw()
        assert await adding


async def _is_noticed(one: Consumer) -> bool:
    """Whether the worker gave up a connection."""
    return one.worker._store._connection.client._link is None  # type: ignore[attr-defined] # it is a RedisStore


async def test_after_a_failover_of_the_sentinels() -> None:
    with running_sentinels() as sentinels:
        async with consumer(sentinels.url, sentinels.url) as one:
            old = await asyncio.to_thread(sentinels.kill_master)
            await asyncio.to_thread(sentinels.wait_for_new_master, old)
            assert await one.consumes("after failover")


@pytest.mark.xdist_group("redis-cluster")
async def test_after_its_slot_moved_to_another_node() -> None:
    with running_cluster() as cluster:
        async with consumer(cluster.url, cluster.url) as one:
            slot = slot_of("{bull}")
            target = cluster.other_than(cluster.owner(slot))
            await asyncio.to_thread(cluster.migrate_slot, slot, target)
            assert await one.consumes("after the move")
