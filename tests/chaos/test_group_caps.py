"""A cap of 2 with 4 worker processes, one of them killed at work: never more than 2 run, and all jobs end."""

import asyncio
import contextlib
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bullpen import Queue
from bullpen.settings import store_from
from bullpen.worker.signals import tell
from tests.chaos.group_actor import QUEUE
from tests.support.redis_server import running_redis
from tests.worker.waiting import until

pytestmark = pytest.mark.xdist_group("redis-chaos")

_WORKERS = 4
_PATIENCE_S = 60


@pytest.fixture(params=["sqlite", "redis"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:{tmp_path / 'queue.db'}"
    else:
        with running_redis() as server:
            yield server.url


@contextlib.asynccontextmanager
async def _workers(address: str, folder: Path) -> AsyncIterator[list[asyncio.subprocess.Process]]:
    command = [sys.executable, "-m", "tests.chaos.group_actor", address, str(folder)]
    processes = [await asyncio.create_subprocess_exec(*command) for _ in range(_WORKERS)]
    try:
        yield processes
    finally:
        for process in processes:
            tell(process, signal.SIGTERM)
        for process in processes:
            await process.wait()


async def test_a_cap_is_never_exceeded(address: str, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    store = store_from(address)
    await store.open()
    queue = Queue(store, QUEUE)
    await queue.groups.set("capped", concurrency=2)
    jobs = [queue.prepare("one", group=group) for _ in range(120) for group in ("capped", "free")]
    await queue.add_bulk(jobs)

    def seen() -> list[list[str]]:
        path = folder / "seen"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    async def busy() -> Counter[int]:
        """Which process ran how many jobs of the group, once there are some, and many of all."""
        ran = seen()
        return Counter(int(pid) for group, _, pid in ran if group == "capped" and len(ran) > 60)

    async def unfinished() -> int:
        return (await queue.counts()).unfinished

    async with _workers(address, folder) as processes:
        ((most, _),) = (await until(busy, bool, limit_s=_PATIENCE_S)).most_common(1)
        victim = next(one for one in processes if one.pid == most)
        victim.kill()
        await until(unfinished, lambda left: left == 0, limit_s=_PATIENCE_S)
    counts = await queue.counts()
    groups = await queue.groups.page()
    await store.close()
    assert counts.completed == len(jobs)
    assert groups.groups[0].active == 0
    at_once = Counter(int(number) for group, number, _ in seen() if group == "capped")
    assert max(at_once) == 2
