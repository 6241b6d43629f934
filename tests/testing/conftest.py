"""An application of its own for each test, on each store."""

from collections.abc import AsyncIterator, Callable

import pytest

from bullpen import Bullpen, Store
from bullpen.testing import ManualClock
from tests.support.places import Place, place, redis_server

__all__ = ["place", "redis_server"]


@pytest.fixture
async def bullpen_store(place: Place, bullpen_clock: ManualClock) -> AsyncIterator[Store]:
    """The plugin's own is a file; the projects of test_plugin.py have that one."""
    store = place.store(clock=bullpen_clock)
    yield store
    await store.close()


@pytest.fixture
def pen(bullpen_use: Callable[[Bullpen], Bullpen]) -> Bullpen:
    return bullpen_use(Bullpen("sqlite:never-opened.db"))
