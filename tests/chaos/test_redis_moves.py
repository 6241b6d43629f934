"""Our slot moves to another node of a cluster and back while jobs are added and run: refused whole, never torn."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen import StoreUnavailable
from tests.chaos.redis_cast import a_part, keep_all_events, on_stage, repeat, settle_up
from tests.support.redis_cluster import ClusterNode, RedisCluster, running_cluster, slot_of
from tests.support.redis_server import wait_until

# Beside the other tests on clusters there would be too many servers at once.
pytestmark = [pytest.mark.xdist_group("redis-cluster"), pytest.mark.timeout(300)]

_PREFIX = "{bull}"
_SLOT = slot_of(_PREFIX)
_KEYS_AT_ONCE = 100
_REFUSALS = 8


@pytest.fixture
def cluster() -> Iterator[RedisCluster]:
    with running_cluster() as cluster:
        keep_all_events(cluster.owner(_SLOT), _PREFIX)
        yield cluster


def _refusals(node: ClusterNode) -> int:
    """How many calls it refused because it gives our slot away."""
    with node.client() as client:
        errors = client.info("errorstats")
    return sum(errors.get(f"errorstat_{word}", {"count": 0})["count"] for word in ("ASK", "TRYAGAIN"))


def _move(cluster: RedisCluster, source: ClusterNode, target: ClusterNode) -> None:
    """A few keys at a time, and most of them not before calls were refused: the keys are on both sides then."""
    before = _refusals(source)
    cluster.begin_migration(_SLOT, source, target)
    cluster.move_keys(_SLOT, source, target, count=_KEYS_AT_ONCE)
    wait_until(lambda: _refusals(source) >= before + _REFUSALS, "calls are refused")
    while cluster.move_keys(_SLOT, source, target, count=_KEYS_AT_ONCE):
        pass
    cluster.end_migration(_SLOT, target)


async def moves(cluster: RedisCluster, folder: Path, times: int, soak_s: float | None = None) -> str:
    """There and back; what is left on no side but the owner's is seen at the end."""
    home = cluster.owner(_SLOT)
    away = cluster.other_than(home)
    async with on_stage(a_part(cluster.url, folder, soak_s)) as cast:

        async def there_and_back() -> None:
            for source, target in ((home, away), (away, home)):
                await asyncio.to_thread(_move, cluster, source, target)
                await cast.goes_on()

        made = await repeat(there_and_back, times, soak_s)
        account = await settle_up(cast, lambda: cluster.owner(_SLOT), _PREFIX)
    assert account.lost == set()
    assert account.refused.keys() <= {StoreUnavailable.code}
    assert account.story.added == set(account.acknowledged), "what was refused changed nothing"
    assert [node for node in cluster.nodes if cluster.keys(node, _SLOT)] == [home]
    refusals = _refusals(home) + _refusals(away)
    return f"{2 * made} moves, {refusals} calls refused: {account}"


async def test_a_slot_that_moves_tears_nothing(cluster: RedisCluster, tmp_path: Path) -> None:
    print(await moves(cluster, tmp_path, 2))


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_ten_minutes_of_moves(cluster: RedisCluster, tmp_path: Path) -> None:
    print(await moves(cluster, tmp_path, 0, float(os.environ["SOAK_SECONDS"])))
