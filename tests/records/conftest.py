"""Records on SQLite and on PostgreSQL, beside queues on each store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen import Queue
from bullpen.records.model.feeder import ModelFeeder
from bullpen.records.records import Records
from bullpen.stores.base import Store
from bullpen.testing.clock import ManualClock
from tests.records.scene import Scene
from tests.support.migrated import migrated_database, migrated_file
from tests.support.places import Place, place, redis_server
from tests.support.postgres_server import postgres_server

__all__ = ["place", "postgres_server", "redis_server"]


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a database with nothing in its tables."""
    if request.param == "sqlite":
        return migrated_file(tmp_path / "records.db")
    return migrated_database(request.getfixturevalue("postgres_server"))


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


# ── of the read model ────────────────────────────────────────────────────────────────────


@pytest.fixture
def queue(store: Store, clock: ManualClock) -> Queue:
    return Queue(store, "mail", clock=clock)


@pytest.fixture
def feeder(records: Records, store: Store) -> ModelFeeder:
    return records.feeder(store, fields=["user"])


@pytest.fixture(params=[(), ("user",)], ids=["told", "looked"])
def fields(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Where rows hold fields of the data, each job is looked at; else the events tell of most."""
    wanted: tuple[str, ...] = request.param
    return wanted


@pytest.fixture
def either(records: Records, store: Store, fields: tuple[str, ...]) -> ModelFeeder:
    return records.feeder(store, fields=fields)


@pytest.fixture
def scene(store: Store) -> Scene:
    return Scene(store)
