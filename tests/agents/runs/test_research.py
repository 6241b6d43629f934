"""Wide research: questions are worked on side by side, and what was found is joined."""

import pytest

from bullpen.agents.agents import Agents
from bullpen.agents.llm.scripted import CallTurn, Fault, Turn
from bullpen.agents.llm.words import Request, Usage
from bullpen.agents.words import TaskRequest, TaskResult
from bullpen.errors import BadOption
from bullpen.records.records import Records
from bullpen.records.runs.words import TaskState
from tests.agents.runs.conftest import TENANT, Making, working

_PATIENCE_S = 60
_USAGE = Usage(10, 20)


def researches(request: Request) -> Turn:
    """Plans three questions, answers each but the one about the moon, and joins."""
    asked = request.messages[-1].text
    if request.tools and request.tools[0].name == "research":
        return Turn(calls=(CallTurn("research", {"questions": ["sun", "moon", "stars"]}, id="p"),), usage=_USAGE)
    if "# What was found" in asked:
        return Turn(text="joined: " + asked.split("# What was found")[1], usage=_USAGE)
    if asked.startswith("moon"):
        return Turn(error=Fault("content-refused"))
    return Turn(text=f"found out about {asked.split()[0]}", usage=_USAGE)


async def _run(agents: Agents, **more: object) -> TaskResult:
    request = TaskRequest(prompt="the sky", task_type="wide_research", **more)  # type: ignore[arg-type]  # by name
    sent = await agents.submit(request, tenant=TENANT)
    return await agents.result(sent.run_id, timeout=_PATIENCE_S)


async def test_what_agents_find_is_joined_and_what_they_do_not_is_left_out(
    agents_with: Making, records: Records
) -> None:
    async with agents_with(researches) as agents, working(agents):
        result = await _run(agents)
        assert result.status == "completed"
        assert "found out about sun" in result.output
        assert "found out about stars" in result.output
        assert "No answer was found." in result.output
        tasks = await agents.tasks(result.run_id)
        assert [task.state for task in tasks if task.parent is not None].count(TaskState.FAILED) == 1
        assert (await agents.run(result.run_id)).state is TaskState.COMPLETED
        purse = await records.credits.balance(TENANT)
        assert (purse.held, purse.spent) == (0, 4 * 30 * 100)
        assert result.credits_charged == purse.spent
        assert await records.credits.unbalanced() == []


async def test_too_few_answers_fail_it(agents_with: Making, records: Records) -> None:
    async with agents_with(researches) as agents, working(agents):
        result = await _run(agents, needs_answers=3)
        assert result.status == "failed"
        assert result.error is not None
        assert "2 of 3" in result.error.message
        assert (await records.credits.balance(TENANT)).held == 0


async def test_questions_may_be_given(agents_with: Making) -> None:
    async with agents_with(researches) as agents, working(agents):
        result = await _run(agents, questions=("mars", "venus"))
        assert "found out about mars" in result.output
        assert "found out about venus" in result.output


async def test_all_of_it_is_cancelled(agents_with: Making, records: Records) -> None:
    async with agents_with(researches) as agents:
        sent = await agents.submit(TaskRequest(prompt="the sky", task_type="wide_research"), tenant=TENANT)
        async with working(agents):
            async for event in agents.follow(sent.run_id):
                if "tasks" in event.data:
                    break
            await agents.cancel(sent.run_id)
        assert {task.state for task in await agents.tasks(sent.run_id)} <= {
            TaskState.CANCELLED, TaskState.COMPLETED, TaskState.FAILED,
        }  # fmt: skip
        assert (await records.credits.balance(TENANT)).held == 0
        assert await records.credits.unbalanced() == []


@pytest.mark.parametrize(
    "more, field",
    [
        ({"questions": ("",)}, r"^questions\[0\]"),
        ({"questions": ("a", "b"), "needs_answers": 3}, "^needs_answers"),
        ({"width": 0}, "^width"),
    ],
)
async def test_a_bad_research_is_refused(agents_with: Making, more: dict[str, object], field: str) -> None:
    async with agents_with(researches) as agents:
        with pytest.raises(BadOption, match=field):
            await _run(agents, **more)
