"""Sagas whose workers are killed again and again: each order is all done, or all that was done is undone."""

import asyncio
import collections
import random
import signal
import sys
from pathlib import Path

import pytest

from bullpen import JobOptions, Queue, SqliteStore, State, keep
from tests.chaos.saga import QUEUE, STEPS, Ledger
from tests.support.sqlite_harness import check_file
from tests.worker.waiting import until


async def kill_workers_of_sagas(folder: Path, orders: int, kills: int) -> str:
    path, effects = folder / "queue.db", folder / "effects.db"
    store = SqliteStore(path)
    await store.open()
    queue = Queue(store, QUEUE, defaults=JobOptions(keep_completed=keep()))
    jobs = [await queue.add("order", {"fails_at": random.choice(["", *STEPS])}) for _ in range(orders)]
    killed = 0
    while killed < kills and (await queue.counts()).unfinished:
        worker = await _start(path, effects)
        await until(queue.counts, lambda counts: counts.active > 0 or not counts.unfinished)
        await asyncio.sleep(random.random() / 2)  # at any moment of its work
        worker.kill()
        killed += await worker.wait() == -signal.SIGKILL
    worker = await _start(path, effects)
    await until(queue.counts, lambda counts: not counts.unfinished, limit_s=120)
    worker.terminate()
    await worker.wait()
    ends = collections.Counter[str]()
    for job in jobs:
        record = await job.record()
        ends[record.state] += 1
        _check(Ledger(str(effects)).of(job.id), record.state)
    await store.close()
    check_file(path)
    return f"{killed} kills, {ends[State.COMPLETED]} orders done, {ends[State.FAILED]} undone"


async def _start(path: Path, effects: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.chaos.saga", str(path), str(effects), stderr=asyncio.subprocess.DEVNULL
    )


def _check(effects: list[str], state: State) -> None:
    done = [what for what in effects if not what.startswith("not ")]
    undone = [what.removeprefix("not ") for what in effects if what.startswith("not ")]
    assert done == [*STEPS[: len(done)]]
    if state == State.COMPLETED:
        assert (done, undone) == ([*STEPS], [])
    else:
        assert undone == done[::-1]
        assert effects == done + [f"not {what}" for what in undone]


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_killed_sagas_are_all_done_or_all_undone(tmp_path: Path) -> None:
    print(await kill_workers_of_sagas(tmp_path, orders=60, kills=20))
