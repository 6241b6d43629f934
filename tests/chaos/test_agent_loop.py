"""The agent of the example, killed at random times: each of its forty effects happens once.

Five kills here, thirty by `make soak`.
"""

import asyncio
import contextlib
import os
import random
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from bullpen import Job, Queue, SqliteStore, Store
from bullpen.worker.signals import tell
from tests.chaos.agent import EXAMPLES
from tests.support.redis_harness import fresh_prefix
from tests.support.redis_server import RedisServer, redis_server
from tests.support.sqlite_harness import check_file

__all__ = ["redis_server"]

EFFECTS = 40
_LIMIT_S = 600


class Agent:
    """One life after the other, of a process that works on the one job."""

    def __init__(self, folder: Path, address: str) -> None:
        self.world = folder / "world.db"
        self._environment = {**os.environ, "AGENT_WORLD": str(self.world), "AGENT_STORE": address}
        self.kills = 0
        self.deaths_before_the_record = 0

    async def start(self) -> None:
        process = await self._run(str(EXAMPLES / "agent_loop.py"), "start")
        assert await process.wait() == 0

    async def live(
        self, job: Job[Any], ended: "asyncio.Task[object]", *, dies_by_itself: float = 0, is_killed: bool = False
    ) -> None:
        """Work until the job has ended, or until killed: by us, at any moment, or by itself after an effect."""
        epoch = (await job.record()).epoch
        process = await self._run("-m", "tests.chaos.agent", str(dies_by_itself))
        died = asyncio.create_task(process.wait())
        try:
            if is_killed:
                await self._claimed_again(job, epoch, ended)
                await self._within_its_first_steps(ended)
                tell(process, signal.SIGKILL)
            await asyncio.wait([died, ended], return_when=asyncio.FIRST_COMPLETED)
            if died.done():
                assert died.result() == -signal.SIGKILL
                self.kills += 1
                self.deaths_before_the_record += bool(dies_by_itself)
        finally:
            tell(process, signal.SIGKILL)
            await died

    async def _claimed_again(self, job: Job[Any], epoch: int, ended: "asyncio.Task[object]") -> None:
        while (await job.record()).epoch == epoch and not ended.done():
            await asyncio.sleep(0.01)  # between two looks

    async def _within_its_first_steps(self, ended: "asyncio.Task[object]") -> None:
        """However fast the machine is: else the agent would be done before it was killed often enough."""
        enough = len(self.all_effects()) + random.randint(0, 1)
        while len(self.all_effects()) < enough and not ended.done():
            await asyncio.sleep(0.001)  # between two looks
        await asyncio.sleep(random.random() / 500)

    def all_effects(self) -> list[tuple[str, str]]:
        with contextlib.closing(sqlite3.connect(self.world)) as db:
            return list(db.execute("SELECT tool, what FROM effect ORDER BY rowid"))

    async def _run(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, *arguments, env=self._environment, stderr=asyncio.subprocess.DEVNULL
        )


async def kill_again_and_again(agent: Agent, store: Store, kills: int) -> str:
    await agent.start()
    await store.open()
    job = Queue(store, "agents").job("the-agent")
    ended = asyncio.create_task(job.result(timeout=_LIMIT_S))
    async with asyncio.timeout(_LIMIT_S):
        while agent.kills < kills and not ended.done():
            if random.random() < 0.5:
                await agent.live(job, ended, dies_by_itself=0.7)
            else:
                await agent.live(job, ended, is_killed=True)
        if not ended.done():
            await agent.live(job, ended)
        answer = await ended
    assert agent.kills == kills
    effects = agent.all_effects()
    assert len(effects) == len(set(effects)) == EFFECTS
    assert str(answer).startswith(f"read up: done in {EFFECTS} calls")
    journal = await job.journal()
    assert len(journal) == 2 * EFFECTS + 1
    await store.close()
    deaths = f"{agent.kills} kills, {agent.deaths_before_the_record} of them between an effect and its record"
    return f"{deaths}: {len(effects)} effects, each once"


async def _on_sqlite(folder: Path, kills: int) -> None:
    path = folder / "queue.db"
    print(await kill_again_and_again(Agent(folder, f"sqlite:{path}"), SqliteStore(path), kills))
    check_file(path)


async def test_an_agent_that_is_killed_five_times_has_each_effect_once(tmp_path: Path) -> None:
    await _on_sqlite(tmp_path, 5)


@pytest.mark.soak
@pytest.mark.timeout(_LIMIT_S)
async def test_an_agent_that_is_killed_thirty_times_has_each_effect_once(tmp_path: Path) -> None:
    await _on_sqlite(tmp_path, 30)


@pytest.mark.soak
@pytest.mark.timeout(_LIMIT_S)
async def test_the_same_on_redis(tmp_path: Path, redis_server: RedisServer) -> None:
    from bullpen.stores.redis import RedisStore

    address = f"{redis_server.url}?prefix={fresh_prefix()}"
    print(await kill_again_and_again(Agent(tmp_path, address), RedisStore(address), 30))
