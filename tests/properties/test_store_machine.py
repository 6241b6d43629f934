"""Every store against the model of what it promises: random walks through all verbs, with crashes."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from bullpen.testing.harness import Harness
from bullpen.testing.machine import store_machine
from tests.support.sqlite_harness import SqliteHarness

pytestmark = pytest.mark.timeout(900)

_MEMORY = Path("/dev/shm")


@contextlib.contextmanager
def sqlite_place() -> Iterator[Harness]:
    """In memory where that can be: a walk has hundreds of commits."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        yield SqliteHarness(Path(folder))


TestSqlite = store_machine(sqlite_place).TestCase
TestSqlite.settings = settings(
    max_examples=200,
    stateful_step_count=50,
    deadline=None,
    database=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
