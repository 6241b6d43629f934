"""Where a test keeps its jobs and its records, for a `conftest.py` that says which of each in `kinds`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.migrated import migrated_database, migrated_file
from tests.support.places import FilePlace, Place, ServerPlace, redis_server
from tests.support.postgres_server import postgres_server

__all__ = ["address", "place", "postgres_server", "redis_server"]


@pytest.fixture
def place(request: pytest.FixtureRequest, kinds: tuple[str, str], tmp_path: Path) -> Iterator[Place]:
    """Of jobs: a file, or a server."""
    if kinds[0] == "sqlite":
        yield FilePlace(tmp_path)
    else:
        server = ServerPlace(request.getfixturevalue("redis_server").url)
        yield server
        server.clear()


@pytest.fixture
def address(request: pytest.FixtureRequest, kinds: tuple[str, str], tmp_path: Path) -> str:
    """Of an empty database of records."""
    if kinds[1] == "sqlite":
        return migrated_file(tmp_path / "records.db")
    return migrated_database(request.getfixturevalue("postgres_server"))
