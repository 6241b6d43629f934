"""Records on SQLite and on PostgreSQL, beside queues on each store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen.records.records import Records
from bullpen.stores.base import Store
from bullpen.testing.clock import ManualClock
from tests.support.places import Place, place, redis_server
from tests.support.postgres_server import postgres_server

__all__ = ["place", "postgres_server", "redis_server"]


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'records.db'}"
    return str(request.getfixturevalue("postgres_server").new_database())


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def records(address: str, clock: ManualClock) -> AsyncIterator[Records]:
    async with await Records.open(address, clock=clock) as records:
        yield records


@pytest.fixture
async def store(place: Place, clock: ManualClock) -> AsyncIterator[Store]:
    store = place.store(clock=clock)
    await store.open()
    yield store
    await store.close()
