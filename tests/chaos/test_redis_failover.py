"""The master is killed while jobs are added and run; three sentinels make a replica the next one.

Redis acknowledges before its replicas have the write. What the old master acknowledged and no
replica had is lost: by Redis, and counted here. The log on the dead master's disk and the events
of its successor tell it from a loss of our own making.
"""

import asyncio
import contextlib
import os
import random
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bullpen import Queue, StoreError, StoreReadOnly, StoreUnavailable
from bullpen.stores.redis import RedisStore
from tests.chaos.redis_cast import PATIENCE_S, a_part, keep_all_events, on_stage, read_story, repeat, settle_up
from tests.support.redis_sentinel import SERVICE, Sentinels, running_sentinels
from tests.support.redis_server import HOST, RedisServer, redis_program, wait_until
from tests.worker.waiting import until

pytestmark = [pytest.mark.xdist_group("redis-chaos"), pytest.mark.timeout(300)]


@pytest.fixture
def sentinels() -> Iterator[Sentinels]:
    with running_sentinels() as sentinels:
        keep_all_events(sentinels.master(), "bull")
        yield sentinels


def _set(server: RedisServer, **settings: str) -> None:
    with server.client() as client:
        for name, value in settings.items():
            client.config_set(name.replace("_", "-"), value)


# ── under load ───────────────────────────────────────────────────────────────────────────


