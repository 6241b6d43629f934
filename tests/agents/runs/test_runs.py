"""A request becomes a run, a worker does its task, and all of it is on record."""

import asyncio
from typing import Any

import pytest

from bullpen.agents.agents import Agents
from bullpen.agents.llm.scripted import CallTurn, Fault, Turn
from bullpen.agents.llm.words import Request, Role, StopReason, Usage
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, tool
from bullpen.agents.words import TaskRequest, TaskResult
from bullpen.errors import BadOption, CreditsShort, ModelUnknown, RecordMissing, WrongState
from bullpen.records.records import Records
from bullpen.records.runs.words import ProgressKind, TaskState
from tests.agents.runs.conftest import TENANT, Making, says, working

_PATIENCE_S = 60


@tool(policy=Policy.READ_ONLY)
async def look(n: int) -> str:
    """Look at something."""
    return f"seen {n}"


def looks_and_answers(request: Request) -> Turn:
    """One call of a tool, and then what it said."""
    last = request.messages[-1]
    if last.role is Role.TOOL:
        return Turn(text=f"it said: {last.results[0].text}", usage=Usage(10, 20))
    return Turn(text="let me look", calls=(CallTurn("look", {"n": 7}, id="c1"),), usage=Usage(10, 20))


async def test_a_request_is_done_and_its_result_has_all_that_happened(agents_with: Making, records: Records) -> None:
    async with agents_with(looks_and_answers, [look]) as agents:
        sent = await agents.submit("What is it?", tenant=TENANT, created_by="ann")
        assert sent.state == "queued"
        async with working(agents):
            result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        assert (result.status, result.exit_code, result.stop_reason) == ("completed", 0, "answer")
        assert result.output == "it said: seen 7"
        assert (result.steps_executed, result.tool_calls_made, result.llm_calls_made) == (2, 1, 2)
        assert result.tokens_used.total_tokens == 60
        assert result.credits_charged == 60 * 100
        run = await agents.run(sent.run_id)
        assert (run.state, run.created_by) == (TaskState.COMPLETED, "ann")
        kinds = [event.kind async for event in agents.follow(sent.run_id)]
        assert kinds[0] is ProgressKind.JOB_STARTED
        assert kinds[-1] is ProgressKind.JOB_COMPLETED
        assert kinds.count(ProgressKind.TOOL_COMPLETED) == 1
        assert kinds.count(ProgressKind.STEP_STARTED) == kinds.count(ProgressKind.STEP_COMPLETED) == 2
        purse = await records.credits.balance(TENANT)
        assert (purse.held, purse.spent) == (0, 6_000)
        assert await records.credits.unbalanced() == []


async def test_what_is_told_is_numbered_without_a_gap_and_read_from_any_place(agents_with: Making) -> None:
    async with agents_with(looks_and_answers, [look]) as agents, working(agents):
        sent = await agents.submit("What is it?", tenant=TENANT)
        whole = [event async for event in agents.follow(sent.run_id)]
        assert [event.number for event in whole] == list(range(1, len(whole) + 1))
        assert [event async for event in agents.follow(sent.run_id, after=3)] == whole[3:]


async def test_a_model_that_is_away_for_a_while_is_asked_again(agents_with: Making) -> None:
    asked = 0

    def fails_once(_: Request) -> Turn:
        nonlocal asked
        asked += 1
        return Turn(error=Fault("model-error")) if asked <= 4 else Turn(text="there", usage=Usage(1, 1))

    async with agents_with(fails_once) as agents:
        sent = await agents.submit("go", tenant=TENANT, priority="critical")
        async with working(agents):
            result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        kinds = [event.kind async for event in agents.follow(sent.run_id)]
        assert result.output == "there"
        assert ProgressKind.JOB_RETRYING in kinds


async def test_a_run_that_takes_too_long_ends_so(agents_with: Making, records: Records) -> None:
    async with agents_with(_asks_for("wait_long"), [_endless()]) as agents:
        sent = await agents.submit("go", tenant=TENANT, timeout=0.5)
        async with working(agents):
            result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        assert (result.status, result.exit_code) == ("timeout", 124)
        assert result.error is not None
        assert result.error.code == "E011"
        assert (await records.credits.balance(TENANT)).held == 0


