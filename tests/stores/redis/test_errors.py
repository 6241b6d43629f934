"""What goes wrong with a server, in the words of the contract."""

from collections.abc import Iterator

import pytest
import redis.asyncio

from bullpen.errors import StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from bullpen.job.spec import NewJob
from bullpen.job.verdicts import Completed, Settlement
from bullpen.stores.base import SettleOutcome
from tests.support.redis_harness import RedisHarness
from tests.support.redis_server import RedisServer, running_redis


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    """A server that a test may spoil."""
    with running_redis() as server:
        yield server


async def test_a_full_server_refuses_adds_and_can_be_drained(own_server: RedisServer) -> None:
    harness = RedisHarness(own_server.url)
    store = await harness.open()
    await store.add([NewJob("mail", "welcome")], request="r1")
    await harness.raw.config_set("maxmemory", "1")
    with pytest.raises(StoreFull) as refusal:
        await store.add([NewJob("mail", "welcome")], request="r2")
    assert isinstance(refusal.value.__cause__, redis.exceptions.RedisError)
    (claimed,) = (await store.claim({"mail": 1}, worker="w", lease_ms=1000, request="c1")).jobs
    outcomes = await store.settle([Settlement(claimed.lease, Completed())], request="s1")
    assert outcomes == (SettleOutcome.SETTLED,)
    await harness.check()
    await harness.close()


async def test_a_replica_takes_no_jobs(own_server: RedisServer) -> None:
    harness = RedisHarness(own_server.url)
    store = await harness.open()
    await harness.raw.replicaof("127.0.0.1", "1")
    with pytest.raises(StoreReadOnly):
        await store.add([NewJob("mail", "welcome")], request="r1")
    await harness.close()


async def test_a_server_that_is_gone_is_unavailable(own_server: RedisServer) -> None:
    harness = RedisHarness(own_server.url)
    store = await harness.open()
    own_server.stop()
    with pytest.raises(StoreUnavailable) as gone:
        await store.counts("mail")
    assert isinstance(gone.value.__cause__, redis.exceptions.RedisError | OSError)
    await harness.close()


async def test_a_wrong_password_is_not_worth_another_try(own_server: RedisServer) -> None:
    harness = RedisHarness(own_server.url)
    await harness.raw.config_set("requirepass", "secret")
    with pytest.raises(StoreError) as refused:
        await harness.open_at(own_server.url.replace("//", "//:wrong@"))
    assert not isinstance(refused.value, StoreUnavailable)
    await harness.close()


async def test_a_closed_store_says_so(harness: RedisHarness) -> None:
    store = await harness.open()
    await store.close()
    await store.close()
    with pytest.raises(StoreUnavailable, match="not open"):
        await store.counts("mail")
