"""Producers and workers on one file, one of them killed every 200 ms: nothing lost, nothing settled twice.

Ten seconds here, ten minutes by `make soak`.
"""

import asyncio
import collections
import os
import random
import signal
import sys
from pathlib import Path

import pytest

from bullpen import EventKind, FailureKind, Gap, Queue, QueueEvents, SqliteStore, State
from bullpen.worker.signals import tell
from tests.chaos.actors import QUEUE
from tests.support.sqlite_harness import check_file
from tests.worker.waiting import until

_KILL_EVERY_S = 0.2


class Cast:
    """The processes; whoever dies is played by another at once."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "queue.db"
        self.acknowledged = folder / "acknowledged"
        self._living: list[tuple[str, asyncio.subprocess.Process]] = []
        self.kills = 0

    async def enter(self, role: str) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.chaos.actors", role, str(self.path), str(self.acknowledged)
        )
        self._living.append((role, process))

    async def has_acknowledged(self) -> bool:
        return self.acknowledged.exists()

    async def kill_one(self) -> None:
        role, process = self._living.pop(random.randrange(len(self._living)))
        process.kill()
        assert await process.wait() == -signal.SIGKILL
        self.kills += 1
        await self.enter(role)

    async def leave(self, role: str, number: int) -> None:
        for known, process in [entry for entry in self._living if entry[0] == role]:
            tell(process, signal.Signals(number))
            await process.wait()
            self._living.remove((known, process))


class Observer:
    """Reads every event and counts how often each job ended."""

    def __init__(self, store: SqliteStore) -> None:
        self.ends: collections.Counter[str] = collections.Counter()
        self.stalled = 0
        self._events = QueueEvents(store, QUEUE)

    async def watch(self) -> None:
        async for event in self._events:
            assert not isinstance(event, Gap)
            if event.kind in (EventKind.COMPLETED, EventKind.FAILED):
                assert event.job_id is not None
                self.ends[event.job_id] += 1
            self.stalled += event.kind == EventKind.STALLED

    async def caught_up(self) -> bool:
        """Whether every event there is was seen."""
        newest = await self._events._store.events(QUEUE, after=None, limit=1, timeout_ms=0)
        return self._events.cursor == newest.cursor


async def chaos(folder: Path, seconds: float) -> str:
    cast = Cast(folder)
    store = SqliteStore(cast.path)
    await store.open()
    queue = Queue(store, QUEUE)
    observer = Observer(store)
    await observer._events.ready()
    watching = asyncio.create_task(observer.watch())
    for role in ("producer", "producer", "worker", "worker", "worker", "worker"):
        await cast.enter(role)

    await until(cast.has_acknowledged, bool, limit_s=60)  # on a busy machine nobody would live that long
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while loop.time() < end:
        await asyncio.sleep(_KILL_EVERY_S)  # the beat of the kills
        await cast.kill_one()
    await cast.leave("producer", signal.SIGKILL)
    counts = await until(queue.counts, lambda counts: counts.unfinished == 0, limit_s=120)
    await until(observer.caught_up, bool, limit_s=120)
    await cast.leave("worker", signal.SIGTERM)
    watching.cancel()

    acknowledged = cast.acknowledged.read_text().split()
    assert len(acknowledged) == len(set(acknowledged)) > 0
    twice = {job_id: times for job_id, times in observer.ends.items() if times != 1}
    assert twice == {}, "settled by two leases"
    for job_id in acknowledged:
        await _assert_ended_by_itself(queue, job_id)
    await store.close()
    check_file(cast.path)
    return (
        f"{cast.kills} kills, {len(acknowledged)} adds acknowledged, {counts.completed} completed,"
        f" {counts.failed} failed by their attempts, {observer.stalled} crashes recovered"
    )


async def _assert_ended_by_itself(queue: Queue, job_id: str) -> None:
    record = await queue.job(job_id).record()
    if record.state == State.FAILED:
        assert record.failure is not None
        assert (record.failure.kind, record.attempts_made) == (FailureKind.ERROR, 2)
    else:
        assert record.state == State.COMPLETED


async def test_ten_seconds_of_kills(tmp_path: Path) -> None:
    """Every add that returned ended, once, by its own doing; the file is sound."""
    print(await chaos(tmp_path, 10))


@pytest.mark.soak
async def test_ten_minutes_of_kills(tmp_path: Path) -> None:
    print(await chaos(tmp_path, float(os.environ["SOAK_SECONDS"])))