def _asks_for(name: str) -> object:
    return lambda _: Turn(calls=(CallTurn(name, {}, id="c1"),), usage=Usage(10, 20))


def _endless(began: asyncio.Event | None = None) -> Tool:
    @tool(policy=Policy.READ_ONLY)
    async def wait_long() -> str:
        """Wait."""
        if began is not None:
            began.set()
        await asyncio.Event().wait()
        return "never"

    return wait_long


async def test_a_waiting_run_is_cancelled_at_once_and_nothing_is_spent(agents_with: Making, records: Records) -> None:
    async with agents_with(says("hello")) as agents:
        sent = await agents.submit("go", tenant=TENANT)
        [result] = await agents.cancel(sent.run_id)
        assert (result.status, result.credits_charged) == ("cancelled", 0)
        assert (await agents.run(sent.run_id)).state is TaskState.CANCELLED
        purse = await records.credits.balance(TENANT)
        assert (purse.held, purse.spent) == (0, 0)
        with pytest.raises(WrongState):
            await agents.cancel(sent.run_id)


async def test_a_run_is_cancelled_in_the_middle_of_a_tool(agents_with: Making, records: Records) -> None:
    began = asyncio.Event()
    async with agents_with(_asks_for("wait_long"), [_endless(began)]) as agents, working(agents):
        sent = await agents.submit("go", tenant=TENANT)
        async with asyncio.timeout(_PATIENCE_S):
            await began.wait()
            [result] = await agents.cancel(sent.run_id)
            job = agents.pen.queue("agent-standard").job(sent.task_id)
            while (await job.record()).finished_ms is None:
                await asyncio.sleep(0.05)
        assert result.error is not None
        assert result.error.code == "E012"
        assert [event.kind async for event in agents.follow(sent.run_id)][-1] is ProgressKind.JOB_CANCELLED
        assert (await records.credits.balance(TENANT)).held == 0
        assert await records.credits.unbalanced() == []


async def test_more_than_there_is_cannot_be_asked_for(agents_with: Making, records: Records) -> None:
    async with agents_with(says("hello"), deposit=15) as agents:
        await agents.submit("go", tenant=TENANT)
        with pytest.raises(CreditsShort):
            await agents.submit("go", tenant=TENANT)
        with pytest.raises(RecordMissing, match="tenant"):
            await agents.submit("go", tenant="nobody")
        assert len((await records.runs.page(tenant=TENANT)).runs) == 1


async def test_a_run_stops_before_a_call_that_it_could_not_pay(agents_with: Making, records: Records) -> None:
    def talks_on(_: Request) -> Turn:
        return Turn(calls=(CallTurn("look", {"n": 1}),), usage=Usage(1, 4_096))

    async with agents_with(talks_on, [look], deposit=11) as agents:
        sent = await agents.submit("go", tenant=TENANT)
        async with working(agents):
            result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        assert result.stop_reason == "credits"
        assert result.error is not None
        assert result.error.code == "E003"
        purse = await records.credits.balance(TENANT)
        assert purse.available >= 0
        assert purse.held == 0
        assert purse.spent == result.credits_charged


