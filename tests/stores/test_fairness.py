"""One tenant's 100,000 jobs do not delay another's: on both stores, counted in claims."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen.job.limits import GroupLimits
from bullpen.stores.base import Store
from bullpen.testing.conformance.groups import add_to, claim_groups
from bullpen.testing.conformance.moves import MAIL
from tests.support.redis_harness import RedisHarness
from tests.support.redis_server import redis_server
from tests.support.sqlite_harness import SqliteHarness

__all__ = ["redis_server"]


@pytest.fixture(params=["sqlite", "redis"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    harness: SqliteHarness | RedisHarness
    if request.param == "sqlite":
        harness = SqliteHarness(tmp_path)
    else:
        harness = RedisHarness(request.getfixturevalue("redis_server").url)
    yield await harness.open()
    await harness.close()


async def test_ten_jobs_behind_a_hundred_thousand_start_within_forty_claims(store: Store) -> None:
    for _ in range(20):
        await add_to(store, "a", 5_000)
    assert await claim_groups(store, 50) == ["a"] * 50
    await add_to(store, "b", 10)
    turns = [group for _ in range(40) for group in await claim_groups(store, 1)]
    assert turns.count("b") == 10
    assert (await store.counts(MAIL)).waiting == 100_000 - 50 - 30


@pytest.mark.parametrize("at_once", [1, 10])
async def test_shares_follow_weights_of_one_to_three(store: Store, at_once: int) -> None:
    await store.set_group(MAIL, "b", GroupLimits(weight=3))
    await add_to(store, "a", 1_000)
    await add_to(store, "b", 1_000)
    turns = Counter([group for _ in range(1_000 // at_once) for group in await claim_groups(store, at_once)])
    assert turns["a"] == pytest.approx(250, rel=0.05)
    assert turns["b"] == pytest.approx(750, rel=0.05)
