"""The run's sandbox: lent to one call at a time, until what came of it is on record."""

import asyncio
from typing import Any

import pytest

from bullpen.agents.llm.scripted import CallTurn, Script, ScriptedProvider, Turn
from bullpen.agents.llm.words import Usage
from bullpen.agents.loop.finishing import Also
from bullpen.agents.loop.lending import Lent, SandboxLine
from bullpen.agents.loop.loop import AgentLoop
from bullpen.agents.loop.options import LoopOptions
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext, tool
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.errors import CheckpointFailed, ToolError
from bullpen.job.entries import EntryState
from bullpen.records.records import Records
from tests.agents.loop.world import LIMITS, MODEL, MODELS, PROMPT


async def _no_sandbox() -> Any:
    return None


_CONTEXT = ToolContext(task_id="r1", key="r1", sandbox=_no_sandbox)


class _Workshop:
    """A tool that notes who is at work."""

    def __init__(self) -> None:
        self.at_work = self.most = 0
        self.done: list[int] = []

    def tool(self) -> Tool:
        @tool(policy=Policy.IDEMPOTENT)
        async def work(ctx: ToolContext, n: int) -> str:
            """Work."""
            await ctx.needs_sandbox()
            self.at_work += 1
            self.most = max(self.most, self.at_work)
            await asyncio.sleep(0)
            self.at_work -= 1
            self.done.append(n)
            return "worked"

        return work

    def loop(self, recorder: Recorder, saves: Any) -> AgentLoop:
        calls = tuple(CallTurn("work", {"n": n}, id=f"c{n}") for n in range(3))
        script = Script((Turn(calls=calls, usage=Usage(1, 1)), Turn(text="done", usage=Usage(1, 1))))
        options = LoopOptions(limits=LIMITS, context=_CONTEXT, saves=saves)
        return AgentLoop(recorder, ScriptedProvider(script), MODELS, Toolbox([self.tool()]), options)


async def _recorder(records: Records, epoch: int = 1) -> Recorder:
    recorder = Recorder(records.database, "r1", epoch)
    await recorder.begin()
    return recorder


async def test_it_is_saved_between_calls_never_beside_one(records: Records) -> None:
    workshop, recorder = _Workshop(), await _recorder(records)
    saved: list[tuple[int, int]] = []

    async def save(place: int) -> Also | None:
        saved.append((place, len(workshop.done)))
        return None

    assert (await workshop.loop(recorder, save).run(MODEL, PROMPT)).text == "done"
    assert workshop.most == 1
    assert saved == [(1, 1), (3, 2), (5, 3)]


async def test_after_a_call_that_could_not_be_saved_none_works_in_it(records: Records) -> None:
    """What they did would be saved with what nobody has on record."""
    workshop, recorder = _Workshop(), await _recorder(records)

    async def save(_: int) -> Also | None:
        raise CheckpointFailed("no room")

    with pytest.raises(CheckpointFailed):
        await workshop.loop(recorder, save).run(MODEL, PROMPT)
    assert workshop.done == [0]
    again = await _recorder(records, 2)
    assert {entry.state for entry in again.entries[1:]} == {EntryState.OPEN}


async def test_what_outlives_its_call_does_not_keep_it_from_others() -> None:
    line = SandboxLine()
    async with Lent(_CONTEXT, line) as first:
        pass
    assert first.sandbox is not None
    with pytest.raises(ToolError, match="over"):
        await first.sandbox()
    async with Lent(_CONTEXT, line) as second:
        assert second.sandbox is not None
        await second.sandbox()
        assert line.turns.locked()
    assert not line.turns.locked()
