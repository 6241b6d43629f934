"""Every promise of the contract, on every store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen.stores.base import Store
from tests.support.sqlite_harness import SqliteHarness

pytest.register_assert_rewrite("bullpen.testing.conformance")


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[SqliteHarness]:
    harness = SqliteHarness(tmp_path)
    yield harness
    await harness.check()
    await harness.close()


@pytest.fixture
async def store(harness: SqliteHarness) -> Store:
    return await harness.open()
