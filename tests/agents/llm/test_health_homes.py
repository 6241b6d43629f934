"""What each home of the health of providers promises: in memory for one worker, in the records for all."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from bullpen.agents.llm.health import HEALTHY, Health, HealthInMemory, HealthRecords, HealthRules, Standing
from bullpen.agents.llm.router import Router
from bullpen.agents.llm.shared_health import HealthInRecords
from bullpen.errors import RecordsUnavailable
from bullpen.records.providers import Providers
from bullpen.records.records import Records
from bullpen.testing.clock import ManualClock
from tests.agents.llm.test_router import Fickle, _table
from tests.support.migrated import migrated_database, migrated_file
from tests.support.postgres_server import postgres_server

__all__ = ["postgres_server"]

RULES = HealthRules()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def homes(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[HealthRecords]]:
    """The same home, as two workers have it."""
    if request.param == "memory":
        yield [HealthInMemory()] * 2
        return
    if request.param == "sqlite":
        address = migrated_file(tmp_path / "records.db")
    else:
        address = migrated_database(request.getfixturevalue("postgres_server"))
    async with AsyncExitStack() as stack:
        both = [await stack.enter_async_context(await Records.open(address)) for _ in range(2)]
        yield [HealthInRecords(records.providers, fresh_ms=0) for records in both]


def _one_more(health: Health) -> Health:
    return msgspec.structs.replace(health, failures=health.failures + 1)


async def test_one_of_which_nothing_is_known_is_healthy(homes: list[HealthRecords]) -> None:
    assert await homes[0].read("openai") == HEALTHY


async def test_what_one_worker_finds_out_another_knows(homes: list[HealthRecords]) -> None:
    one, other = homes
    ill = Health(Standing.DOWN, 5, 1_000, 61_000, 7_000, "HTTP 500")
    changed = await one.change("openai", lambda _: ill)
    assert changed == (HEALTHY, ill)
    assert await other.read("openai") == ill
    assert await other.read("anthropic") == HEALTHY
    assert await other.change("openai", lambda health: health) == (ill, ill)


async def test_no_change_is_lost_between_workers(homes: list[HealthRecords]) -> None:
    await asyncio.gather(*(home.change("openai", _one_more) for home in homes for _ in range(10)))
    assert (await homes[0].read("openai")).failures == 20


async def test_one_worker_at_a_time_finds_out_whether_a_provider_is_back(homes: list[HealthRecords]) -> None:
    clock = ManualClock()
    providers = [Fickle("a") for _ in homes]
    routers = [
        Router([provider], _table(), health=home, clock=clock)
        for provider, home in zip(providers, homes, strict=True)
    ]  # fmt: skip
    down = Health(Standing.DOWN, RULES.down_after, 0, clock.now_ms() + RULES.probe_every_ms)
    await homes[0].change("a", lambda _: down)
    standings = []
    for _ in range(3):
        await asyncio.gather(*(router.probe() for router in routers))
        clock.advance(RULES.probe_every_ms)
        standings.append((sum(provider.probes for provider in providers), (await homes[1].read("a")).standing))
    assert standings == [(0, Standing.DOWN), (1, Standing.DEGRADED), (2, Standing.HEALTHY)]


# ── in the records only ──────────────────────────────────────────────────────────────────


class _Broken(Providers):
    """Records that answer until they are broken."""

    is_broken = False
    asked = 0

    def _ask(self) -> None:
        self.asked += 1
        if self.is_broken:
            raise RecordsUnavailable("gone")

    async def health(self, name: str) -> bytes:
        self._ask()
        return await super().health(name)

    async def change(self, name: str, step: Callable[[bytes], bytes]) -> None:
        self._ask()
        await super().change(name, step)


@pytest.fixture
async def broken(tmp_path: Path) -> AsyncIterator[_Broken]:
    async with await Records.open(migrated_file(tmp_path / "records.db")) as records:
        yield _Broken(records.database)


async def test_without_records_a_worker_goes_by_what_it_knows(broken: _Broken) -> None:
    home = HealthInRecords(broken, fresh_ms=0)
    await home.change("openai", _one_more)
    broken.is_broken = True
    assert (await home.read("openai")).failures == 1
    assert (await home.change("openai", _one_more)).after.failures == 2
    assert (await home.read("openai")).failures == 2
    assert await home.read("anthropic") == HEALTHY


async def test_answers_of_one_in_health_cost_a_read_now_and_then(broken: _Broken) -> None:
    clock = ManualClock()
    home = HealthInRecords(broken, fresh_ms=1_000, clock=clock)
    for _ in range(5):
        await home.change("openai", lambda health: health.after_answer(clock.now_ms()))
    assert broken.asked == 1
    clock.advance(1_000)
    await home.read("openai")
    assert broken.asked == 2


async def test_what_a_newer_worker_wrote_is_passed_over(broken: _Broken) -> None:
    await broken.change("openai", lambda _: b'{"standing": "in doubt"}')
    assert await HealthInRecords(broken).read("openai") == HEALTHY
