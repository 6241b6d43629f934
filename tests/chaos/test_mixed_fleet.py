"""Node and Python on one queue, one worker of each killed every second: each job is done, none is lost, none stuck."""

import asyncio
import collections
import contextlib
import json
import os
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen import Queue
from bullpen.stores.redis import RedisStore
from tests.chaos.redis_actors import QUEUE, Part
from tests.chaos.redis_cast import Cast, check_layout, draw_up, keep_all_events, unfinished
from tests.support.redis_server import RedisServer, running_redis

pytestmark = [pytest.mark.xdist_group("redis-chaos"), pytest.mark.timeout(900)]

_JOBS_OF_EACH = 10_000
_WORKERS_OF_EACH = 3
_KILL_EVERY_S = 1.0
_LEASE_S = 2.0
_NODE_FILE = Path(__file__).parent / "fleet.mjs"
_NODE_PACKAGE = Path(__file__).parents[1] / "interop" / "node_modules" / "bullmq"
_PATIENCE_S = 850


class Fleet(Cast):
    def __init__(self, part: Part, server: RedisServer, node: str) -> None:
        super().__init__(part)
        self._server = server
        self._node = node

    def command(self, role: str) -> list[str]:
        kind, _, role_there = role.rpartition(" ")
        if kind != "node":
            return super().command(role)
        told = {
            "port": self._server.port,
            "prefix": "bull",
            "queue": QUEUE,
            "folder": self.part.folder,
            "lease_ms": round(self.part.lease_s * 1000),
            "concurrency": self.part.concurrency,
            "jobs": self.part.jobs,
        }
        return [self._node, str(_NODE_FILE), role_there, json.dumps(told)]


def _node_program() -> str:
    """Missing: a failure in CI, a skip at home."""
    program = shutil.which("node")
    if program is None or not _NODE_PACKAGE.exists():
        missing = "Node or its packages are not installed: run `npm ci` in tests/interop"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return program


@contextlib.asynccontextmanager
async def fleet(server: RedisServer, folder: Path) -> AsyncIterator[Fleet]:
    part = Part(
        role="",
        url=server.url,
        folder=str(folder),
        lease_s=_LEASE_S,
        jobs=_JOBS_OF_EACH,
        at_once=50,
        pace_s=0,
        concurrency=20,
    )
    cast = Fleet(part, server, _node_program())
    try:
        yield cast
    finally:
        await cast.end()


async def test_a_mixed_fleet_under_kills_does_every_job(tmp_path: Path) -> None:
    """20,000 jobs of producers in both languages, by three workers in each."""
    with running_redis() as server:
        keep_all_events(server, "bull")
        store = RedisStore(server.url)
        await store.open()
        queue = Queue(store, QUEUE)
        async with fleet(server, tmp_path) as cast, asyncio.timeout(_PATIENCE_S):
            began = time.monotonic()
            await cast.enter("producer", "node producer", *["worker", "node worker"] * _WORKERS_OF_EACH)
            kills = 0
            while len(set(cast.notes("acknowledged"))) < 2 * _JOBS_OF_EACH or await unfinished(queue):
                await asyncio.sleep(_KILL_EVERY_S)  # the beat of the kills
                kills += await cast.kill_one_at_work("worker")
                kills += await cast.kill_one_at_work("node worker")
            took_s = time.monotonic() - began
            for role in ("producer", "node producer"):
                await cast.ended(role)
            await cast.end()  # some of them have just begun, and would not hear a signal yet
            account = await draw_up(cast, store)
        shares = await _shares(queue)
        await store.close()
        await check_layout(server, "bull")
    assert len(account.acknowledged) == 2 * _JOBS_OF_EACH
    assert account.lost == set()
    assert account.done.keys() == set(account.acknowledged)
    assert len(shares) == 4, "each language ran jobs of each"
    print(f"{kills} workers killed in {took_s:.0f} s: {account}; {dict(shares)}")


async def _shares(queue: Queue) -> collections.Counter[str]:
    """How many jobs of each language were ended by which."""
    shares: collections.Counter[str] = collections.Counter()
    cursor = None
    while True:
        page = await queue.jobs("completed", limit=1_000, cursor=cursor)
        for job in page.jobs:
            producer = "node" if job.name.startswith("node-") else "python"
            shares[f"{producer} by {'node' if job.worker == 'node' else 'python'}"] += 1
        cursor = page.next_cursor
        if cursor is None:
            return shares
