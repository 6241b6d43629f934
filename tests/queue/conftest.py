"""A store that can be watched, and a clock that moves when told."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen import Queue
from bullpen.testing.clock import ManualClock
from tests.queue.working import WatchedStore
from tests.support.sqlite_harness import check_file


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue.db"


@pytest.fixture
async def store(path: Path, clock: ManualClock) -> AsyncIterator[WatchedStore]:
    store = WatchedStore(path, clock=clock)
    await store.open()
    yield store
    await store.close()
    check_file(path)


@pytest.fixture
def queue(store: WatchedStore, clock: ManualClock) -> Queue:
    return Queue(store, "work", clock=clock)
