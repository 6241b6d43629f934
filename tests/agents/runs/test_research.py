"""Wide research: questions are worked on side by side, and what was found is joined."""

import msgspec
import pytest

from bullpen import Bullpen
from bullpen.agents.agents import Agents
from bullpen.agents.kinds import QUEUES
from bullpen.agents.llm.models import table_of
from bullpen.agents.llm.scripted import CallTurn, Fault, ScriptedProvider, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, tool
from bullpen.agents.words import TaskRequest, TaskResult
from bullpen.errors import BadOption
from bullpen.job.options import fixed
from bullpen.records.records import Records
from bullpen.records.runs.words import TaskState
from tests.agents.runs.conftest import TENANT, Making, working
from tests.agents.runs.models import MODELS
from tests.support.places import Place

_PATIENCE_S = 60
_QUEUE = "research-wide"
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


async def test_a_worker_whose_application_nobody_opened_joins_too(
    agents_with: Making, place: Place, records: Records
) -> None:
    """As `bullpen worker` runs one: its own store is open, and the application's is for its agents to open."""
    async with agents_with(researches) as asking:
        sent = await asking.submit(TaskRequest(prompt="the sky", task_type="wide_research"), tenant=TENANT)
        agents = Agents(Bullpen(place.store()), records, providers=[ScriptedProvider(researches)], models=MODELS)
        async with working(agents):
            result = await asking.result(sent.run_id, timeout=_PATIENCE_S)
        await agents.pen.close()
    assert "found out about sun" in result.output


async def test_too_few_answers_fail_it(agents_with: Making, records: Records) -> None:
    async with agents_with(researches) as agents, working(agents):
        result = await _run(agents, needs_answers=3)
        assert result.status == "failed"
        assert result.error is not None
        assert "2 of 3" in result.error.message
        assert (await records.credits.balance(TENANT)).held == 0


async def test_a_research_is_found_by_its_parts_and_by_its_error(agents_with: Making, records: Records) -> None:
    async with agents_with(researches) as agents, working(agents):
        result = await _run(agents, needs_answers=3)
        parts = [task.id for task in await agents.tasks(result.run_id) if task.parent is not None]
        other = await _run(agents, questions=("mars",))
    assert len(parts) > 1
    for words in (*parts, "E007 answered", result.task_id, "wide_research needed"):
        found = await records.runs.page(text=words)
        assert [run.id for run in found.runs] == [result.run_id], words
    both = await records.runs.page(text="agent_run", tenant=TENANT)
    assert [run.id for run in both.runs] == [other.run_id, result.run_id]


async def test_questions_may_be_given(agents_with: Making) -> None:
    async with agents_with(researches) as agents, working(agents):
        result = await _run(agents, questions=("mars", "venus"))
        assert "found out about mars" in result.output
        assert "found out about venus" in result.output


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUEUES, _QUEUE, msgspec.structs.replace(QUEUES[_QUEUE], backoff=fixed(0.01)))


@pytest.mark.usefixtures("short_pauses")
@pytest.mark.parametrize("plan", ["{", "[]", {"questions": 7}, {"questions": [" "]}, None])
async def test_a_plan_that_makes_no_sense_is_made_again(agents_with: Making, records: Records, plan: object) -> None:
    """It is paid, and it is not on record: the next attempt would find it there."""
    asked = 0

    def answer(request: Request) -> Turn:
        nonlocal asked
        asked += 1
        if asked > 1:
            return researches(request)
        calls = () if plan is None else (CallTurn("research", plan, id="p"),)  # type: ignore[arg-type]  # nonsense
        return Turn(text="Hm.", calls=calls, usage=_USAGE)

    async with agents_with(answer) as agents, working(agents):
        result = await _run(agents)
        assert result.status == "completed"
        assert "found out about sun" in result.output
        assert result.credits_charged == 5 * 30 * 100
        assert await records.credits.unbalanced() == []


@pytest.mark.usefixtures("short_pauses")
async def test_a_model_that_makes_no_plan_ever_is_said_to_have_failed(agents_with: Making, records: Records) -> None:
    def answer(_: Request) -> Turn:
        return Turn(calls=(CallTurn("research", "{", id="p"),), usage=_USAGE)

    async with agents_with(answer) as agents, working(agents):
        result = await _run(agents)
        assert result.error is not None
        assert (result.status, result.error.code) == ("failed", "E007")
        assert (await records.credits.balance(TENANT)).held == 0


class _Library:
    """A tool that counts its calls, and agents that each use it once."""

    def __init__(self) -> None:
        self.calls = 0

    def tool(self) -> Tool:
        @tool(policy=Policy.IDEMPOTENT, name="web_search")
        async def search(query: str) -> str:
            """Search."""
            self.calls += 1
            return f"{query}, the {self.calls}. search"

        return search

    def answer(self, request: Request) -> Turn:
        last = request.messages[-1]
        if last.role is Role.TOOL:
            return Turn(text=f"found {last.results[0].text}", usage=_USAGE)
        if "# What was found" in last.text:
            return Turn(text="joined: " + last.text.split("# What was found")[1], usage=_USAGE)
        return Turn(calls=(CallTurn("web_search", {"query": last.text.split()[0]}, id="c1"),), usage=_USAGE)


