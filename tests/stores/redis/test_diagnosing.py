"""What is wrong with a server is found out and told, each with its remedy."""

import logging
from collections.abc import Iterator

import pytest

from bullpen.errors import StoreError, StoreFull, StoreUnavailable
from bullpen.job.spec import NewJob
from bullpen.job.verdicts import Completed, Settlement
from bullpen.stores.base import SettleOutcome
from bullpen.stores.finding import Finding
from bullpen.stores.redis import RedisStore
from bullpen.stores.redis.diagnosing import diagnose
from bullpen.stores.redis.judging import ServerFacts, judge
from bullpen.testing.clock import ManualClock
from tests.support.redis_cluster import running_cluster
from tests.support.redis_impostor import impostor
from tests.support.redis_server import RedisServer, running_redis, valkey_program


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    with running_redis() as server:
        yield server


async def _found(store: RedisStore) -> dict[str, Finding]:
    found = await diagnose(store)
    assert all(finding.fix for finding in found if finding.level != "ok")
    return {finding.check: finding for finding in found}


def _judged(facts: ServerFacts, check: str) -> tuple[str, str]:
    (finding,) = [one for one in judge(facts) if one.check == check]
    assert bool(finding.fix) == (finding.level != "ok")
    return finding.level, finding.message


async def test_a_server_that_is_well() -> None:
    with running_redis("--appendonly", "yes") as server:
        found = await _found(RedisStore(server.url))
    assert {finding.level for finding in found.values()} == {"ok"}
    assert found.keys() == {"server", "role", "eviction", "memory", "persistence", "clock"}
    assert found["server"].message.startswith("Redis 7")


async def test_a_valkey_server_is_called_so() -> None:
    with running_redis(program=valkey_program()) as server:
        found = await _found(RedisStore(server.url))
    assert found["server"].message.startswith("Valkey ")
    assert found["server"].level == "ok"


async def test_a_replica(own_server: RedisServer) -> None:
    with own_server.client() as client:
        client.replicaof("127.0.0.1", "1")
    assert (await _found(RedisStore(own_server.url)))["role"].level == "bad"


async def test_an_evicting_policy(own_server: RedisServer) -> None:
    with own_server.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        assert (await _found(RedisStore(own_server.url)))["eviction"].level == "warn"
        client.config_set("maxmemory", "100mb")
        found = (await _found(RedisStore(own_server.url)))["eviction"]
    assert (found.level, found.fix) == ("bad", "set maxmemory-policy to noeviction")


async def test_a_clock_that_is_off(own_server: RedisServer) -> None:
    clock = ManualClock(now_ms=1_700_000_000_000)
    found = (await _found(RedisStore(own_server.url, clock=clock)))["clock"]
    assert found.level == "bad"
    assert "ahead of ours" in found.message


async def test_a_part_of_a_cluster_at_a_plain_address() -> None:
    with running_cluster() as cluster:
        plain = await _found(RedisStore(cluster.nodes[0].url))
        assert plain["cluster"].level == "bad"
        assert "redis+cluster://" in plain["cluster"].fix
        assert (await _found(RedisStore(cluster.url)))["cluster"].level == "ok"


