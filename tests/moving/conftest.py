"""Two places, of each kind a queue may move between."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen import Store
from tests.moving.places import KINDS, Place, redis_place, sqlite_place
from tests.support.redis_server import redis_server

__all__ = ["redis_server"]


def make_place(request: pytest.FixtureRequest, folder: Path, kind: str, name: str) -> Place:
    return sqlite_place(folder, name) if kind == "sqlite" else redis_place(request.getfixturevalue("redis_server"))


@pytest.fixture(params=KINDS, ids="-to-".join)
async def places(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Place, Place]]:
    origin, goal = (
        make_place(request, tmp_path, kind, name) for kind, name in zip(request.param, ("old", "new"), strict=True)
    )
    yield origin, goal
    await origin.close()
    await goal.close()


@pytest.fixture
async def source(places: tuple[Place, Place]) -> Store:
    return await places[0].open()


@pytest.fixture
async def target(places: tuple[Place, Place]) -> Store:
    return await places[1].open()
