"""A store with one job in it, which must outlive whatever is done."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen import Queue, SqliteStore
from tests.support.sqlite_harness import check_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path)
    await store.open()
    yield store
    await store.close()
    check_file(path)


@pytest.fixture
async def queue(store: SqliteStore) -> Queue:
    """With one job in it, which must outlive whatever is done."""
    queue = Queue(store, "work", max_payload_bytes=1_000)
    await queue.add("kept", {"n": 1}, id="kept")
    return queue