async def test_a_run_names_why_it_stopped(agents_with: Making) -> None:
    """An answer that was cut off, one that was refused, one after all tokens, and one without any tool."""

    def answer(request: Request) -> Turn:
        asked = next(message.text for message in request.messages if message.role is Role.USER)
        match asked:
            case "cut":
                return Turn(stop=StopReason.MAX_TOKENS, usage=Usage(10, 20))
            case "refuse":
                return Turn(text="I cannot", stop=StopReason.REFUSED, usage=Usage(10, 20))
            case "look":
                return Turn(calls=(CallTurn("look", {"n": 7}),), usage=Usage(10, 20))
            case _:
                return Turn(text=f"{len(request.tools)} tools", usage=Usage(10, 20))

    async with agents_with(answer, [look]) as agents, working(agents):

        async def come_to(prompt: str, **more: Any) -> TaskResult:
            sent = await agents.submit(prompt, tenant=TENANT, **more)
            return await agents.result(sent.run_id, timeout=_PATIENCE_S)

        cut = await come_to("cut")
        assert (cut.status, cut.stop_reason, cut.error) == ("completed", "max_tokens", None)
        refused = await come_to("refuse")
        assert (refused.status, refused.stop_reason, refused.output) == ("failed", "error", "I cannot")
        assert refused.error is not None
        assert (refused.error.code, refused.error.retryable) == ("E007", False)
        used = await come_to("look", max_total_tokens=50)
        assert (used.status, used.stop_reason, used.steps_executed) == ("completed", "max_tokens", 2)
        bare = await come_to("go", max_tool_calls=0)
        assert (bare.stop_reason, bare.output) == ("answer", "0 tools")


@pytest.mark.parametrize(
    "request_, field",
    [
        (TaskRequest(prompt="  "), "prompt"),
        (TaskRequest(prompt="x" * 100_001), "prompt"),
        (TaskRequest(prompt="go", task_type="nonsense"), "task_type"),
        (TaskRequest(prompt="go", tools=("fly",)), "tools"),
        (TaskRequest(prompt="go", priority="soon"), "priority"),
        (TaskRequest(prompt="go", max_steps=0), "max_steps"),
        (TaskRequest(prompt="go", max_tool_calls=-1), "max_tool_calls"),
        (TaskRequest(prompt="go", max_total_tokens=0), "max_total_tokens"),
        (TaskRequest(prompt="go", max_tokens=10**9), "max_tokens"),
        (TaskRequest(prompt="go", max_credits=1), "max_credits"),
        (TaskRequest(prompt="go", timeout=-1), "timeout"),
        (TaskRequest(prompt="go", temperature=3), "temperature"),
    ],
)
async def test_a_bad_request_is_refused_by_the_name_of_its_field(
    agents_with: Making, records: Records, request_: TaskRequest, field: str
) -> None:
    async with agents_with(says("hello")) as agents:
        with pytest.raises(BadOption, match=f"^{field}"):
            await agents.submit(request_, tenant=TENANT)
        assert (await records.runs.page()).runs == ()


async def test_an_unknown_model_is_refused(agents_with: Making) -> None:
    async with agents_with(says("hello")) as agents:
        with pytest.raises(ModelUnknown):
            await agents.submit("go", tenant=TENANT, model="parott")


async def test_a_worker_that_must_stop_hands_its_run_to_another(agents_with: Making) -> None:
    """A deploy is no cancellation: what was done is on record, and the next worker goes on there."""
    began, may_end = asyncio.Event(), asyncio.Event()

    @tool(policy=Policy.READ_ONLY)
    async def look(n: int) -> str:
        """Look at something for long."""
        began.set()
        await may_end.wait()
        return f"seen {n}"

    async with agents_with(looks_and_answers, [look]) as agents:
        sent = await agents.submit("What is it?", tenant=TENANT)
        async with working(agents, grace=0.01):
            await began.wait()
        assert (await agents.run(sent.run_id)).state is TaskState.RUNNING
        may_end.set()
        async with working(agents):
            result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        assert (result.status, result.output, result.steps_executed) == ("completed", "it said: seen 7", 2)


async def test_an_application_has_its_agents_and_their_tools_at_hand(agents_with: Making) -> None:
    async with agents_with(looks_and_answers) as agents:
        pen = agents.pen
        assert pen.agents is agents

        @pen.tool(name="look", policy=Policy.READ_ONLY)
        async def glance(n: int) -> str:
            """Look quickly."""
            return f"glanced at {n}"

        async with working(agents):
            sent = await pen.agents.submit("What is it?", tenant=TENANT)
            assert (await pen.agents.result(sent.run_id, timeout=_PATIENCE_S)).output == "it said: glanced at 7"
        with pytest.raises(BadOption, match="agents"):
            Agents(pen)
