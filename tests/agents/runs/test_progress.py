"""How far a tool is, told while it works."""

import asyncio

from bullpen.agents.agents import Agents
from bullpen.agents.llm.scripted import CallTurn, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import ToolContext, tool
from bullpen.records.runs.words import ProgressEvent, ProgressKind
from tests.agents.runs.conftest import TENANT, Making, working

_PATIENCE_S = 60


def _asks(request: Request) -> Turn:
    if request.messages[-1].role is Role.TOOL:
        return Turn(text="done", usage=Usage(1, 1))
    return Turn(calls=(CallTurn("work", {}, id="c1"),), usage=Usage(1, 1))


async def _told(agents: Agents, release: asyncio.Event) -> list[ProgressEvent]:
    """The events of a run whose tool goes on once its progress was told."""
    sent = await agents.submit("go", tenant=TENANT)
    found: list[ProgressEvent] = []
    async with asyncio.timeout(_PATIENCE_S):
        async for event in agents.follow(sent.run_id):
            found.append(event)
            if event.kind is ProgressKind.TOOL_PROGRESS:
                release.set()
    return found


def _check(events: list[ProgressEvent], message: str) -> None:
    kinds = [event.kind for event in events]
    assert kinds.index(ProgressKind.TOOL_STARTED) < kinds.index(ProgressKind.TOOL_PROGRESS)
    assert kinds.index(ProgressKind.TOOL_PROGRESS) < kinds.index(ProgressKind.TOOL_COMPLETED)
    first = next(event for event in events if event.kind is ProgressKind.TOOL_PROGRESS)
    assert first.data == {"call_id": "c1", "tool_name": "work", "message": message, "status": "progress"}


async def test_a_tool_tells_how_far_it_is(agents_with: Making) -> None:
    release = asyncio.Event()

    @tool(policy=Policy.READ_ONLY)
    async def work(ctx: ToolContext) -> str:
        """Work in two parts."""
        ctx.tell("1 of 2")
        await release.wait()
        return "2 of 2"

    async with agents_with(_asks, [work]) as agents, working(agents):
        _check(await _told(agents, release), "1 of 2")


async def test_a_tool_in_a_thread_tells_too(agents_with: Making) -> None:
    release = asyncio.Event()
    loop = asyncio.get_running_loop()

    @tool(policy=Policy.READ_ONLY)
    def work(ctx: ToolContext) -> str:
        """Work in two parts."""
        ctx.tell("1 of 2")
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result()
        return "2 of 2"

    async with agents_with(_asks, [work]) as agents, working(agents):
        _check(await _told(agents, release), "1 of 2")


async def test_nobody_has_to_listen() -> None:
    ToolContext(task_id="r", key="r/1").tell("1 of 2")
