"""The pytest plugin: a clock, a store, and a way to let an application use them, fresh for each test.

Found by pytest through its entry point. It needs nothing but pytest, and does nothing until asked.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from bullpen.app import Bullpen
from bullpen.stores.base import Store
from bullpen.stores.sqlite import SqliteStore
from bullpen.testing.clock import ManualClock


@pytest.fixture
def bullpen_clock() -> ManualClock:
    """The time that `bullpen_store` goes by; it moves when the test says so."""
    return ManualClock()


@pytest.fixture
def bullpen_store(tmp_path: Path, bullpen_clock: ManualClock) -> Iterator[Store]:
    """An empty store in a file of this test's own."""
    store = SqliteStore(tmp_path / "bullpen.db", sync="normal", clock=bullpen_clock)
    yield store
    # In a thread, since it is not known whether a loop runs in this one, nor whose it is.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(store.close())).result()


@pytest.fixture
def bullpen_use(bullpen_store: Store) -> Iterator[Callable[[Bullpen], Bullpen]]:
    """Let an application keep its jobs in `bullpen_store` until the test ends: `bullpen_use(pen)`."""
    with ExitStack() as swaps:
        yield lambda pen: swaps.enter_context(pen.using(bullpen_store))
