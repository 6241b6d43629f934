"""Records and queues on each of their stores, and somebody who listens."""

from collections.abc import AsyncIterator

import pytest

from bullpen.builtin.addresses import Allowed
from bullpen.builtin.outgoing import Outgoing
from bullpen.records.records import Records
from bullpen.stores.base import Store
from tests.builtin.receiver import Receiver, receiving
from tests.support.kinds import address, place, postgres_server, redis_server
from tests.support.places import Place

__all__ = ["address", "place", "postgres_server", "redis_server"]

_EACH = {"files": ("sqlite", "sqlite"), "servers": ("redis", "postgres")}


@pytest.fixture(params=_EACH)
def kinds(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Which store, and which records: each is there once."""
    return _EACH[request.param]


@pytest.fixture
async def records(address: str) -> AsyncIterator[Records]:
    async with await Records.open(address) as records:
        yield records


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    store = place.store()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
def outgoing() -> Outgoing:
    """May call this machine, which is where receivers are."""
    return Outgoing(Allowed.parse("127.0.0.0/8"), timeout=5)
