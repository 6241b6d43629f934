"""A store with failed jobs, and a clock that moves when told."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen import DeadLetters, SqliteStore
from bullpen.testing.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "queue.db", clock=clock, sync="normal")
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def letters(store: SqliteStore) -> DeadLetters:
    return DeadLetters(store)