@pytest.mark.parametrize(
    "facts, check, level",
    [
        (ServerFacts(dialect="Redis", version="6.2.14"), "server", "bad"),
        (ServerFacts(dialect="Redis", version="7.0.0"), "server", "ok"),
        (ServerFacts(dialect="Redis", version="8.2-rc1"), "server", "ok"),
        (ServerFacts(dialect="Valkey", version="7.2.4"), "server", "ok"),
        (ServerFacts(dialect="Valkey", version="7.1"), "server", "bad"),
        (ServerFacts(dialect="Other", version="1.0"), "server", "ok"),
        (ServerFacts(), "server", "ok"),
        (ServerFacts(memory_policy="volatile-lru", max_memory=1), "eviction", "warn"),
        (ServerFacts(used_memory=91_000_000, max_memory=100_000_000), "memory", "warn"),
        (ServerFacts(used_memory=99_900_000, max_memory=100_000_000), "memory", "bad"),
        (ServerFacts(used_memory=100_000_000, max_memory=100_000_000), "memory", "bad"),
        (ServerFacts(has_log=False, has_snapshots=False), "persistence", "warn"),
        (ServerFacts(has_log=False, has_snapshots=True), "persistence", "warn"),
        (ServerFacts(has_log=False), "persistence", "warn"),
        (ServerFacts(has_log=True, failed_writes=("the append-only file",)), "persistence", "bad"),
        (ServerFacts(is_cluster=True, is_cluster_address=True, cluster_state="fail"), "cluster", "bad"),
        (ServerFacts(clock_skew_ms=-5_000), "clock", "warn"),
        (ServerFacts(clock_skew_ms=999), "clock", "ok"),
    ],
)
def test_each_fact_has_its_judgement(facts: ServerFacts, check: str, level: str) -> None:
    assert _judged(facts, check)[0] == level


def test_what_is_not_told_is_not_judged() -> None:
    assert [finding.check for finding in judge(ServerFacts())] == ["server"]


# ── what opening makes of it ─────────────────────────────────────────────────────────────


async def test_a_server_that_is_too_old_is_refused() -> None:
    async with impostor("redis_version:6.2.14\r\nrole:master\r\n") as url:
        store = RedisStore(url)
        with pytest.raises(StoreError, match=r"Redis 6\.2\.14 is too old: use Redis 7") as refused:
            await store.open()
        assert not isinstance(refused.value, StoreUnavailable)
        assert (await _found(store))["server"].level == "bad"


async def test_valkeys_own_version_counts() -> None:
    """It also tells a version of Redis that it is like."""
    async with impostor("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:7.0.0\r\n") as url:
        with pytest.raises(StoreError, match=r"Valkey 7\.0\.0 is too old"):
            await RedisStore(url).open()


async def test_what_is_wrong_is_logged_once(own_server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    """A worker opens several stores; it says it at the first."""
    store = RedisStore(own_server.url)
    with caplog.at_level(logging.WARNING, "bullpen.stores.redis"):
        for one in (store.another(), store, store.another()):
            await one.open()
            await one.close()
    (record,) = caplog.records
    assert "nothing is kept on disk" in record.message
    assert "appendonly" in record.message


async def test_an_evicting_policy_is_logged(own_server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    with own_server.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
    store = RedisStore(own_server.url)
    with caplog.at_level(logging.WARNING, "bullpen.stores.redis"):
        await store.open()
    await store.close()
    assert any("allkeys-lru" in one.message and "noeviction" in one.message for one in caplog.records)


async def _fill(store: RedisStore) -> tuple[int, StoreFull]:
    """Add until also a small job is refused; how many were added, and how the last was refused.

    A large request is refused for its own size, before the server itself is full.
    """
    added, refused = 0, None
    for size in (20_000, 10):
        while True:
            try:
                await store.add([NewJob("mail", "letter", data=b'"%s"' % (b"x" * size))], request=f"r{added}")
            except StoreFull as error:
                refused = error
                break
            added += 1
    assert refused is not None
    return added, refused


async def test_a_full_server_tells_its_producer_and_drains() -> None:
    """Adds are refused with their code; what is there is worked on until there is room again."""
    with running_redis("--maxmemory", "3mb", "--maxmemory-policy", "noeviction") as server:
        store = RedisStore(server.url)
        await store.open()
        added, refused = await _fill(store)
        assert refused.code == "store-full"
        assert (await _found(store))["memory"].level == "bad"
        assert (await store.counts("mail")).waiting == added
        for n in range(added):
            (claimed,) = (await store.claim({"mail": 1}, worker="w", lease_ms=1000, request=f"c{n}")).jobs
            settlement = Settlement(claimed.lease, Completed())
            assert tuple(await store.settle([settlement], request=f"s{n}")) == (SettleOutcome.SETTLED,)
            await store.remove(claimed.lease.ref)
        assert len(await store.add([NewJob("mail", "letter")], request=f"r{added}")) == 1
        await store.close()
