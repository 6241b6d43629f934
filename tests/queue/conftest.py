"""A store that can be watched, and a clock that moves when told."""

from collections.abc import AsyncIterator

import pytest

from bullpen import Queue
from bullpen.testing.clock import ManualClock
from tests.queue.working import WatchedStore
from tests.support.places import Place, place, redis_server

__all__ = ["place", "redis_server"]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store(place: Place, clock: ManualClock) -> AsyncIterator[WatchedStore]:
    store = WatchedStore(place.store(clock=clock))
    await store.open()
    yield store
    await store.close()
    await place.check()


@pytest.fixture
def queue(store: WatchedStore, clock: ManualClock) -> Queue:
    return Queue(store, "work", clock=clock)
