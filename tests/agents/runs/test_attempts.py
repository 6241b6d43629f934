"""Attempts of a run are those at one step: what failed hours ago, and went well since, does not end it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.agents.kinds import QUEUES
from bullpen.agents.llm.scripted import CallTurn, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.loop.finishing import Also
from bullpen.agents.surroundings import Around
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext, tool
from bullpen.errors import CheckpointFailed
from bullpen.job.entries import JournalEntry
from bullpen.job.options import fixed
from bullpen.records.journal import SqlJournal
from bullpen.records.records import Records
from bullpen.records.runs.words import ProgressKind, Task, TaskState
from tests.agents.runs.conftest import TENANT, Making, jobs_are_there, working
from tests.worker.waiting import until

_PATIENCE_S = 60
_QUEUE = "agent-standard"
_ATTEMPTS = 1 + QUEUES[_QUEUE].retries
_STEPS = _ATTEMPTS + 2


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUEUES, _QUEUE, msgspec.structs.replace(QUEUES[_QUEUE], backoff=fixed(0.01)))


def _walks(request: Request) -> Turn:
    """As many steps as there are, with a tool in each."""
    n = sum(message.role is Role.ASSISTANT for message in request.messages)
    calls = (CallTurn("step", {"n": n}, id=f"c{n}"),) if n < _STEPS else ()
    return Turn(text="" if calls else "there", calls=calls, usage=Usage(10, 20))


def _stumbling(times: int) -> Tool:
    """Fails so often at each step, by what ends an activation."""
    stumbled: dict[int, int] = {}

    @tool(policy=Policy.READ_ONLY)
    async def step(n: int) -> str:
        """Make a step."""
        stumbled[n] = stumbled.get(n, 0) + 1
        if stumbled[n] <= times:
            raise CheckpointFailed("no room")
        return "made"

    return step


async def test_a_run_that_fails_once_at_each_of_many_steps_comes_to_its_end(
    agents_with: Making, records: Records
) -> None:
    async with agents_with(_walks, [_stumbling(1)]) as agents, working(agents):
        sent = await agents.submit("go", tenant=TENANT)
        result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        assert (result.status, result.output) == ("completed", "there")
        told = [event async for event in agents.follow(sent.run_id)]
        assert len([event for event in told if event.kind is ProgressKind.JOB_RETRYING]) == _STEPS
        assert {event.data["attempt"] for event in told if event.kind is ProgressKind.JOB_STARTED} == {1}
        assert await records.credits.unbalanced() == []


async def test_a_run_that_fails_at_one_step_again_and_again_ends(agents_with: Making) -> None:
    async with agents_with(_walks, [_stumbling(1_000)]) as agents, working(agents):
        sent = await agents.submit("go", tenant=TENANT)
        result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        assert result.error is not None
        assert (result.status, result.error.code) == ("failed", "E013")
        told = [event async for event in agents.follow(sent.run_id)]
        assert len([event for event in told if event.kind is ProgressKind.JOB_STARTED]) == 1 + _ATTEMPTS


class _Unsaved:
    """A sandbox whose checkpoints cannot be put on record."""

    @asynccontextmanager
    async def around(self, records: Records, task: Task, *, epoch: int) -> AsyncIterator[Around]:
        async def sandbox() -> Any:
            return None

        async def fails(_: AsyncConnection) -> None:
            raise CheckpointFailed("no room")

        async def saves(_: int) -> Also:
            return fails

        yield Around(ToolContext(task_id=task.id, key=task.id, sandbox=sandbox), saves)

    async def close(self) -> None:
        pass


async def test_a_run_whose_checkpoint_cannot_be_put_on_record_ends_with_that(
    agents_with: Making, records: Records
) -> None:
    """Its end is on record without it."""

    @tool(policy=Policy.READ_ONLY)
    async def step(ctx: ToolContext, n: int) -> str:
        """Make a step."""
        await ctx.needs_sandbox()
        return "made"

    async with agents_with(_walks, [step], surroundings=_Unsaved()) as agents, working(agents):
        sent = await agents.submit("go", tenant=TENANT)
        result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        assert result.error is not None
        assert (result.status, result.error.code) == ("failed", "E013")
        assert (await records.credits.balance(TENANT)).held == 0
        assert await records.credits.unbalanced() == []


async def test_a_run_that_no_longer_fits_its_journal_waits_for_whoever_knows_what_to_do(
    agents_with: Making, records: Records
) -> None:
    """It has not failed: nothing that is on record is lost."""
    async with agents_with(_walks, [_stumbling(0)]) as agents:
        sent = await agents.submit("go", tenant=TENANT)
        journal = SqlJournal(records.database)
        async with journal.writing() as on:
            await on.open(sent.task_id)
            await on.begin(sent.task_id, 0)
            await on.append(sent.task_id, [JournalEntry(0, "another", value=b"{}")], epoch=0)
        async with working(agents):
            await jobs_are_there(agents)
            job = agents.pen.queue(_QUEUE).job(sent.task_id)
            record = await until(job.record, lambda record: record.note is not None)
        assert record.note == (
            "the task no longer fits its journal: step 0 was 'another', and the task comes to 'llm:parrot' there"
        )
        assert (await agents.run(sent.run_id)).state is TaskState.SUSPENDED
        await agents.cancel(sent.run_id)
