"""Records that do not answer for a while end no run: it goes on at its step when they are back."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from bullpen import Bullpen, SqliteStore
from bullpen.agents import records_outage
from bullpen.agents.agents import Agents
from bullpen.agents.llm.scripted import CallTurn, ScriptedProvider, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.records_outage import RecordsOutage
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, tool
from bullpen.agents.words import Submitted
from bullpen.errors import Postpone, RecordsUnavailable
from bullpen.job.record import JobRecord
from bullpen.records.records import Records
from bullpen.records.runs.words import ProgressKind
from tests.agents.runs.conftest import TENANT, jobs_are_there, working
from tests.agents.runs.models import MODELS
from tests.support.postgres_server import PostgresServer
from tests.worker.waiting import until

_PATIENCE_S = 60
_ACTIVATIONS = 8
"""More than the attempts that the task has."""


class _Library:
    """A tool in the middle of whose call the records go away, and a model that uses it once."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.calls = self.asked = 0

    def tools(self) -> list[Tool]:
        @tool(policy=Policy.READ_ONLY)
        async def look() -> str:
            """Look it up."""
            self.calls += 1
            if self.calls == 1:
                await asyncio.to_thread(self._server.halt)
            return "seen"

        return [look]

    def answer(self, request: Request) -> Turn:
        self.asked += 1
        if request.messages[-1].role is Role.TOOL:
            return Turn(text=f"I have {request.messages[-1].results[0].text} it", usage=Usage(10, 20))
        return Turn(calls=(CallTurn("look", {}, id="c1"),), usage=Usage(10, 20))


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_outage, "SHORTEST_S", 0.05)
    monkeypatch.setattr(records_outage, "LONGEST_S", 0.05)


@contextmanager
def _resumed(server: PostgresServer) -> Iterator[None]:
    """Whatever happens in the block, the other tests have their server."""
    try:
        yield
    finally:
        server.restart()


@asynccontextmanager
async def _agents(place: Path, address: str, library: _Library) -> AsyncIterator[Agents]:
    """Not opened: their records are, with the first task."""
    async with Bullpen(SqliteStore(place)) as pen:
        provider = ScriptedProvider(library.answer)
        agents = Agents(pen, address, providers=[provider], models=MODELS, tools=library.tools())
        try:
            yield agents
        finally:
            await agents.close()


async def _activated(agents: Agents, sent: Submitted, queue: str) -> JobRecord:
    """Its job, once it was given back so often."""

    async def look() -> JobRecord:
        return await agents.pen.queue(queue).job(sent.task_id).record()

    return await until(look, lambda job: job.epoch >= _ACTIVATIONS or job.attempts_made > 0)


async def _starts(agents: Agents, sent: Submitted) -> list[int]:
    """Which attempt each activation was told to be, after the run's end."""
    told = [event async for event in agents.follow(sent.run_id)]
    assert ProgressKind.JOB_RETRYING not in {event.kind for event in told}
    return [event.data["attempt"] for event in told if event.kind is ProgressKind.JOB_STARTED]


async def test_a_run_goes_on_at_its_step_when_its_records_are_back(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    """They go away while a tool works: what it came to cannot be put on record."""
    library = _Library(postgres_server)
    with _resumed(postgres_server):
        async with _agents(tmp_path / "queue.db", postgres_server.new_database(), library) as agents:
            await agents.deposit(TENANT, 1_000, key="first")
            sent = await agents.submit("go", tenant=TENANT)
            await jobs_are_there(agents)
            async with working(agents):
                job = await _activated(agents, sent, "agent-standard")
                assert job.attempts_made == 0
                await asyncio.to_thread(postgres_server.resume)
                result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
            assert (result.status, result.output) == ("completed", "I have seen it")
            assert (library.calls, library.asked) == (2, 2), "only the call that was under way is made again"
            assert set(await _starts(agents, sent)) == {1}
            assert await (await agents.records()).credits.unbalanced() == []


async def test_a_worker_that_finds_no_records_gives_its_tasks_back(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    """It has not opened them yet, as one that starts while they are away."""
    address, library = postgres_server.new_database(), _Library(postgres_server)
    library.calls = 1  # its tool halts nothing
    async with _agents(tmp_path / "queue.db", address, library) as asking:
        await asking.deposit(TENANT, 1_000, key="first")
        sent = await asking.submit("go", tenant=TENANT)
        await jobs_are_there(asking)
    with _resumed(postgres_server):
        await asyncio.to_thread(postgres_server.halt)
        async with _agents(tmp_path / "queue.db", address, library) as agents, working(agents):
            job = await _activated(agents, sent, "agent-standard")
            assert job.attempts_made == 0
            await asyncio.to_thread(postgres_server.resume)
            async with await Records.open(address) as records:
                await until(lambda: records.runs.get(sent.run_id), lambda run: run.state.is_final)
            assert (await agents.result(sent.run_id)).status == "completed"


def test_pauses_grow_with_the_outage_and_begin_anew_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # as long as they usually are
    now_s = 0.0
    outage = RecordsOutage(lambda: now_s)

    def pause_s() -> float:
        with pytest.raises(Postpone) as told, outage.outlasted():
            raise RecordsUnavailable("gone")
        return told.value.delay

    paused: list[float] = []
    for _ in range(8):
        paused.append(pause_s())
        now_s += paused[-1]
    assert paused == [1, 1, 2, 4, 8, 16, 30, 30]
    now_s += 3_600
    assert pause_s() == 1
