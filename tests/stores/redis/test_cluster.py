"""On a cluster: the node with our keys is followed, and while they move nothing is torn."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import redis.asyncio.cluster
import redis.exceptions

from bullpen.errors import StoreError, StoreUnavailable
from bullpen.job.spec import NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Settlement
from bullpen.stores.base import Claimed, SettleOutcome
from bullpen.stores.redis import RedisStore
from bullpen.stores.redis.scripts import ADD
from tests.support.redis_cluster import ClusterNode, RedisCluster, running_cluster, slot_of
from tests.support.redis_harness import fresh_prefix
from tests.support.redis_server import running_redis, valkey_program, wait_until

# One cluster for all of them.
pytestmark = pytest.mark.xdist_group("redis-cluster")

JOBS = [NewJob("mail", "first"), NewJob("mail", "second"), NewJob("post", "third")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisCluster]:
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture
async def store(cluster: RedisCluster) -> AsyncIterator[RedisStore]:
    store = RedisStore(cluster.url, prefix=f"{{{fresh_prefix()}}}")
    await store.open()
    yield store
    await store.close()


class Moving:
    """The slot of a store, its owner, and another node that will have it."""

    def __init__(self, cluster: RedisCluster, store: RedisStore) -> None:
        self.cluster = cluster
        self.slot = slot_of(store._prefix)
        self.source = cluster.owner(self.slot)
        self.target = cluster.other_than(self.source)

    def begin(self, *, moved: int) -> list[str]:
        """Of our keys that many are on the target already."""
        self.cluster.begin_migration(self.slot, self.source, self.target)
        return self.cluster.move_keys(self.slot, self.source, self.target, count=moved)

    def end(self) -> None:
        while self.cluster.move_keys(self.slot, self.source, self.target):
            pass
        self.cluster.end_migration(self.slot, self.target)

    def contents(self, node: ClusterNode) -> dict[str, Any]:
        keys = sorted(self.cluster.keys(node, self.slot))
        return dict(zip(keys, self.cluster.on_either_side(node, *(("DUMP", key) for key in keys)), strict=True))


@pytest.fixture
def moving(cluster: RedisCluster, store: RedisStore) -> Moving:
    return Moving(cluster, store)


async def test_jobs_from_any_node(cluster: RedisCluster, store: RedisStore) -> None:
    """Whichever node is named, the one that has the keys is found."""
    await store.add(JOBS, request="r1")
    for node in cluster.nodes:
        other = RedisStore(f"redis+cluster://127.0.0.1:{node.port}", prefix=store._prefix)
        await other.open()
        assert (await other.counts("mail")).waiting == 2
        assert await other.queues() == ["mail", "post"]
        await other.close()


async def test_a_node_that_is_away_is_passed_over(cluster: RedisCluster, store: RedisStore) -> None:
    url = cluster.url.replace("//", "//127.0.0.1:1,")
    other = RedisStore(url, prefix=store._prefix)
    await other.open()
    await other.close()


async def test_the_keys_are_followed_to_another_node(store: RedisStore, moving: Moving) -> None:
    await store.add(JOBS, request="r1")
    moving.cluster.migrate_slot(moving.slot, moving.target)
    (claimed,) = (await store.claim({"post": 1}, worker="w", lease_ms=1000, request="c1")).jobs
    assert claimed.job.name == "third"
    assert _node_port(store) == moving.target.port


async def test_a_sleeper_wakes_on_the_node_to_which_its_queue_moved(store: RedisStore, moving: Moving) -> None:
    """It slept on the old one, which ends the sleep with MOVED."""
    await store.add(JOBS[:1], request="r1")
    await store.claim({"mail": 1}, worker="w", lease_ms=1000, request="c1")
    await store.wait(["mail"], timeout_ms=1)  # takes the marker that the claim left
    asleep = asyncio.create_task(store.wait(["mail"], timeout_ms=20_000))
    await asyncio.to_thread(wait_until, lambda: _blocked(moving.source) > 0, "the sleeper is asleep")
    moving.cluster.migrate_slot(moving.slot, moving.target)
    await store.add(JOBS[1:2], request="r2")
    assert await asleep


def _blocked(node: ClusterNode) -> int:
    with node.client() as client:
        return int(client.info("clients")["blocked_clients"])


# ── while the keys move ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("moved", [0, 1, 4, 1000], ids=["none", "one", "some", "all"])
async def test_every_script_is_refused_whole_while_the_slot_moves(
    store: RedisStore, moving: Moving, moved: int
) -> None:
    """However many keys are on the other side: nothing changes, and nothing appears there."""
    await store.add(JOBS, request="r1")
    (held,) = (await store.claim({"mail": 1}, worker="w", lease_ms=60_000, request="c1")).jobs
    moving.begin(moved=moved)
    on_source, on_target = moving.contents(moving.source), moving.contents(moving.target)
    settlements = [Settlement(held.lease, Completed(then=(NewJob("post", "follower"),)))]

    async def finish_and_take() -> tuple[SettleOutcome, ...]:
        exchanged = await store.exchange(settlements, {"mail": 1}, worker="w", lease_ms=60_000, request="x1")
        return exchanged.settled

    for verb in (lambda: store.add(JOBS, request="r2"), finish_and_take, lambda: store.counts("mail")):
        with pytest.raises(StoreUnavailable):
            await verb()
    with pytest.raises(StoreUnavailable):
        await store.renew([held.lease], lease_ms=60_000)
    with pytest.raises(StoreUnavailable):
        await store.retry_all("mail", State.FAILED, limit=10)
    assert moving.contents(moving.source) == on_source
    assert moving.contents(moving.target) == on_target

    moving.end()
    assert len(await store.add(JOBS, request="r2")) == 3
    assert await finish_and_take() == (SettleOutcome.SETTLED,)
    assert (await store.counts("mail")).completed == 1
    assert (await store.counts("mail")).waiting == 2
    assert (await store.counts("post")).waiting == 3


async def test_a_move_that_is_called_off_changes_nothing(store: RedisStore, moving: Moving) -> None:
    await store.add(JOBS, request="r1")
    moving.begin(moved=0)
    with pytest.raises(StoreUnavailable):
        await store.add(JOBS, request="r2")
    moving.cluster.cancel_migration(moving.slot, moving.source, moving.target)
    await store.add(JOBS, request="r2")
    assert (await store.counts("mail")).waiting == 4


async def test_without_the_canary_a_script_would_stop_in_the_middle(store: RedisStore, moving: Moving) -> None:
    """Its declared key is there, and its first write is done, when it meets a key that is not."""
    key, script = f"{store._prefix}:a", "redis.call('SET', KEYS[1], 'begun') redis.call('GET', KEYS[1] .. 'b')"
    with moving.source.client() as client:
        client.set(key, "untouched")
        moving.begin(moved=0)
        with pytest.raises(redis.exceptions.ResponseError, match="Multiple keys request during rehashing"):
            client.eval(f"#!lua\n{script}", 2, key, store._keys.canary)
        assert client.get(key) == "untouched"
        with pytest.raises(redis.exceptions.ResponseError, match="non local key"):
            client.eval(f"#!lua\n{script}", 1, key)
        assert client.get(key) == "begun"
    moving.end()


async def test_the_drivers_own_following_would_tear(store: RedisStore, moving: Moving) -> None:
    """Why we do not use it: it carries a script to where only some of the keys are.

    If this fails, the driver or the server has changed: see decision 0010.
    """
    await store.add(JOBS[:2], request="r1")
    moving.begin(moved=0)
    message = _message_of(store, JOBS[:1])
    source = moving.source
    async with redis.asyncio.cluster.RedisCluster(host="127.0.0.1", port=source.port) as driver:
        await driver.eval(ADD.text, 1, store._keys.request("r2"), message)
    torn = moving.contents(moving.target)
    assert f"{store._prefix}:mail:wait" in torn, "a second list of waiting jobs"
    assert f"{store._prefix}:mail:wait" in moving.contents(moving.source)
    assert f"{store._prefix}:mail:1" in torn, "and a job with an id that is taken"
    # Two lists of one name: the move cannot end before somebody throws one away.
    with pytest.raises(redis.exceptions.ResponseError, match="BUSYKEY"):
        moving.end()
    moving.cluster.on_either_side(moving.target, *(("DEL", key) for key in torn))
    moving.end()


def _message_of(store: RedisStore, jobs: list[NewJob]) -> bytes:
    from bullpen.stores.redis.asking import ask_add

    return ask_add(store._keys, jobs, store.clock.now_ms())


async def test_a_slot_that_moves_at_once_is_followed() -> None:
    """Valkey 9 can move a slot as a whole: while it does, jobs go on."""
    with running_cluster(program=valkey_program()) as cluster:
        store = RedisStore(cluster.url)
        await store.open()
        await store.add(JOBS, request="r0")
        slot = slot_of("{bull}")
        source = cluster.owner(slot)
        target = cluster.other_than(source)
        with source.client() as client:
            words = ("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", str(slot), str(slot), "NODE", target.id)
            client.execute_command(*words)  # type: ignore[no-untyped-call] # redis-py's own
        added = 1
        while _node_port(store) != target.port:
            await store.add(JOBS, request=f"r{added}")
            added += 1
        assert (await store.counts("mail")).waiting == 2 * added
        await store.close()


def _node_port(store: RedisStore) -> int:
    node = store._connection.client.node
    assert node is not None
    return node.port


# ── nodes that die, and addresses that do not fit ────────────────────────────────────────


async def test_a_replica_that_took_over_is_found() -> None:
    with running_cluster(replicas=3, node_timeout_ms=1000) as cluster:
        store = RedisStore(cluster.url)
        await store.open()
        await store.add(JOBS, request="r1")
        owner = cluster.owner(slot_of("{bull}"))
        with owner.client() as client:
            client.wait(1, 5000)
        owner.kill()
        (claimed,) = (await _claim_until_answered(store)).jobs
        assert claimed.job.name == "third"
        await store.close()


async def _claim_until_answered(store: RedisStore) -> Claimed:
    while True:
        try:
            return await store.claim({"post": 1}, worker="w", lease_ms=1000, request="c1")
        except StoreUnavailable:
            await asyncio.sleep(0.05)


async def test_a_plain_address_of_a_cluster_is_told_what_to_write(cluster: RedisCluster) -> None:
    prefix = fresh_prefix()
    owner = cluster.owner(slot_of(f"{{{prefix}}}"))
    store = RedisStore(cluster.other_than(owner).url, prefix=f"{{{prefix}}}")
    await store.open()
    with pytest.raises(StoreError, match=r"redis\+cluster://") as refused:
        await store.add(JOBS, request="r1")
    assert not isinstance(refused.value, StoreUnavailable)
    await store.close()


async def test_a_server_that_is_no_cluster_is_told_so() -> None:
    with running_redis() as server:
        store = RedisStore(server.url.replace("redis://", "redis+cluster://").removesuffix("/0"))
        with pytest.raises(StoreError, match="cluster") as refused:
            await store.open()
        assert not isinstance(refused.value, StoreUnavailable)


async def test_a_user_who_may_not_ask_for_the_slots_is_led_by_moved(cluster: RedisCluster) -> None:
    for node in cluster.nodes:
        with node.client() as client:
            words = ("ACL", "SETUSER", "ann", "on", ">pw", "~*", "&*", "+@all", "-cluster", "-info", "-config")
            client.execute_command(*words)  # type: ignore[no-untyped-call] # redis-py's own
    prefix = f"{{{fresh_prefix()}}}"
    owner = cluster.owner(slot_of(prefix))
    other = cluster.other_than(owner)
    store = RedisStore(f"redis+cluster://ann:pw@127.0.0.1:{other.port}", prefix=prefix)
    await store.open()
    await store.add(JOBS, request="r1")
    assert (await store.counts("mail")).waiting == 2
    await store.close()
