"""Agents on each store and each kind of records, with a worker beside them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from bullpen import Bullpen, WorkerOptions
from bullpen.agents.agents import Agents
from bullpen.agents.llm.models import ModelTable
from bullpen.agents.llm.retrying import Sleep
from bullpen.agents.llm.scripted import ScriptedProvider, Turn
from bullpen.agents.llm.words import Request, Usage
from bullpen.agents.surroundings import Surroundings
from bullpen.agents.tools.tool import Tool
from bullpen.records.records import Records
from bullpen.worker.worker import Worker
from tests.agents.runs.models import MODELS
from tests.server.conftest import address, kinds, place
from tests.support.places import Place, redis_server
from tests.support.postgres_server import postgres_server
from tests.worker.waiting import until

__all__ = ["address", "kinds", "place", "postgres_server", "redis_server"]

TENANT = "acme"

Answers = Callable[[Request], Turn]


def says(text: str) -> Answers:
    return lambda _: Turn(text=text, usage=Usage(10, 20))


@pytest.fixture
async def records(address: str) -> AsyncIterator[Records]:
    async with await Records.open(address) as records:
        yield records


Making = Callable[..., AbstractAsyncContextManager[Agents]]


@pytest.fixture
def agents_with(place: Place, records: Records) -> Making:
    """Agents whose model says what is given here, on an application of their own."""

    @asynccontextmanager
    async def make(
        answers: Answers,
        tools: Sequence[Tool] = (),
        *,
        deposit: int = 1_000,
        sleep: Sleep = asyncio.sleep,
        surroundings: Surroundings | None = None,
        models: ModelTable = MODELS,
    ) -> AsyncIterator[Agents]:
        async with Bullpen(place.store()) as pen:
            agents = Agents(
                pen,
                records,
                providers=[ScriptedProvider(answers, sleep=sleep)],
                models=models,
                tools=tools,
                surroundings=surroundings,
            )
            async with agents:
                if deposit:
                    await agents.deposit(TENANT, deposit, key="first")
                yield agents

    return make


@asynccontextmanager
async def working(agents: Agents, *, grace: float = 5.0, concurrency: int = 5) -> AsyncIterator[Worker]:
    """A worker of these agents for the length of a block."""
    worker = agents.pen.worker(options=WorkerOptions(grace=grace, concurrency=concurrency))
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await running


async def jobs_are_there(agents: Agents) -> None:
    """Wait until each submitted task has its job: the relay brings it, a moment after the answer."""
    relay = (await agents.records()).relay(agents.pen.store)
    await until(relay.standing, lambda standing: not standing.pending)
