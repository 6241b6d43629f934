"""Worker processes are killed in the middle of a run: others go on at the exact step, and nothing is done twice.

Ten kills here, five on each store; by `make soak` one at every single write, before it and after.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from bullpen import Bullpen
from bullpen.agents.agents import Agents
from bullpen.agents.loop.words import Answer
from bullpen.agents.words import TaskResult
from bullpen.errors import WrongState
from bullpen.job.entries import EntryKind
from bullpen.records.journal import SqlJournal
from bullpen.records.records import Records
from bullpen.records.runs.words import Task
from tests.agents.loop.world import MortalDatabase
from tests.agents.runs.conftest import TENANT
from tests.agents.runs.models import TOKEN
from tests.agents.runs.mortal import LIVES, STEPS, TURNS, USAGE, World, agents_of
from tests.support.places import Place
from tests.support.programs import ROOT

_PATIENCE_S = 100
_SPENT = TOKEN * USAGE.total_tokens * (TURNS + 1)
_MOST = TOKEN * 30_000
"""More than any one call may cost: what each crash may cost on top, if nobody knows whether its call was made."""


class Death(NamedTuple):
    at: int
    is_after: bool


class Stage(NamedTuple):
    """Where a run is played."""

    place: Place
    address: str
    records: Records
    folder: Path


@pytest.fixture
def stage(place: Place, address: str, records: Records, tmp_path: Path) -> Stage:
    return Stage(place, address, records, tmp_path)


class Played(NamedTuple):
    result: TaskResult
    transcript: list[tuple[int, str, bytes | None]]
    world: World
    activations: int
    questions: int


class Person:
    """Answers what a task asks, having looked at what happened."""

    def __init__(self, agents: Agents, world: World, run_id: str) -> None:
        self._agents = agents
        self._world = world
        self._run_id = run_id
        self.answered = 0

    async def attend(self) -> None:
        answered: set[str] = set()
        while True:
            [task] = await self._agents.tasks(self._run_id)
            if task.question is not None and task.question["signal"] not in answered:
                with contextlib.suppress(WrongState):  # its worker is about to settle the job, or died there
                    await self._agents.answer(task.id, self._what_became_of(task))
                    answered.add(task.question["signal"])
                    self.answered += 1
            await asyncio.sleep(0.05)  # between two looks

    def _what_became_of(self, task: Task) -> Answer:
        assert task.question is not None
        place = str(task.question["signal"]).split("/")[1]
        was_sent = self._world.effects("mail")[f"{task.id}/{place}"] > 0
        return Answer(result="sent") if was_sent else Answer(again=True)


async def _play(stage: Stage, name: str, deaths: Sequence[Death]) -> Played:
    """One run to its end, whose workers die one after the other as is told here; the last lives."""
    folder = stage.folder / name
    folder.mkdir()
    world = World(folder)
    async with Bullpen(stage.place.store()) as pen, agents_of(pen, stage.records, world) as agents:
        await agents.deposit(TENANT, 1_000, key="first")
        sent = await agents.submit("go", tenant=TENANT, stream=False, timeout=3_600)
        person = Person(agents, world, sent.run_id)
        attending = asyncio.create_task(person.attend())
        try:
            async with asyncio.timeout(_PATIENCE_S):
                for death in deaths:
                    await _live_and_die(stage, folder, death)
                async with _survivor(agents):
                    result = await agents.result(sent.run_id)
        finally:
            attending.cancel()
            await asyncio.wait([attending])
        job = await pen.queue("agent-standard").job(sent.task_id).record()
    transcript = await _transcript(stage.records, sent.task_id)
    return Played(result, transcript, world, job.epoch, person.answered)


async def _live_and_die(stage: Stage, folder: Path, death: Death) -> None:
    environment = {**os.environ, "DIE_AT": str(death.at), "DIE_AFTER": "1" if death.is_after else ""}
    words = ["-m", "tests.agents.runs.mortal", stage.place.address, stage.address, str(folder)]
    process = await asyncio.create_subprocess_exec(sys.executable, *words, cwd=ROOT, env=environment)
    try:
        assert await process.wait() == -signal.SIGKILL
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def _survivor(agents: Agents) -> AsyncIterator[None]:
    worker = agents.pen.worker(options=LIVES)
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


async def _transcript(records: Records, task_id: str) -> list[tuple[int, str, bytes | None]]:
    """What was said and done, less what a person was asked, and less the end, which has its times."""
    page = await SqlJournal(records.database).read(task_id)
    assert page.next_place is None
    steps = [entry for entry in page.entries if entry.kind is EntryKind.STEP and entry.name != "run:end"]
    return [(entry.place, entry.name, entry.value) for entry in steps]


async def _undisturbed(stage: Stage) -> tuple[Played, int]:
    """What the run comes to, and how many writes its worker needs."""
    folder = stage.folder / "undisturbed"
    folder.mkdir()
    counting = MortalDatabase(stage.records.database)
    world = World(folder)
    async with Bullpen(stage.place.store()) as pen, agents_of(pen, Records(counting), world) as agents:
        await agents.deposit(TENANT, 1_000, key="first")
        sent = await agents.submit("go", tenant=TENANT, stream=False, timeout=3_600)
        before = counting.writes
        async with _survivor(agents):
            result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
    transcript = await _transcript(stage.records, sent.task_id)
    return Played(result, transcript, world, 1, 0), counting.writes - before


async def _check(stage: Stage, played: Played, expected: Played, *, kills: int, spent_before: int) -> None:
    assert played.transcript == expected.transcript
    assert played.result.output == expected.result.output
    assert (played.result.status, played.result.steps_executed) == ("completed", TURNS + 1)
    for once in ("mail", "pay"):
        assert set(played.world.effects(once).values()) == {1}, once
    # An idempotent tool is told the same key whenever a call is made again, so that it is one effect.
    notes = played.world.keys_by_number("note")
    assert len(notes) == len(played.world.effects("note")) == len(expected.world.effects("note"))
    assert max(played.world.effects("look").values()) <= 1 + kills
    asked = played.world.effects("ask").total()
    assert TURNS + 1 <= asked <= TURNS + 1 + kills
    account = await stage.records.credits.balance(TENANT)
    spent = account.spent - spent_before
    assert spent == played.result.credits_charged
    assert _SPENT <= spent <= _SPENT + kills * _MOST
    assert account.held == 0
    assert await stage.records.credits.unbalanced() == []


def test_the_run_has_forty_steps() -> None:
    tools = sum(1 + n % 2 for n in range(TURNS))
    assert tools + TURNS + 1 == STEPS >= 40


@pytest.mark.timeout(240)
async def test_a_run_whose_workers_are_killed_ends_as_if_nothing_had_happened(
    stage: Stage, kinds: tuple[str, str]
) -> None:
    expected, writes = await _undisturbed(stage)
    assert expected.result.credits_charged == _SPENT
    spent = (await stage.records.credits.balance(TENANT)).spent
    # Each life begins with one write; by turns it dies before and after one, so that each policy meets both.
    lengths = (0, 4, 7, 9, 11) if kinds[0] == "sqlite" else (3, 6, 8, 10, 12)
    assert sum(lengths) < writes
    deaths = [Death(length, is_after=n % 2 == 0) for n, length in enumerate(lengths)]
    played = await _play(stage, "killed", deaths)
    await _check(stage, played, expected, kills=len(deaths), spent_before=spent)
    assert played.activations > len(deaths)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
async def test_a_kill_at_every_single_write_changes_nothing(stage: Stage) -> None:
    expected, writes = await _undisturbed(stage)
    for at in range(writes):
        for is_after in (False, True):
            spent = (await stage.records.credits.balance(TENANT)).spent
            await stage.records.credits.deposit(TENANT, 10**9, key=f"{at}-{is_after}")
            played = await _play(stage, f"{at}-{is_after}", [Death(at, is_after)])
            await _check(stage, played, expected, kills=1, spent_before=spent)
            print(f"write {at} of {writes}, {'after' if is_after else 'before'}: {played.questions} questions")
