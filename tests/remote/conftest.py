"""A server on each store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.remote.serving import Caller, Served, serving
from tests.support.places import Place, place, redis_server

__all__ = ["place", "redis_server"]


@pytest.fixture
async def served(place: Place, tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(place, tmp_path / "records.db") as served:
        yield served


@pytest.fixture
async def far(served: Served) -> Caller:
    """A worker with a key for all queues."""
    return await served.caller()