def _keep_a_log(server: RedisServer) -> None:
    _set(server, appendfsync="always", appendonly="yes")

    def is_logging() -> bool:
        with server.client() as client:
            state = client.info("persistence")
        return not (state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"])

    wait_until(is_logging, "the server keeps a log")


async def _added_by(dead: RedisServer, folder: Path) -> set[str]:
    """The jobs that a dead server had on its disk, read by a server that nobody else knows."""
    shutil.copytree(dead.folder, folder)
    ghost = RedisServer(redis_program(), folder, ("--appendonly", "yes"))
    await asyncio.to_thread(ghost.start)
    store = RedisStore(ghost.url)
    try:
        await store.open()
        return (await read_story(store)).added
    finally:
        await store.close()
        ghost.kill()


def _are_well(sentinels: Sentinels) -> bool:
    """Whether every sentinel sees every server at its place; one that does not would fail over by itself."""
    for sentinel in sentinels.sentinels:
        with sentinel.client() as client:
            master, replicas = client.sentinel_master(SERVICE), client.sentinel_slaves(SERVICE)
        assert isinstance(master, dict)
        linked = [one for one in replicas if one["flags"] == "slave" and one["master-link-status"] == "ok"]
        if master["flags"] != "master" or len(linked) != len(sentinels.servers) - 1:
            return False
    return True


def _switches(sentinels: Sentinels) -> int:
    """How often there was another master."""
    with sentinels.sentinels[0].client() as client:
        master = client.sentinel_master(SERVICE)
    assert isinstance(master, dict)
    return int(master["config-epoch"])


async def _come_back(old: RedisServer, new: RedisServer) -> None:
    """The dead one lives again, as a replica."""
    await asyncio.to_thread(old.start_again)
    with old.client() as client:
        client.replicaof(HOST, str(new.port))

    def is_in_step() -> bool:
        with old.client() as client:
            return bool(client.info("replication").get("master_link_status") == "up")

    await asyncio.to_thread(wait_until, is_in_step, "the old master is a replica in step")


async def failovers(sentinels: Sentinels, folder: Path, times: int, soak_s: float | None = None) -> str:
    on_dead_disks: set[str] = set()
    ghosts = (folder / f"ghost-{n}" for n in range(1_000_000))
    async with on_stage(a_part(sentinels.url, folder, soak_s)) as cast:

        async def fail_over() -> None:
            await until(lambda: asyncio.to_thread(_are_well, sentinels), bool, limit_s=PATIENCE_S)
            await asyncio.to_thread(_keep_a_log, sentinels.master())
            await cast.goes_on()
            old = await asyncio.to_thread(sentinels.kill_master)
            new = await asyncio.to_thread(sentinels.wait_for_new_master, old)
            await cast.goes_on()
            on_dead_disks.update(await _added_by(old, next(ghosts)))
            await _come_back(old, new)

        made = await repeat(fail_over, times, soak_s)
        account = await settle_up(cast, sentinels.master)
    assert account.lost & account.story.added == set(), "lost, though the master of the end had it"
    unplanned = _switches(sentinels) - made
    if not unplanned:
        # A busy machine can look dead to the sentinels: of a master that they replaced alive nothing is left to see.
        assert account.lost <= on_dead_disks, "lost, though no master ever had it"
    return f"{made} failovers, {unplanned} unplanned: {account}"


async def test_a_failover_loses_only_what_no_replica_had(sentinels: Sentinels, tmp_path: Path) -> None:
    print(await failovers(sentinels, tmp_path, 1))


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_ten_minutes_of_failovers(sentinels: Sentinels, tmp_path: Path) -> None:
    print(await failovers(sentinels, tmp_path, 0, float(os.environ["SOAK_SECONDS"])))


# ── a master that was replaced and lives ─────────────────────────────────────────────────


async def test_a_master_that_was_replaced_is_left_though_it_lives(sentinels: Sentinels) -> None:
    """It goes on to acknowledge until somebody demotes it, and all that it took meanwhile is lost then."""
    old = sentinels.master()
    with old.client() as client:
        # So it is never demoted: here nothing but the sentinels' word tells that it was replaced.
        client.execute_command("ACL", "SETUSER", "default", "-replicaof", "-slaveof")  # type: ignore[no-untyped-call] # redis-py's own
    async with _mail(sentinels) as queue:
        await _add(queue, "before")
        await asyncio.to_thread(sentinels.fail_over)
        new = await asyncio.to_thread(sentinels.wait_for_new_master, old)
        with new.client() as client:

            async def arrives() -> bool:
                await _add(queue, job_id := f"after-{random.random()}")
                return client.exists(f"bull:mail:{job_id}") == 1

            await until(arrives, bool)
    with old.client() as client:
        assert client.info("replication")["role"] == "master"


# ── replicas that are behind ─────────────────────────────────────────────────────────────


async def _add(queue: Queue, job_id: str) -> str:
    """Until it is acknowledged."""
    while True:
        try:
            return (await queue.add("welcome", id=job_id)).id
        except (StoreUnavailable, StoreReadOnly):
            await asyncio.sleep(0.05)


def _cut_off(sentinels: Sentinels, known: str) -> None:
    """No replica gets any more from its master, though all of them live; this job they have."""
    for replica in sentinels.servers[1:]:
        with replica.client() as client:
            wait_until(lambda: client.exists(f"bull:mail:{known}") == 1, "the replica has the job")
    for replica in sentinels.servers[1:]:
        _set(replica, masterauth="a password that the master does not know")
    with sentinels.servers[0].client() as client:
        client.client_kill_filter(_type="replica")
        wait_until(lambda: client.info("replication")["connected_slaves"] == 0, "the replicas are cut off")


async def _found_after_failover(sentinels: Sentinels, queue: Queue) -> list[str]:
    old = await asyncio.to_thread(sentinels.kill_master)
    for replica in sentinels.servers[1:]:
        _set(replica, masterauth="")
    await asyncio.to_thread(sentinels.wait_for_new_master, old)
    await _add(queue, "after")
    return sorted(job.id for job in (await queue.jobs("waiting")).jobs)


@contextlib.asynccontextmanager
async def _mail(sentinels: Sentinels) -> AsyncIterator[Queue]:
    store = RedisStore(sentinels.url)
    await store.open()
    try:
        yield Queue(store, "mail")
    finally:
        await store.close()


async def test_what_replicas_lack_is_lost_though_it_was_acknowledged(sentinels: Sentinels) -> None:
    """With Redis's own settings: the price of a master that does not wait for its replicas."""
    async with _mail(sentinels) as queue:
        await _add(queue, "before")
        _cut_off(sentinels, known="before")
        assert await _add(queue, "lost") == "lost"
        assert await _found_after_failover(sentinels, queue) == ["after", "before"]


async def test_a_master_that_insists_on_a_replica_acknowledges_nothing_alone(sentinels: Sentinels) -> None:
    """With `min-replicas-to-write 1` such an add is refused, and the caller knows."""
    for server in sentinels.servers:
        _set(server, min_replicas_to_write="1")
    async with _mail(sentinels) as queue:
        await _add(queue, "before")
        _cut_off(sentinels, known="before")
        with pytest.raises(StoreError) as refused:
            await queue.add("welcome", id="refused")
        assert refused.value.code == StoreReadOnly.code
        assert await _found_after_failover(sentinels, queue) == ["after", "before"]
