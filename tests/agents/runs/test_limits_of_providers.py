"""A provider that has enough holds back the tasks of all workers, and they go on by themselves."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from bullpen import Bullpen
from bullpen.agents.agents import Agents
from bullpen.agents.llm.models import ModelTable, table_of
from bullpen.agents.llm.openai import OpenAIProvider
from bullpen.agents.llm.provider import Provider
from bullpen.agents.llm.scripted import ScriptedProvider, Turn
from bullpen.agents.llm.words import Usage
from bullpen.agents.words import Submitted
from bullpen.errors import QueueMissing
from bullpen.records.records import Records
from bullpen.records.runs.words import ProgressKind
from tests.agents.llm.asking import endpoint
from tests.agents.llm.openai_server import stream, whole, words
from tests.agents.llm.wire_server import Answer, WireServer, serving
from tests.agents.runs.conftest import TENANT, working
from tests.support.places import Place
from tests.worker.waiting import until

_QUEUE = "agent-standard"
_PATIENCE_S = 60
_HELD_MS = 2_000
_REFUSED = whole({"error": {"message": "slow down"}}, 429, retry_after_ms=str(_HELD_MS))
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


async def _closed_until_ms(agents: Agents) -> int:
    async def look() -> int:
        try:
            return (await agents.pen.queue(_QUEUE).limits()).closed_until_ms or 0
        except QueueMissing:
            return 0  # its first job is on its way

    return await until(look, bool)


async def _submit(agents: Agents) -> Submitted:
    return await agents.submit("hello?", tenant=TENANT)


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
        closed_until_ms = await _closed_until_ms(other)
        later = [await _submit(agents) for agents in (one, other) for _ in range(3)]
        assert min(await _starts_ms(one, later)) >= closed_until_ms
        assert (await one.result(first.run_id, timeout=_PATIENCE_S)).output == "hi"
        told = [event async for event in one.follow(first.run_id)]
        starts = [event for event in told if event.kind is ProgressKind.JOB_STARTED]
        assert [event.data["attempt"] for event in starts] == [1, 1], "waiting uses no attempt up"
        assert starts[1].at_ms >= closed_until_ms
        [waits] = [event for event in told if event.kind is ProgressKind.JOB_RETRYING]
        assert waits.data["error"]["code"] == code
        assert len(server.asked) == 8, "nobody else ran into the wall"


@pytest.mark.parametrize("remaining", ["0", "100"], ids=["none", "too few for a reply"])
async def test_what_an_answer_says_of_tokens_holds_back_all_workers(two_workers: Both, remaining: str) -> None:
    told = stream(words("hi"), x_ratelimit_remaining_tokens=remaining, x_ratelimit_reset_tokens=f"{_HELD_MS}ms")
    async with serving(told, _ANSWERED) as server, two_workers(server) as (one, other):
        first = await _submit(one)
        closed_until_ms = await _closed_until_ms(other)
        later = [await _submit(agents) for agents in (one, other)]
        assert min(await _starts_ms(one, later)) >= closed_until_ms
        assert (await one.result(first.run_id, timeout=_PATIENCE_S)).output == "hi"


async def test_while_another_provider_can_stand_in_nothing_is_closed(two_workers: Both) -> None:
    enough = stream(words("hi"), x_ratelimit_remaining_tokens="0", x_ratelimit_reset_tokens="1h")
    models = _models(fallbacks=["parrot"])
    async with serving(enough, _REFUSED) as server, two_workers(server, models) as (one, _):
        answers = []
        for _ in range(2):
            sent = await _submit(one)
            answers.append((await one.result(sent.run_id, timeout=_PATIENCE_S)).output)
        assert answers == ["hi", "parroted"]
        assert (await one.pen.queue(_QUEUE).limits()).closed_until_ms is None


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
