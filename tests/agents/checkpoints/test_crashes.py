"""A run with a workspace whose worker dies: each step on record has its files, once, and no other step has."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen import CheckpointFailed
from bullpen.agents.checkpoints import Workspace
from bullpen.agents.llm.scripted import CallTurn, ScriptedProvider, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.loop.finishing import Also
from bullpen.agents.loop.loop import AgentLoop
from bullpen.agents.loop.options import LoopOptions
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.loop.words import LoopResult, Stop
from bullpen.agents.sandbox import SandboxPool
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import ToolContext, tool
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.records.records import Records
from bullpen.records.runs.words import ProgressKind
from tests.agents.checkpoints.conftest import SPEC, MakeWorkspace
from tests.agents.loop.world import LIMITS, MODEL, MODELS, PROMPT, Crash, MortalDatabase

TURNS = 3


@tool(policy=Policy.IDEMPOTENT)
async def append(ctx: ToolContext, n: int) -> str:
    """Adds a line: twice is not once, unless the workspace goes back with the record."""
    sandbox = await ctx.needs_sandbox()
    outcome = await sandbox.run(["sh", "-c", f"echo {n} >> log; cat log"])
    await ctx.keep_file(f"{n}.log", outcome.stdout, mime="text/plain")
    return outcome.stdout.decode()


@tool(policy=Policy.READ_ONLY)
async def think() -> str:
    """Needs no sandbox."""
    return "hm"


def _answer(request: Request) -> Turn:
    n = sum(message.role == Role.ASSISTANT for message in request.messages)
    if n == TURNS:
        return Turn(text="done", usage=Usage(1, 1))
    return Turn(calls=(CallTurn("append", {"n": n}, id=f"a{n}"), CallTurn("think", {}, id=f"t{n}")), usage=Usage(1, 1))


async def _activate(records: Records, workspace: Workspace, epoch: int, database: MortalDatabase) -> LoopResult:
    recorder = Recorder(database, "t1", epoch, run_id="r1")
    await recorder.begin()
    context = ToolContext(task_id="t1", key="t1", sandbox=workspace.sandbox, files=workspace.keep_file)
    tools = Toolbox([append, think])
    provider = ScriptedProvider(_answer)
    options = LoopOptions(limits=LIMITS, context=context, saves=workspace.stage)
    loop = AgentLoop(recorder, provider, MODELS, tools, options)
    return await loop.run(MODEL, PROMPT)


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [5, 6, 7, 9])
async def test_each_step_on_record_has_its_files_once(
    records: Records, pool: SandboxPool, make: MakeWorkspace, at: int, is_after: bool
) -> None:
    """The worker of each activation dies at the same of its writes, so that each gets a little further."""
    for epoch in range(1, 40):
        database = MortalDatabase(records.database, at=at, is_after=is_after)
        workspace = Workspace(records.files, pool, "t1", SPEC, epoch=epoch)
        try:
            result = await _activate(records, workspace, epoch, database)
        except Crash:
            continue
        finally:
            await workspace.close()
        break
    else:
        raise AssertionError("it came to no end")
    assert result.stop == Stop.ANSWER
    left = make(epoch=epoch)
    assert (await (await left.sandbox()).read("log")).data == b"0\n1\n2\n"
    files = {one.name: one for one in await records.files.of_run("r1")}
    assert sorted(files) == ["0.log", "1.log", "2.log"]
    assert await records.files.read(files["2.log"].id) == b"0\n1\n2\n"
    kinds = [event.kind for event in await records.runs.events("r1")]
    assert kinds.count(ProgressKind.CHECKPOINT_SAVED) == TURNS, "thinking needs no checkpoint"
    assert kinds.count(ProgressKind.ARTIFACT_CREATED) == TURNS


class Overtaken:
    """Two calls in each turn that add a line: the second comes to its end first wherever it can."""

    _PATIENCE_S = 1.0
    """For what comes much sooner, unless it cannot come at all."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._first_added = asyncio.Event()
        self._second_recorded = asyncio.Event()

    def tools(self) -> Toolbox:
        @tool(policy=Policy.IDEMPOTENT)
        async def first(ctx: ToolContext, n: int) -> str:
            """Adds a line, and takes a while to say so."""
            sandbox = await ctx.needs_sandbox()
            await sandbox.run(["sh", "-c", f"echo first {n} >> log"])
            self._first_added.set()
            await self._look_out_for(self._second_recorded)
            return "added"

        @tool(policy=Policy.IDEMPOTENT)
        async def second(ctx: ToolContext, n: int) -> str:
            """Adds a line."""
            await self._look_out_for(self._first_added)
            await (await ctx.needs_sandbox()).run(["sh", "-c", f"echo second {n} >> log"])
            return "added"

        return Toolbox([first, second])

    async def _look_out_for(self, event: asyncio.Event) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._PATIENCE_S):
                await event.wait()

    async def save(self, place: int) -> Also | None:
        row = await self._workspace.stage(place)
        if row is None or place % 5 != 3:
            return row

        async def of_the_second(connection: AsyncConnection) -> None:
            await row(connection)
            self._second_recorded.set()

        return of_the_second

    @staticmethod
    def answer(request: Request) -> Turn:
        n = sum(message.role == Role.ASSISTANT for message in request.messages)
        if n == TURNS:
            return Turn(text="done", usage=Usage(1, 1))
        calls = tuple(CallTurn(name, {"n": n}, id=f"{name}-{n}") for name in ("first", "second"))
        return Turn(calls=calls, usage=Usage(1, 1))


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [4, 5, 6, 7])
async def test_of_calls_side_by_side_none_does_twice_what_another_has_saved(
    records: Records, pool: SandboxPool, make: MakeWorkspace, at: int, is_after: bool
) -> None:
    for epoch in range(1, 40):
        workspace = Workspace(records.files, pool, "t1", SPEC, epoch=epoch)
        overtaken = Overtaken(workspace)
        recorder = Recorder(MortalDatabase(records.database, at=at, is_after=is_after), "t1", epoch, run_id="r1")
        await recorder.begin()
        context = ToolContext(task_id="t1", key="t1", sandbox=workspace.sandbox)
        options = LoopOptions(limits=LIMITS, context=context, saves=overtaken.save)
        loop = AgentLoop(recorder, ScriptedProvider(overtaken.answer), MODELS, overtaken.tools(), options)
        try:
            result = await loop.run(MODEL, PROMPT)
        except Crash:
            continue
        finally:
            await workspace.close()
        break
    else:
        raise AssertionError("it came to no end")
    assert result.stop == Stop.ANSWER
    log = (await (await make(epoch=epoch).sandbox()).read("log")).data.decode()
    assert sorted(log.splitlines()) == sorted(f"{name} {n}" for n in range(TURNS) for name in ("first", "second"))


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_a_run_stops_where_it_cannot_be_saved(records: Records, make: MakeWorkspace, tmp_path: Path) -> None:
    """The model is not told: there is nothing that it could do. The step is not on record."""

    @tool(name="append", policy=Policy.IDEMPOTENT)
    async def spoils(ctx: ToolContext, n: int) -> str:
        """Works, and then the disk is gone."""
        await (await ctx.needs_sandbox()).write("log", b"%d" % n)
        (tmp_path / "blobs").write_text("no folder")
        return "ok"

    workspace = make(epoch=1)
    recorder = Recorder(records.database, "t1", 1, run_id="r1")
    await recorder.begin()
    context = ToolContext(task_id="t1", key="t1", sandbox=workspace.sandbox)
    tools, provider = Toolbox([spoils, think]), ScriptedProvider(_answer)
    options = LoopOptions(limits=LIMITS, context=context, saves=workspace.stage)
    loop = AgentLoop(recorder, provider, MODELS, tools, options)
    with pytest.raises(CheckpointFailed):
        await loop.run(MODEL, PROMPT)
    place = recorder.at(1)
    assert place is not None
    assert place.value is None
