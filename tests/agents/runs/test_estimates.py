"""How long a new task will wait is told from what was measured, and not told where nothing was."""

import asyncio

from bullpen.agents.llm.scripted import CallTurn, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import tool
from bullpen.records.records import Records
from tests.agents.runs.conftest import TENANT, Making, jobs_are_there, says, working

_PATIENCE_S = 60


async def test_where_nobody_is_ahead_there_is_no_wait(agents_with: Making) -> None:
    async with agents_with(says("done")) as agents:
        first = await agents.submit("go", tenant=TENANT)
        await jobs_are_there(agents)
        assert first.estimated_wait_s == 0.0
        assert (
            await agents.submit("go", tenant=TENANT)
        ).estimated_wait_s is None  # nobody knows yet how long one takes


async def test_who_waits_is_told_by_how_long_tasks_took(agents_with: Making, records: Records) -> None:
    """Two slots, both busy, one task ahead: it waits for half of the usual time."""
    begun, go_on = asyncio.Semaphore(0), asyncio.Event()

    @tool(policy=Policy.READ_ONLY)
    async def hold() -> str:
        """Keep the slot."""
        begun.release()
        await go_on.wait()
        return "held"

    def answers(request: Request) -> Turn:
        if request.messages[0].text == "quick" or request.messages[-1].role is Role.TOOL:
            return Turn(text="done", usage=Usage(1, 1))
        return Turn(calls=(CallTurn("hold", {}, id="c1"),), usage=Usage(1, 1))

    async with agents_with(answers, [hold]) as agents, working(agents, concurrency=2):
        quick = await agents.submit("quick", tenant=TENANT)
        await agents.result(quick.run_id, timeout=_PATIENCE_S)
        [task] = await agents.tasks(quick.run_id)
        assert task.started_ms is not None
        assert task.finished_ms is not None
        for _ in range(2):
            await agents.submit("slow", tenant=TENANT)
        async with asyncio.timeout(_PATIENCE_S):
            await begun.acquire()
            await begun.acquire()
        await agents.submit("slow", tenant=TENANT)
        await jobs_are_there(agents)
        last = await agents.submit("slow", tenant=TENANT)
        assert last.estimated_wait_s == (task.finished_ms - task.started_ms) / 1000 / 2
        go_on.set()
        await agents.result(last.run_id, timeout=_PATIENCE_S)
