"""Workers of agents tell of their sandboxes in the records, where all of them are listed and restarted."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bullpen import Bullpen
from bullpen.agents import workshop
from bullpen.agents.agents import Agents
from bullpen.agents.llm.scripted import ScriptedProvider
from bullpen.agents.sandbox import BubblewrapDriver, PoolOptions, Registry, SandboxPool, SandboxSpec
from bullpen.agents.sandbox.telling import PoolTelling, all_sandboxes
from bullpen.agents.surroundings import Sandboxed
from bullpen.records import chores
from bullpen.records.records import Records
from bullpen.records.sandboxes import LATELY_MS
from bullpen.testing.clock import ManualClock
from tests.agents.runs.conftest import says
from tests.agents.runs.models import MODELS
from tests.agents.sandbox.conftest import SMALL, needs_bubblewrap
from tests.support.places import Place
from tests.worker.waiting import until

__all__ = ["needs_bubblewrap"]


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[SandboxPool]:
    registry, options = Registry(tmp_path / "sandboxes"), PoolOptions(warm=1, most=3)
    async with SandboxPool(BubblewrapDriver(), [SandboxSpec(limits=SMALL)], options, registry=registry) as pool:
        yield pool


async def _unused(pool: SandboxPool, *, but: str = "") -> str:
    """The id of the one that is ready, once that is another one."""

    async def look() -> set[str]:
        return {one.id for one in pool.list() if one.state == "warm"} - {but}

    [found] = await until(look, bool)
    return found


async def _bullpen(address: str, *words: str) -> Any:
    """What the command answers, in a process of its own."""
    command = [sys.executable, "-m", "bullpen.cli", "sandboxes", *words, "--records", address, "--json"]
    answer = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(answer.stdout)


async def test_a_pool_is_listed_and_restarted_once_by_command(
    pool: SandboxPool, records: Records, address: str
) -> None:
    telling = PoolTelling(records.sandboxes, "worker-1", lambda: pool)
    sandbox = await pool.acquire(tenant="acme")
    ready = await _unused(pool)
    await telling.tell()
    shown = {one["id"]: one for one in await _bullpen(address)}
    assert shown.keys() == {sandbox.id, ready}
    busy = shown[sandbox.id]
    assert (busy["driver"], busy["isolation"], busy["worker"]) == ("bubblewrap", "namespace", "worker-1")
    assert (busy["state"], busy["tenant"], shown[ready]["state"]) == ("in-use", "acme", "warm")

    assert await _bullpen(address, "restart") == {"count": 1}
    await telling.tell()
    fresh = await _unused(pool, but=ready)
    await telling.tell()
    assert await _unused(pool) == fresh, "once is enough"
    assert (await sandbox.run(["true"])).ok, "what runs is not disturbed"
    await pool.release(sandbox)
    assert sandbox.id not in {one.id for one in pool.list()}


async def test_workers_of_agents_tell_by_themselves(
    place: Place, pool: SandboxPool, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chores, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(workshop, "_TELL_EVERY_S", 0)

    async def told() -> set[str]:
        return {one.id for one in await all_sandboxes(records.sandboxes)}

    async with Bullpen(place.store()) as pen:
        around = Sandboxed(pool)
        model = ScriptedProvider(says("hi"))
        async with Agents(pen, records, providers=[model], models=MODELS, surroundings=around):
            first = await _unused(pool)
            await until(told, lambda ids: first in ids)
            assert await records.sandboxes.ask_restart() == 1
            second = await _unused(pool, but=first)
            await until(told, lambda ids: ids == {second})
        assert await told() == set(), "agents that are closed have none"


async def test_the_pool_of_a_worker_that_died_is_gone_after_a_minute(address: str, pool: SandboxPool) -> None:
    clock = ManualClock()
    async with await Records.open(address, clock=clock) as records:
        await _unused(pool)
        await PoolTelling(records.sandboxes, "doomed", lambda: pool).tell()
        clock.advance(LATELY_MS)
        assert await all_sandboxes(records.sandboxes) == []
        assert await records.sandboxes.ask_restart() == 0
        other = PoolTelling(records.sandboxes, "other", lambda: pool)
        await other.tell()
        assert {one.worker for one in await all_sandboxes(records.sandboxes)} == {"other"}
        await other.leave()
        await other.leave()
        assert await all_sandboxes(records.sandboxes) == []
