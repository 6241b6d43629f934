"""A provider that has enough holds back its own tasks, on all workers and in all queues; they go on by themselves."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
import pytest
from sqlalchemy import update

from bullpen import Bullpen
from bullpen.agents.agents import Agents
from bullpen.agents.llm.health import HEALTHY, Health
from bullpen.agents.llm.models import ModelTable, table_of
from bullpen.agents.llm.openai import OpenAIProvider
from bullpen.agents.llm.provider import Provider
from bullpen.agents.llm.scripted import CallTurn, Fault, ScriptedProvider, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import ToolContext, tool
from bullpen.agents.words import Submitted
from bullpen.errors import JobMissing, QueueMissing
from bullpen.job.record import JobRecord
from bullpen.job.state import State
from bullpen.records.records import Records
from bullpen.records.runs.words import ProgressKind
from bullpen.records.tables.runs import task as task_table
from tests.agents.llm.asking import endpoint
from tests.agents.llm.openai_server import stream, whole, words
from tests.agents.llm.wire_server import Answer, WireServer, serving
from tests.agents.runs.conftest import TENANT, Making, working
from tests.support.places import Place
from tests.worker.waiting import until

_PATIENCE_S = 60
_HELD_MS = 2_000
_REFUSED_FOR_LONG = whole({"error": {"message": "slow down"}}, 429, retry_after="3600")
_ANSWERED = stream(words("hi"))

Both = Callable[..., AbstractAsyncContextManager[list[Agents]]]


def _models(**fallbacks: Any) -> ModelTable:
    model = {"context_window": 100_000, "max_output": 4_096, "input": "1", "output": "1"}
    table = {"gpt": {"provider": "openai", **model, **fallbacks}, "parrot": {"provider": "scripted", **model}}
    return table_of({"version": "test", "credits_per_dollar": "100", "models": table})


@pytest.fixture
def two_workers(place: Place, records: Records) -> Both:
    """Two applications on one store, each with a worker of its own, which ask the same server."""

    @asynccontextmanager
    async def make(server: WireServer, models: ModelTable | None = None) -> AsyncIterator[list[Agents]]:
        both = []
        async with AsyncExitStack() as stack:
            for _ in range(2):
                pen = await stack.enter_async_context(Bullpen(place.store()))
                parrot = ScriptedProvider(lambda _: Turn(text="parroted", usage=Usage(1, 1)))
                providers: list[Provider] = [OpenAIProvider(endpoint(server.url)), parrot]
                agents = Agents(pen, records, providers=providers, models=models or _models(), model="gpt")
                both.append(await stack.enter_async_context(agents))
            await both[0].deposit(TENANT, 1_000, key="first")
            for agents in both:
                await stack.enter_async_context(working(agents))
            yield both

    return make


async def _held_until_ms(agents: Agents) -> int:
    async def look() -> int:
        written = await (await agents.records()).providers.health("openai")
        return (msgspec.json.decode(written, type=Health) if written else HEALTHY).limited_until_ms

    return await until(look, bool)


async def _submit(agents: Agents, **more: Any) -> Submitted:
    return await agents.submit("hello?", tenant=TENANT, **more)


async def _set_aside(agents: Agents, sent: Submitted) -> JobRecord:
    """Its job, once a worker has looked at it and put it back."""
    task = (await agents.tasks(sent.run_id))[0]

    async def look() -> JobRecord | None:
        with contextlib.suppress(QueueMissing, JobMissing):  # the relay brings it, a moment after the answer
            return await agents.pen.queue(task.queue).job(task.id).record()
        return None

    job = await until(look, lambda job: job is not None and job.state is State.DELAYED and job.epoch > 0)
    assert job is not None
    return job


async def _starts_ms(agents: Agents, sent: list[Submitted]) -> list[int]:
    """When each began, once all are done."""
    for one in sent:
        assert (await agents.result(one.run_id, timeout=_PATIENCE_S)).output == "hi"
    tasks = [(await agents.tasks(one.run_id))[0] for one in sent]
    return [task.started_ms or 0 for task in tasks]


@pytest.mark.parametrize("status, code", [(429, "E008"), (503, "E007"), (529, "E007")])
async def test_after_a_429_or_an_overload_no_worker_claims_before_its_time(
    two_workers: Both, status: int, code: str
) -> None:
    refused = whole({"error": {"message": "slow down"}}, status, retry_after_ms=str(_HELD_MS))
    async with serving(refused, _ANSWERED) as server, two_workers(server) as (one, other):
        first = await _submit(one)
        held_until_ms = await _held_until_ms(other)
        later = [await _submit(agents) for agents in (one, other) for _ in range(3)]
        assert min(await _starts_ms(one, later)) >= held_until_ms
        assert (await one.result(first.run_id, timeout=_PATIENCE_S)).output == "hi"
        told = [event async for event in one.follow(first.run_id)]
        starts = [event for event in told if event.kind is ProgressKind.JOB_STARTED]
        assert [event.data["attempt"] for event in starts] == [1, 1], "waiting uses no attempt up"
        assert starts[1].at_ms >= held_until_ms
        [waits] = [event for event in told if event.kind is ProgressKind.JOB_RETRYING]
        assert waits.data["error"]["code"] == code
        assert len(server.asked) == 8, "nobody else ran into the wall"


@pytest.mark.parametrize("remaining", ["0", "100"], ids=["none", "too few for a reply"])
async def test_what_an_answer_says_of_tokens_holds_back_all_workers(two_workers: Both, remaining: str) -> None:
    told = stream(words("hi"), x_ratelimit_remaining_tokens=remaining, x_ratelimit_reset_tokens=f"{_HELD_MS}ms")
    async with serving(told, _ANSWERED) as server, two_workers(server) as (one, other):
        first = await _submit(one)
        held_until_ms = await _held_until_ms(other)
        later = [await _submit(agents) for agents in (one, other)]
        assert min(await _starts_ms(one, later)) >= held_until_ms
        assert (await one.result(first.run_id, timeout=_PATIENCE_S)).output == "hi"


async def test_tasks_of_another_provider_in_the_same_queue_go_on(two_workers: Both) -> None:
    async with serving(_REFUSED_FOR_LONG) as server, two_workers(server) as (one, other):
        first = await _submit(one)
        await _held_until_ms(other)
        for agents in (one, other):
            sent = await _submit(agents, model="parrot")
            assert (await one.tasks(sent.run_id))[0].queue == (await one.tasks(first.run_id))[0].queue
            assert (await agents.result(sent.run_id, timeout=_PATIENCE_S)).output == "parroted"
        assert (await _set_aside(one, first)).attempts_made == 0


async def test_tasks_of_the_provider_wait_in_each_queue_and_are_told_so_once(two_workers: Both) -> None:
    async with serving(_REFUSED_FOR_LONG) as server, two_workers(server) as (one, other):
        await _submit(one)
        held_until_ms = await _held_until_ms(other)
        sent = [await _submit(one, priority=urgency) for urgency in ("normal", "critical", "bulk")]
        jobs = [await _set_aside(one, each) for each in sent]
        assert len({job.queue for job in jobs}) == 3
        for job, each in zip(jobs, sent, strict=True):
            assert job.attempts_made == 0
            assert "each has enough for now" in (job.note or "")
            assert (job.run_at_ms or 0) >= held_until_ms
            [told] = await (await one.records()).runs.events(each.run_id)
            assert (told.kind, told.data["error"]["code"]) == (ProgressKind.JOB_SUSPENDED, "E008")
        assert len(server.asked) == 1, "nobody else ran into the wall"


async def test_one_that_waits_for_its_turn_may_wait_longer_than_it_may_take(two_workers: Both) -> None:
    """To wait in a line is not to work, whatever the line is."""
    async with serving(_REFUSED_FOR_LONG) as server, two_workers(server) as (one, other):
        await _submit(one)
        held_until_ms = await _held_until_ms(other)
        job = await _set_aside(one, await _submit(one, timeout=2))
        assert (job.run_at_ms or 0) >= held_until_ms


@pytest.mark.parametrize("by_header", [True, False], ids=["by its headers", "by a refusal"])
async def test_while_another_provider_can_stand_in_it_is_asked(two_workers: Both, by_header: bool) -> None:
    enough = stream(words("hi"), x_ratelimit_remaining_tokens="0", x_ratelimit_reset_tokens="1h")
    models = _models(fallbacks=["parrot"])
    first = enough if by_header else _REFUSED_FOR_LONG
    async with serving(first) as server, two_workers(server, models) as (one, other):
        answers = []
        for agents in (one, other, one):
            sent = await _submit(agents)
            answers.append((await agents.result(sent.run_id, timeout=_PATIENCE_S)).output)
        assert answers == ["hi" if by_header else "parroted", "parroted", "parroted"]
        assert len(server.asked) == 1, "nobody else ran into the wall"


async def test_more_overloads_than_there_are_attempts_fail_no_task(two_workers: Both) -> None:
    busy = whole({"error": {"message": "overloaded"}}, 529, retry_after_ms="50")
    async with serving(*[busy] * 8, _ANSWERED) as server, two_workers(server) as (one, _):
        sent = await _submit(one)
        assert (await one.result(sent.run_id, timeout=_PATIENCE_S)).output == "hi"
        assert (await (await one.records()).credits.balance(TENANT)).held == 0


@pytest.mark.parametrize("status", [429, 503])
async def test_a_task_waits_no_longer_than_it_may_take(two_workers: Both, status: int) -> None:
    always: Answer = whole({"error": {"message": "slow down"}}, status, retry_after_ms="900")
    async with serving(always) as server, two_workers(server) as (one, _):
        # Far longer than a call takes on a busy machine: one that its end cut off would be charged.
        sent = await one.submit("hello?", tenant=TENANT, timeout=4)
        result = await one.result(sent.run_id, timeout=_PATIENCE_S)
        assert (result.status, result.credits_charged) == ("timeout", 0)
        assert result.error is not None
        assert result.error.code == "E011"


async def test_what_a_task_waited_for_before_does_not_count_where_it_meets_a_limit(
    agents_with: Making, records: Records
) -> None:
    """It began an hour ago, as one does that a person had to answer, and has worked for a moment."""
    refusals = iter(range(2))

    @tool(policy=Policy.READ_ONLY)
    async def rest(ctx: ToolContext) -> str:
        """Rest."""
        async with records.database.writing() as connection:
            earlier = update(task_table).values(started_ms=task_table.c.started_ms - 3_600_000)
            await connection.execute(earlier.where(task_table.c.id == ctx.task_id))
        return "rested"

    def answer(request: Request) -> Turn:
        if request.messages[-1].role is not Role.TOOL:
            return Turn(calls=(CallTurn("rest", {}, id="c1"),), usage=Usage(1, 1))
        refused = next(refusals, None) is not None
        return Turn(error=Fault("model-limited", retry_after=0.05)) if refused else Turn(text="hi", usage=Usage(1, 1))

    async with agents_with(answer, [rest]) as agents, working(agents):
        sent = await _submit(agents, timeout=60)
        assert (await agents.result(sent.run_id, timeout=_PATIENCE_S)).output == "hi"
