"""A connection that breaks after the server acted: on Redis the two cannot be told apart by the caller."""

from collections.abc import AsyncIterator

import pytest

from bullpen.errors import StoreUnavailable
from bullpen.job.record import JobRef
from bullpen.job.spec import NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Settlement
from bullpen.stores.base import SettleOutcome
from bullpen.stores.redis import RedisStore
from tests.support.proxy import CuttingProxy, cutting_proxy
from tests.support.redis_harness import RedisHarness
from tests.support.redis_server import RedisServer

JOBS = [NewJob("mail", "first"), NewJob("mail", "second"), NewJob("post", "third")]
WANTS = {"mail": 2, "post": 2}


@pytest.fixture
async def proxy(redis_server: RedisServer) -> AsyncIterator[CuttingProxy]:
    async with cutting_proxy(redis_server.port) as proxy:
        yield proxy


@pytest.fixture
async def remote(harness: RedisHarness, proxy: CuttingProxy, store: RedisStore) -> RedisStore:
    """A store behind the proxy. Its scripts are known to the server, so that one answer ends each verb."""
    remote = await harness.open_at(proxy.url)
    await store.add([NewJob("warm", "up")], request="warm-1")
    await store.claim({}, worker="w", lease_ms=1000, request="warm-2")
    await store.abandon("warm-3")
    return remote


async def test_an_add_happens_once(remote: RedisStore, proxy: CuttingProxy, store: RedisStore) -> None:
    proxy.cut_next_answer()
    with pytest.raises(StoreUnavailable):
        await remote.add(JOBS, request="r1")
    assert proxy.has_cut
    assert (await store.counts("mail")).waiting == 2
    again = await remote.add(JOBS, request="r1")
    assert [added.id for added in again] == ["1", "2", "1"]
    assert ((await store.counts("mail")).waiting, (await store.counts("post")).waiting) == (2, 1)


async def test_a_claim_happens_once(remote: RedisStore, proxy: CuttingProxy, store: RedisStore) -> None:
    await store.add(JOBS, request="r1")
    proxy.cut_next_answer()
    with pytest.raises(StoreUnavailable):
        await remote.claim(WANTS, worker="w", lease_ms=1000, request="c1")
    again = await remote.claim(WANTS, worker="w", lease_ms=1000, request="c1")
    assert [claimed.job.name for claimed in again.jobs] == ["first", "second", "third"]
    assert {claimed.lease.epoch for claimed in again.jobs} == {1}
    outcomes = await remote.settle([Settlement(c.lease, Completed()) for c in again.jobs], request="s1")
    assert set(outcomes) == {SettleOutcome.SETTLED}


async def test_a_settlement_happens_once(remote: RedisStore, proxy: CuttingProxy, store: RedisStore) -> None:
    """The second time the lease is gone, and the answer is still that of the first."""
    await store.add(JOBS[:1], request="r1")
    (claimed,) = (await remote.claim(WANTS, worker="w", lease_ms=1000, request="c1")).jobs
    settlements = [Settlement(claimed.lease, Completed(b'"done"', then=(NewJob("next", "follower"),)))]
    proxy.cut_next_answer()
    with pytest.raises(StoreUnavailable):
        await remote.settle(settlements, request="s1")
    assert await remote.settle(settlements, request="s1") == (SettleOutcome.SETTLED,)
    assert (await store.job(claimed.lease.ref)).result == b'"done"'
    assert (await store.counts("next")).waiting == 1


async def test_an_exchange_happens_once(remote: RedisStore, proxy: CuttingProxy, store: RedisStore) -> None:
    await store.add(JOBS[:2], request="r1")
    (first,) = (await remote.claim({"mail": 1}, worker="w", lease_ms=1000, request="c1")).jobs
    settlements = [Settlement(first.lease, Completed())]
    proxy.cut_next_answer()
    with pytest.raises(StoreUnavailable):
        await remote.exchange(settlements, {"mail": 1}, worker="w", lease_ms=1000, request="x1")
    again = await remote.exchange(settlements, {"mail": 1}, worker="w", lease_ms=1000, request="x1")
    assert again.settled == (SettleOutcome.SETTLED,)
    (second,) = again.claimed.jobs
    assert (second.job.name, second.lease.epoch) == ("second", 1)
    assert (await store.counts("mail")).active == 1


async def test_an_abandoned_claim_goes_back_in_its_order(
    remote: RedisStore, proxy: CuttingProxy, store: RedisStore
) -> None:
    """Whoever lost the answer and will not ask again hands the jobs back; nothing is counted."""
    await store.add(JOBS, request="r1")
    proxy.cut_next_answer()
    with pytest.raises(StoreUnavailable):
        await remote.claim(WANTS, worker="w", lease_ms=1000, request="c1")
    assert await remote.abandon("c1") == 3
    assert await remote.abandon("c1") == 0
    back = await store.job(JobRef("mail", "1"))
    assert (back.state, back.attempts_made, back.stalls) == (State.WAITING, 0, 0)
    claimed = await store.claim(WANTS, worker="w", lease_ms=1000, request="c2")
    assert [c.job.name for c in claimed.jobs] == ["first", "second", "third"]


async def test_an_abandoned_exchange_keeps_its_settlements(remote: RedisStore, store: RedisStore) -> None:
    await store.add(JOBS[:2], request="r1")
    (first,) = (await remote.claim({"mail": 1}, worker="w", lease_ms=1000, request="c1")).jobs
    settlements = [Settlement(first.lease, Completed())]
    await remote.exchange(settlements, {"mail": 1}, worker="w", lease_ms=1000, request="x1")
    assert await remote.abandon("x1") == 1
    counts = await store.counts("mail")
    assert (counts.completed, counts.waiting, counts.active) == (1, 1, 0)


async def test_a_claim_that_arrives_after_it_was_abandoned_takes_nothing(store: RedisStore) -> None:
    """The request may be slower than the one that takes it back."""
    await store.add(JOBS[:1], request="r1")
    assert await store.abandon("c1") == 0
    late = await store.claim({"mail": 1}, worker="w", lease_ms=1000, request="c1")
    assert late.jobs == ()
    assert (await store.counts("mail")).waiting == 1
