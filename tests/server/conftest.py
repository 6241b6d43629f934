"""A server in the test's own loop, on each store and each kind of records."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from bullpen.records.records import Records
from bullpen.server.settings import ServerSettings
from bullpen.server.site import Site, opened_site
from tests.server.calling import Client, client_of
from tests.support.kinds import address, place, postgres_server, redis_server
from tests.support.places import Place

__all__ = ["address", "place", "postgres_server", "redis_server"]

_EACH = {"sqlite": ("sqlite", "sqlite"), "redis-postgres": ("redis", "postgres")}
"""Two of the four: each store and each database is there once."""


@pytest.fixture(params=_EACH)
def kinds(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Which store, and which records; `only_on_files` takes the quick ones."""
    return _EACH[request.param]


@pytest.fixture
def settings() -> ServerSettings:
    return ServerSettings(port=0, fields=("user",))


@pytest.fixture
async def site(place: Place, address: str, settings: ServerSettings, tmp_path: Path) -> AsyncIterator[Site]:
    records = await Records.open(address, blobs=str(tmp_path / "blobs"))
    async with opened_site(place.store(), records, settings) as site:
        yield site


@pytest.fixture
async def client(site: Site) -> AsyncIterator[Client]:
    """A caller in open mode: admin, as long as there is no key."""
    async with client_of(site) as client:
        yield client


Eventually = Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]


@pytest.fixture
def eventually() -> Eventually:
    """Waits until something is so: the read model follows in its own time."""

    async def wait(is_so: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(60):
            while not await is_so():
                await asyncio.sleep(0.02)

    return wait
