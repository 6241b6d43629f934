"""Named connections: by them BullMQ and its dashboards know our workers."""

import asyncio
import base64
from collections.abc import AsyncIterator

import pytest

from bullpen.stores.redis import RedisStore
from bullpen.stores.redis.naming import NamedConnections, worker_name
from tests.support.redis_cluster import running_cluster, slot_of
from tests.support.redis_harness import fresh_prefix
from tests.support.redis_sentinel import running_sentinels
from tests.support.redis_server import RedisServer, running_redis


def _names(server: RedisServer, prefix: str) -> list[str]:
    with server.client() as client:
        return sorted(one["name"] for one in client.client_list() if one["name"].startswith(prefix))


@pytest.fixture
async def store(redis_server: RedisServer) -> AsyncIterator[RedisStore]:
    store = RedisStore(redis_server.url, prefix=fresh_prefix())
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def named(store: RedisStore) -> AsyncIterator[NamedConnections]:
    named = NamedConnections(store._connection)
    yield named
    await named.close()


def test_a_name_is_bullmqs() -> None:
    queue = base64.b64encode(b"mail").decode()
    assert worker_name("bull", "mail", "w1") == f"bull:{queue}:w:w1"
    assert worker_name("{bull}", "mail", "two words\n é") == f"{{bull}}:{queue}:w:two-words---"


async def test_exactly_these_names_are_there(
    redis_server: RedisServer, store: RedisStore, named: NamedConnections
) -> None:
    prefix = store._prefix
    await named.keep([f"{prefix}:a", f"{prefix}:b"])
    await named.keep([f"{prefix}:a", f"{prefix}:b"])
    assert _names(redis_server, prefix) == [f"{prefix}:a", f"{prefix}:b"]
    await named.keep([f"{prefix}:b", f"{prefix}:c"])
    assert _names(redis_server, prefix) == [f"{prefix}:b", f"{prefix}:c"]
    await named.close()
    await named.close()
    assert _names(redis_server, prefix) == []


async def test_a_dead_one_is_opened_again(
    redis_server: RedisServer, store: RedisStore, named: NamedConnections
) -> None:
    name = f"{store._prefix}:a"
    await named.keep([name])
    with redis_server.client() as client:
        (mine,) = [one["id"] for one in client.client_list() if one["name"] == name]
        client.client_kill_filter(_id=mine)
    await named.keep([name])
    assert _names(redis_server, name) == [name]


async def test_a_server_that_is_away_is_no_error() -> None:
    with running_redis() as server:
        store = RedisStore(server.url)
        await store.open()
        named = NamedConnections(store._connection)
        await named.keep(["bull:a"])
        server.kill()
        await named.keep(["bull:a"])
        server.start_again()
        await named.keep(["bull:a"])
        assert _names(server, "bull:") == ["bull:a"]
        await named.close()
        await store.close()


async def test_a_server_that_forbids_names_is_no_error() -> None:
    with running_redis() as server:
        with server.client() as client:
            words = ("ACL", "SETUSER", "ann", "on", ">pw", "~*", "&*", "+@all", "-client")
            client.execute_command(*words)  # type: ignore[no-untyped-call] # redis-py's own
        store = RedisStore(server.url.replace("//", "//ann:pw@"))
        await store.open()
        named = NamedConnections(store._connection)
        await named.keep(["bull:a"])
        await named.keep(["bull:a"])
        assert _names(server, "bull:") == []
        await named.close()
        await store.close()


@pytest.mark.xdist_group("redis-cluster")
async def test_on_a_cluster_they_are_where_the_keys_are() -> None:
    with running_cluster() as cluster:
        store = RedisStore(cluster.url)
        await store.open()
        named = NamedConnections(store._connection)
        await named.keep(["{bull}:a"])
        slot = slot_of("{bull}")
        owner = cluster.owner(slot)
        assert _names(owner, "{bull}") == ["{bull}:a"]
        target = cluster.other_than(owner)
        cluster.migrate_slot(slot, target)
        await store.pause("mail")  # the first command with a key is told where they went
        await named.keep(["{bull}:a"])
        assert _names(owner, "{bull}") == []
        assert _names(target, "{bull}") == ["{bull}:a"]
        await named.close()
        await store.close()


async def test_behind_sentinels_they_are_on_the_master() -> None:
    with running_sentinels() as sentinels:
        store = RedisStore(sentinels.url)
        await store.open()
        named = NamedConnections(store._connection)
        await named.keep(["bull:a"])
        assert _names(sentinels.master(), "bull:") == ["bull:a"]
        await named.close()
        await store.close()


async def test_one_whose_dropping_was_given_up_is_closed_all_the_same(
    redis_server: RedisServer, store: RedisStore, named: NamedConnections
) -> None:
    """A worker that stops cancels its heartbeat, which may be at any point of dropping a name."""
    name = f"{store._prefix}:a"
    for rounds in range(30):
        await named.keep([name])
        dropping = asyncio.create_task(named.keep([]))
        for _ in range(rounds):
            await asyncio.sleep(0)
        dropping.cancel()
        await asyncio.wait([dropping])
        await named.close()
        async with asyncio.timeout(5):
            while _names(redis_server, name):
                await asyncio.sleep(0)
