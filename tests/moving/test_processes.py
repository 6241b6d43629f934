"""The command itself, with workers and producers of both stores at work, killed with SIGKILL at random moments."""

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from bullpen import FROM_START, EventKind, JobRef, State, Store
from bullpen.stores.base import Counts
from bullpen.testing.conformance.moves import add_one
from tests.moving.places import Place, executions
from tests.moving.programs import QUEUE, command, produce, work
from tests.support.programs import ROOT

LIMIT_S = 90
_KILLS = 6
_BATCH = 25


@contextlib.asynccontextmanager
async def running(words: Sequence[str]) -> AsyncIterator[Process]:
    """Killed at the end of the block if it still runs."""
    process = await asyncio.create_subprocess_exec(*words, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def copy(places: tuple[Place, Place], *options: str) -> list[str]:
    origin, goal = places
    return [sys.executable, "-m", "bullpen.cli", "store", "copy", origin.address, goal.address, "--json", *options]


async def says(process: Process) -> str:
    assert process.stdout is not None
    line = await process.stdout.readline()
    assert line, "it ended instead"
    return line.decode().strip()


async def tell(process: Process, line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n".encode())
    await process.stdin.drain()


class Completions:
    """Counts the jobs that completed on a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cursor = FROM_START

    async def wait_for(self, how_many: int) -> None:
        while how_many > 0:
            page = await self._store.events(QUEUE, after=self._cursor, limit=how_many, timeout_ms=1_000)
            self._cursor = page.cursor
            how_many -= sum(event.kind == EventKind.COMPLETED for event in page.events)


@pytest.mark.timeout(LIMIT_S * 2)
async def test_a_running_system_moves_though_the_copier_is_killed(
    places: tuple[Place, Place], source: Store, target: Store, tmp_path: Path
) -> None:
    """Every job that was acknowledged runs once: on the old workers, on the new ones, before and after kills."""
    dice = random.Random(7)
    ran, pipe = tmp_path / "executions", tmp_path / "pipe"
    os.mkfifo(pipe)
    origin, goal = places
    async with contextlib.AsyncExitStack() as stack, asyncio.timeout(LIMIT_S):
        old = await stack.enter_async_context(running(command(work, origin.address, ran, "old")))
        new = await stack.enter_async_context(running(command(work, goal.address, ran, "new")))
        producer = await stack.enter_async_context(running(command(produce, origin.address)))
        held = await add_one(source, QUEUE, data=json.dumps({"n": "held", "pipe": str(pipe)}).encode())
        assert await says(old) == "holding"
        await tell(producer, str(_BATCH))
        async with running(copy(places, "--follow")) as copier:
            # From here on the old workers take no more.
            assert json.loads(await says(copier))["active"] >= 1
        completions = Completions(target)
        for _ in range(_KILLS):
            await tell(producer, str(_BATCH))
            async with running(copy(places, "--follow")) as copier:
                await completions.wait_for(dice.randint(1, _BATCH - 1))
                copier.kill()
        # It ends when its input does, with all that it was told to add.
        acknowledged, _ = await producer.communicate(b"")
        assert int(acknowledged.split()[-1]) == _BATCH * (_KILLS + 1)
        assert (await source.counts(QUEUE)).active == 1, "the held one is still there"
        async with running(copy(places)) as copier:
            await asyncio.to_thread(pipe.write_text, "go on")
            printed, _ = await copier.communicate()
        assert copier.returncode == 0
        assert [told["queue"] for told in json.loads(printed)] == [QUEUE]
        await _drained(target)
        for worker in (old, new):
            worker.send_signal(signal.SIGTERM)
            assert await worker.wait() == 0
    lines = [line.split() for line in executions(ran)]
    assert Counter(n for n, _ in lines) == Counter(["held", *map(str, range(_BATCH * (_KILLS + 1)))])
    assert ["held", "old"] in lines
    assert (await target.job(JobRef(QUEUE, held.id))).state == State.COMPLETED
    assert await source.counts(QUEUE) == Counts(paused=True)


async def _drained(store: Store) -> None:
    cursor = FROM_START
    while (await store.counts(QUEUE)).unfinished:
        page = await store.events(QUEUE, after=cursor, limit=100, timeout_ms=1_000)
        cursor = page.cursor
