"""Every store against the model of what it promises: random walks through all verbs, with crashes."""

import atexit
import contextlib
import functools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from bullpen.testing.harness import Harness
from bullpen.testing.machine import store_machine
from tests.support.redis_harness import RedisHarness
from tests.support.redis_server import running_redis
from tests.support.sqlite_harness import SqliteHarness

pytestmark = pytest.mark.timeout(900)


@contextlib.contextmanager
def sqlite_place() -> Iterator[Harness]:
    with tempfile.TemporaryDirectory() as folder:
        yield SqliteHarness(Path(folder))


@contextlib.contextmanager
def redis_place() -> Iterator[Harness]:
    """A prefix of its own on the server that all walks share."""
    harness = RedisHarness(_redis_url())
    yield harness
    harness.clear()


@functools.cache
def _redis_url() -> str:
    """Started at the first walk; it ends with the process."""
    running = contextlib.ExitStack()
    atexit.register(running.close)
    server = running.enter_context(running_redis("--unixsocket", "redis.sock"))
    return f"unix://{server.folder}/redis.sock"


_WALKS = settings(
    max_examples=200,
    stateful_step_count=50,
    deadline=None,
    database=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)

TestSqlite = store_machine(sqlite_place).TestCase
TestSqlite.settings = _WALKS
TestRedis = store_machine(redis_place).TestCase
TestRedis.settings = _WALKS


@pytest.mark.soak
class TestRedisAtLength(store_machine(redis_place).TestCase):  # type: ignore[misc]  # made by a function
    settings = settings(_WALKS, max_examples=400, derandomize=False)
