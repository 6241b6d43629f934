"""A store with failed jobs, and a clock that moves when told."""

from collections.abc import AsyncIterator

import pytest

from bullpen import DeadLetters, Store
from bullpen.testing.clock import ManualClock
from tests.support.places import Place, place, redis_server

__all__ = ["place", "redis_server"]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store(place: Place, clock: ManualClock) -> AsyncIterator[Store]:
    store = place.store(clock=clock)
    await store.open()
    yield store
    await store.close()
    await place.check()


@pytest.fixture
def letters(store: Store) -> DeadLetters:
    return DeadLetters(store)
