"""A task whose tool or provider a worker has not is left to one that has it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from bullpen import Bullpen
from bullpen.agents.agents import Agents
from bullpen.agents.llm.models import table_of
from bullpen.agents.llm.provider import Provider
from bullpen.agents.llm.scripted import CallTurn, ScriptedProvider, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.loop.words import Answer
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, tool
from bullpen.agents.words import Submitted
from bullpen.errors import BadOption
from bullpen.job.record import JobRecord
from bullpen.job.state import State
from bullpen.records.records import Records
from bullpen.records.runs.words import ProgressEvent, ProgressKind, Task, TaskState
from tests.agents.runs.conftest import TENANT, working
from tests.agents.runs.models import MODEL, MODELS
from tests.support.places import Place
from tests.worker.waiting import until

_PATIENCE_S = 60

Making = Callable[..., AbstractAsyncContextManager[Agents]]


@tool(policy=Policy.READ_ONLY)
async def fly() -> str:
    """Fly."""
    return "flown"


@tool(policy=Policy.READ_ONLY)
async def walk() -> str:
    """Walk."""
    return "walked"


def _flies(request: Request) -> Turn:
    last = request.messages[-1]
    if last.role is Role.TOOL:
        return Turn(text=f"it has {last.results[0].text}", usage=Usage(10, 20))
    return Turn(calls=(CallTurn("fly", {}, id="c1"),), usage=Usage(10, 20))


@pytest.fixture
def equipped(place: Place, records: Records) -> Making:
    """An application on the same store and records, with these tools; None where only workers know them."""

    @asynccontextmanager
    async def make(
        tools: Sequence[Tool] | None, *, providers: Sequence[Provider] | None = None
    ) -> AsyncIterator[Agents]:
        async with Bullpen(place.store()) as pen:
            theirs = [ScriptedProvider(_flies)] if providers is None else providers
            async with Agents(pen, records, providers=theirs, models=MODELS, model=MODEL, tools=tools) as agents:
                await agents.deposit(TENANT, 1_000, key="first")
                yield agents

    return make


async def _job(agents: Agents, sent: Submitted) -> JobRecord:
    task = (await agents.tasks(sent.run_id))[0]
    return await agents.pen.queue(task.queue).job(task.id).record()


async def _waits(agents: Agents, sent: Submitted) -> JobRecord:
    """Its job, when it has been put back."""

    async def told() -> list[ProgressEvent]:
        return await _told(agents, sent)

    await until(told, bool)
    return await until(lambda: _job(agents, sent), lambda job: job.state is State.DELAYED)


async def _task(agents: Agents, sent: Submitted) -> Task:
    return (await agents.tasks(sent.run_id))[0]


async def _told(agents: Agents, sent: Submitted) -> list[ProgressEvent]:
    events = await (await agents.records()).runs.events(sent.run_id)
    return [event for event in events if event.kind is ProgressKind.JOB_SUSPENDED]


async def _looks(agents: Agents, sent: Submitted, more: int, *, since: int | None = None) -> None:
    """Until it was claimed so many more times, than now or than at that epoch."""
    before = (await _job(agents, sent)).epoch if since is None else since

    async def epoch() -> int:
        return (await _job(agents, sent)).epoch

    await until(epoch, lambda now: now >= before + more)


async def test_a_task_waits_for_a_worker_that_has_its_tool(equipped: Making) -> None:
    async with equipped(None) as asking, equipped([walk]) as unable, equipped([fly]) as able:
        sent = await asking.submit("go", tenant=TENANT, tools=("fly", "fly"))
        async with working(unable):
            job = await _waits(asking, sent)
            assert job.note == "waits for a worker that has the tool 'fly'"
            assert job.attempts_made == 0
            await _looks(asking, sent, 2)
            [told] = await _told(asking, sent)
            assert told.data["message"] == "waits for a worker that has the tool 'fly'"
            assert told.data["lack"] == {"tools": ["fly"]}
            assert (await asking.run(sent.run_id)).state is TaskState.QUEUED
        async with working(able):
            result = await asking.result(sent.run_id, timeout=_PATIENCE_S)
        assert result.output == "it has flown"
        events = [event async for event in asking.follow(sent.run_id)]
        [started] = [event for event in events if event.kind is ProgressKind.JOB_STARTED]
        assert started.data["attempt"] == 1


async def test_it_comes_to_the_worker_that_has_it_beside_one_that_has_not(equipped: Making) -> None:
    async with equipped(None) as asking, equipped([walk]) as unable, equipped([fly]) as able:
        async with working(unable), working(able):
            sent = [await asking.submit("go", tenant=TENANT, tools=("fly",)) for _ in range(4)]
            results = [await asking.result(one.run_id, timeout=_PATIENCE_S) for one in sent]
        assert [result.output for result in results] == ["it has flown"] * 4


async def test_each_thing_that_is_missing_is_told_once(equipped: Making) -> None:
    """Two workers each have one of two tools: none can do it, and both looked."""
    async with equipped(None) as asking, equipped([walk]) as one, equipped([fly]) as other:
        sent = await asking.submit("go", tenant=TENANT, tools=("fly", "walk"))
        async with working(one):
            await _waits(asking, sent)
        async with working(other):
            await _looks(asking, sent, 1)
            await until(lambda: _told(asking, sent), lambda told: len(told) == 2)
        async with working(one):
            await _looks(asking, sent, 1)
        first, second = await _told(asking, sent)
        assert (first.data["lack"], second.data["lack"]) == ({"tools": ["fly"]}, {"tools": ["fly", "walk"]})
        assert first.data["since_ms"] == second.data["since_ms"]


async def test_if_nobody_came_within_its_time_it_fails_and_names_the_tool(equipped: Making) -> None:
    async with equipped(None) as asking, equipped([walk]) as unable, working(unable):
        sent = await asking.submit("go", tenant=TENANT, tools=("fly",), timeout=1.5)
        result = await asking.result(sent.run_id, timeout=_PATIENCE_S)
        assert result.error is not None
        assert (result.status, result.error.code, result.error.retryable) == ("failed", "E001", False)
        assert "'fly'" in result.error.message
        assert (result.credits_charged, result.steps_executed) == (0, 0)
        assert len(await _told(asking, sent)) == 1
        purse = await (await asking.records()).credits.balance(TENANT)
        assert (purse.held, purse.spent) == (0, 0)
        job = await until(lambda: _job(asking, sent), lambda job: job.state is State.FAILED)
        assert "E001" in (job.failure.message if job.failure else "")


async def test_a_task_waits_for_a_worker_that_has_a_provider_of_its_model(equipped: Making) -> None:
    async with equipped(None) as asking, equipped([fly], providers=[]) as unable, equipped([fly]) as able:
        sent = await asking.submit("go", tenant=TENANT)
        async with working(unable):
            assert "a provider of the model 'parrot'" in ((await _waits(asking, sent)).note or "")
        async with working(able):
            assert (await asking.result(sent.run_id, timeout=_PATIENCE_S)).output == "it has flown"
        late = await asking.submit("go", tenant=TENANT, timeout=1)
        async with working(unable):
            error = (await asking.result(late.run_id, timeout=_PATIENCE_S)).error
        assert error is not None
        assert (error.code, error.retryable) == ("E007", False)
        assert "'parrot'" in error.message
        assert "parrot" not in error.user_facing_message


async def test_a_fallback_whose_provider_is_there_will_do(place: Place, records: Records) -> None:
    model = {"context_window": 100_000, "max_output": 4_096, "input": "1", "output": "1"}
    table = {
        "gpt": {"provider": "openai", **model, "fallbacks": ["parrot"]},
        "parrot": {"provider": "scripted", **model},
    }
    models = table_of({"version": "test", "credits_per_dollar": "100", "models": table})
    async with Bullpen(place.store()) as pen:
        async with Agents(pen, records, providers=[ScriptedProvider(_flies)], models=models, tools=[fly]) as agents:
            await agents.deposit(TENANT, 1_000)
            async with working(agents):
                sent = await agents.submit("go", tenant=TENANT, model="gpt")
                assert (await agents.result(sent.run_id, timeout=_PATIENCE_S)).output == "it has flown"


async def test_a_question_to_a_person_stands_though_a_worker_looks_that_cannot_go_on(equipped: Making) -> None:
    began = asyncio.Event()

    @tool(name="fly", policy=Policy.ONCE)
    async def flies_once() -> str:
        """Fly, and never land."""
        began.set()
        await asyncio.Event().wait()
        return "never"

    async with equipped(None) as asking, equipped([]) as unable, equipped([flies_once]) as able:
        sent = await asking.submit("go", tenant=TENANT, tools=("fly",))
        async with working(able, grace=0):
            await began.wait()
        async with working(able):
            task = await until(lambda: _task(asking, sent), lambda task: task.question is not None)
        job = asking.pen.queue(task.queue).job(task.id)
        before = await until(lambda: _job(asking, sent), lambda job: job.state is State.DELAYED)
        async with working(unable):
            await job.promote()
            await _looks(asking, sent, 1, since=before.epoch)
            parked = await until(lambda: _job(asking, sent), lambda job: job.state is State.DELAYED)
            assert parked.note == "waits for an answer about fly"
            assert (await _task(asking, sent)).question == task.question
            await asking.answer(task.id, Answer(result="landed"))
            await until(lambda: _job(asking, sent), lambda job: "the tool 'fly'" in (job.note or ""))
        async with working(able):
            assert (await asking.result(sent.run_id, timeout=_PATIENCE_S)).output == "it has landed"


async def test_where_tools_are_known_an_unknown_one_is_refused_at_once(equipped: Making) -> None:
    async with equipped([walk]) as agents:
        with pytest.raises(BadOption, match="'fly'"):
            await agents.submit("go", tenant=TENANT, tools=("fly",))