async def test_a_dry_fork_of_a_research_finds_what_each_of_its_agents_found(agents_with: Making) -> None:
    library = _Library()
    async with agents_with(library.answer, [library.tool()]) as agents, working(agents):
        first = await _run(agents, questions=("mars", "venus"))
        fork = await agents.fork(first.task_id, at=0, dry=True)
        again = await agents.result(fork.run_id, timeout=_PATIENCE_S)
        assert "found mars, the" in first.output
        assert (again.output, library.calls) == (first.output, 2)
        # Of another prompt the questions are the same.
        other = await agents.fork(first.task_id, at=0, prompt="the sea", dry=True)
        assert (await agents.result(other.run_id, timeout=_PATIENCE_S)).output == first.output
        assert library.calls == 2


async def test_what_was_found_is_shortened_to_what_the_model_can_read(agents_with: Making) -> None:
    asked: list[str] = []

    def answer(request: Request) -> Turn:
        last = request.messages[-1].text
        if "# What was found" in last:
            asked.append(last)
            return Turn(text="joined", usage=_USAGE)
        return Turn(text=last.split()[0] * 20_000, usage=_USAGE)

    small = table_of(
        {
            "version": "test",
            "credits_per_dollar": "100",
            "models": {
                "parrot": {
                    "provider": "scripted", "context_window": 8_000, "max_output": 1_000, "input": "1", "output": "1",
                }
            },
        }
    )  # fmt: skip
    async with agents_with(answer, models=small) as agents, working(agents):
        result = await _run(agents, questions=("sun", "moon", "stars"))
    assert result.output == "joined"
    assert len(asked[0]) < 8_000 * 3
    for question in ("sun", "moon", "stars"):
        assert question * 900 in asked[0]


async def test_it_joins_what_there_is_when_its_time_is_over(agents_with: Making, records: Records) -> None:
    """One of its two agents is never begun: the queue is paused."""

    @tool(policy=Policy.IDEMPOTENT, name="web_search")
    async def search() -> str:
        """Search, and let nobody begin after that."""
        await agents.pen.queue("agent-standard").pause()
        return "found"

    def answer(request: Request) -> Turn:
        last = request.messages[-1]
        if "# What was found" in last.text:
            return Turn(text="joined: " + last.text.split("# What was found")[1], usage=_USAGE)
        calls = () if last.role is Role.TOOL else (CallTurn("web_search", {}, id="c1"),)
        return Turn(text="" if calls else "an answer", calls=calls, usage=_USAGE)

    async with agents_with(answer, [search]) as agents, working(agents, concurrency=1):
        result = await _run(agents, questions=("sun", "moon"), timeout=6.0)
        assert result.status == "completed"
        assert "an answer" in result.output
        assert "No answer was found." in result.output
        parts = [task.state for task in await agents.tasks(result.run_id) if task.parent is not None]
        assert set(parts) == {TaskState.COMPLETED, TaskState.CANCELLED}
        assert (await records.credits.balance(TENANT)).held == 0
        assert await records.credits.unbalanced() == []


async def test_an_agent_that_needs_more_than_was_set_aside_for_it_spends_up_to_its_limit(
    agents_with: Making, records: Records
) -> None:
    """Its call costs 90 credits: 80 are set aside for it, all that its run has, and 160 are its limit."""
    output = 4_096
    asked = Usage(0, output)

    def answer(request: Request) -> Turn:
        return Turn(text="joined" if "# What was found" in request.messages[-1].text else "found", usage=asked)

    dear = table_of(
        {
            "version": "test",
            "credits_per_dollar": "100",
            "models": {
                "parrot": {
                    "provider": "scripted", "context_window": 100_000, "max_output": output, "input": "0",
                    "output": "220",
                }
            },
        }
    )  # fmt: skip
    async with agents_with(answer, models=dear) as agents, working(agents):
        result = await _run(agents, questions=("sun",), max_credits=200)
        assert (result.status, result.output) == ("completed", "joined")
        purse = await records.credits.balance(TENANT)
        assert (purse.held, purse.spent) == (0, 2 * output * 22_000) == (0, result.credits_charged)
        assert await records.credits.unbalanced() == []


async def test_one_that_cannot_pay_for_its_agents_ends_with_its_credits(agents_with: Making, records: Records) -> None:
    """What is set aside for it, and the rest of the purse, is less than its two agents need."""
    async with agents_with(researches, deposit=60) as agents, working(agents):
        result = await _run(agents, questions=("sun", "stars"), max_credits=200)
        assert result.error is not None
        assert (result.stop_reason, result.error.code) == ("credits", "E003")
        assert [task.id for task in await agents.tasks(result.run_id)] == [result.task_id]
        purse = await records.credits.balance(TENANT)
        assert (purse.held, purse.spent) == (0, 0)
        assert await records.credits.unbalanced() == []


async def test_all_of_it_is_cancelled(agents_with: Making, records: Records) -> None:
    def never_answers(request: Request) -> Turn:
        planned = researches(request)
        return planned if planned.calls else Turn(text="too late", delay=2 * _PATIENCE_S)

    async with agents_with(never_answers) as agents:
        sent = await agents.submit(TaskRequest(prompt="the sky", task_type="wide_research"), tenant=TENANT)
        async with working(agents):
            async for event in agents.follow(sent.run_id):
                if "tasks" in event.data:
                    break
            await agents.cancel(sent.run_id)
        assert [task.state for task in await agents.tasks(sent.run_id)] == [TaskState.CANCELLED] * 4
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
