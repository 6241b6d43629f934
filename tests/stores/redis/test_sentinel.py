"""Behind sentinels: the master is found, and found again after each failover."""

import asyncio
from collections.abc import Iterator

import pytest

from bullpen.errors import StoreError, StoreUnavailable
from bullpen.job.record import JobRef
from bullpen.job.spec import NewJob
from bullpen.stores.redis import RedisStore
from tests.support.redis_sentinel import SERVICE, Sentinels, running_sentinels

JOB = [NewJob("mail", "welcome")]


@pytest.fixture
def sentinels() -> Iterator[Sentinels]:
    with running_sentinels() as sentinels:
        yield sentinels


async def _add_until_answered(store: RedisStore, request: str) -> None:
    """As every caller does: the same request, until there is an answer."""
    while True:
        try:
            await store.add(JOB, request=request)
        except StoreUnavailable:
            await asyncio.sleep(0.05)
        else:
            return


async def test_the_master_is_found_and_its_successor_too(sentinels: Sentinels) -> None:
    """Once killed, once demoted while it lives: no other error than unavailable, and nothing is lost."""
    store = RedisStore(sentinels.url)
    await store.open()
    await store.add(JOB, request="r1")
    with sentinels.master().client() as client:
        assert client.wait(2, 5000) == 2
    old = await asyncio.to_thread(sentinels.kill_master)
    await _add_until_answered(store, "r2")
    new = await asyncio.to_thread(sentinels.wait_for_new_master, old)
    assert store._connection.client.node is not None
    assert store._connection.client.node.port == new.port
    assert (await store.job(JobRef("mail", "1"))).name == "welcome"
    assert (await store.counts("mail")).waiting == 2
    await store.close()


async def test_a_master_that_was_demoted_is_left(sentinels: Sentinels) -> None:
    """It keeps our connections and takes no writes: the answer is to look for its successor, not to give up."""
    store = RedisStore(sentinels.url)
    await store.open()
    await store.add(JOB, request="r1")
    old = sentinels.master()
    with old.client() as client:
        # As a failover does, but without telling the clients.
        client.replicaof("127.0.0.1", str(sentinels.servers[1].port))
    with pytest.raises(StoreUnavailable, match="no longer the master"):
        await store.add(JOB, request="r2")
    assert store._connection.client.node is None
    await store.close()


async def test_a_failover_by_hand(sentinels: Sentinels) -> None:
    store = RedisStore(sentinels.url)
    await store.open()
    asleep = asyncio.create_task(_sleep_through(store))
    old = await asyncio.to_thread(sentinels.fail_over)
    await asyncio.to_thread(sentinels.wait_for_new_master, old)
    await _add_until_answered(store, "r1")
    await asleep
    await store.close()


async def _sleep_through(store: RedisStore) -> None:
    """Sleep until there is work, whatever happens to the server meanwhile."""
    while True:
        try:
            if await store.wait(["mail"], timeout_ms=1_000):
                return
        except StoreError as error:
            assert isinstance(error, StoreUnavailable), error  # noqa: PT017 - any other kind would end a worker
            await asyncio.sleep(0.05)


async def test_a_service_that_nobody_watches(sentinels: Sentinels) -> None:
    store = RedisStore(sentinels.url.replace(SERVICE, "other"))
    with pytest.raises(StoreUnavailable, match="'other'"):
        await store.open()


async def test_one_living_sentinel_is_enough(sentinels: Sentinels) -> None:
    for sentinel in sentinels.sentinels[:-1]:
        sentinel.kill()
    store = RedisStore(sentinels.url)
    await store.open()
    await store.add(JOB, request="r1")
    await store.close()


async def test_sentinels_with_a_password_of_their_own(sentinels: Sentinels) -> None:
    for sentinel in sentinels.sentinels:
        with sentinel.client() as client:
            words = ("ACL", "SETUSER", "default", "resetpass", ">watch")
            client.execute_command(*words)  # type: ignore[no-untyped-call] # redis-py's own
    store = RedisStore(f"{sentinels.url}?sentinel_password=watch")
    await store.open()
    await store.close()
    with pytest.raises(StoreError) as refused:
        await RedisStore(f"{sentinels.url}?sentinel_password=other").open()
    assert not isinstance(refused.value, StoreUnavailable)
