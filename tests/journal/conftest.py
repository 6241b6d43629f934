"""An application on each store, with a clock that moves when told to."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bullpen import Bullpen
from bullpen.job.record import JobRef, Lease
from bullpen.job.verdicts import Released
from bullpen.journal.home import StoreJournal
from bullpen.stores.base import Store
from bullpen.testing import ManualClock
from bullpen.testing.conformance.moves import add_one, claim_one, fresh_request, settle_one
from bullpen.testing.memory import MemoryJournal
from tests.support.redis_harness import RedisHarness
from tests.support.redis_server import redis_server
from tests.support.sqlite_harness import SqliteHarness

if TYPE_CHECKING:
    from bullpen.testing.journals import JournalHome  # not before its assertions are rewritten

__all__ = ["redis_server"]

pytest.register_assert_rewrite("bullpen.testing.journals")

AnyHarness = SqliteHarness | RedisHarness


@pytest.fixture(params=["sqlite", "redis"])
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AnyHarness]:
    async with _place(request, tmp_path) as harness:
        yield harness


@contextlib.asynccontextmanager
async def _place(request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[AnyHarness]:
    harness: AnyHarness
    if request.param == "sqlite":
        harness = SqliteHarness(folder)
    else:
        harness = RedisHarness(request.getfixturevalue("redis_server").url)
    yield harness
    await harness.check()
    await harness.close()


class StoreHome:
    """Runs are jobs of one queue; a new activation takes the job away from the one before."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.journal = StoreJournal(store)
        self._leases: dict[str, Lease] = {}

    async def new_run(self) -> str:
        ref = await add_one(self._store)
        await self._store.change_priority(ref, 9)
        return str(ref)

    async def begin(self, run: str) -> int:
        queue, _, job_id = run.partition("/")
        if run in self._leases:
            await settle_one(self._store, self._leases[run], Released())
        # One job of many is wanted: it goes before all others.
        await self._store.change_priority(JobRef(queue, job_id), 1)
        claimed = await claim_one(self._store)
        assert str(claimed.job.ref) == run
        self._leases[run] = claimed.lease
        return claimed.lease.epoch

    async def signal(self, run: str, name: str, payload: bytes) -> None:
        queue, _, job_id = run.partition("/")
        await self._store.signal(JobRef(queue, job_id), name, payload, request=fresh_request())


class MemoryHome:
    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self._runs = 0

    async def new_run(self) -> str:
        self._runs += 1
        return f"run {self._runs}"

    async def begin(self, run: str) -> int:
        return self.journal.begin(run)

    async def signal(self, run: str, name: str, payload: bytes) -> None:
        self.journal.signal(run, name, payload)


@pytest.fixture(params=["sqlite", "redis", "memory"])
async def home(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator["JournalHome"]:
    if request.param == "memory":
        yield MemoryHome()
        return
    async with _place(request, tmp_path) as harness:
        yield StoreHome(await harness.open())


@pytest.fixture
def clock(harness: AnyHarness) -> ManualClock:
    assert isinstance(harness.clock, ManualClock)
    return harness.clock


@pytest.fixture
async def pen(harness: AnyHarness) -> Bullpen:
    return Bullpen(await harness.open())
