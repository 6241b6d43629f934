"""A run is cancelled wherever it is: over on record at once, its handler and its sandbox gone soon after."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import msgspec
import pytest

from bullpen.agents.agents import Agents
from bullpen.agents.kinds import QUEUES
from bullpen.agents.llm.prices import micro
from bullpen.agents.llm.scripted import CallTurn, Turn
from bullpen.agents.llm.words import Request, Usage
from bullpen.agents.sandbox import Registry
from bullpen.agents.sandbox.processes import is_alive, marked
from bullpen.agents.surroundings import Sandboxed
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, tool
from bullpen.agents.words import Submitted, TaskResult
from bullpen.job.record import FailureKind, JobRecord
from bullpen.records.records import Records
from bullpen.records.runs.words import ProgressKind, TaskState
from tests.agents.runs.conftest import TENANT, Making, jobs_are_there, working
from tests.agents.runs.mortal import LIVES
from tests.agents.runs.spinning import asks_to_spin, pool_of, spinning_tool
from tests.support.places import Place
from tests.support.programs import ROOT
from tests.worker.waiting import until

_PATIENCE_S = 60
_DEPOSIT = 1_000
_QUEUE = "agent-standard"

needs_bubblewrap = pytest.mark.skipif(
    shutil.which("bwrap") is None and not os.environ.get("CI"), reason="bubblewrap is not installed"
)


async def _settled(agents: Agents, sent: Submitted) -> JobRecord:
    """Its job, once no handler has it any more."""
    await jobs_are_there(agents)
    job = agents.pen.queue(_QUEUE).job(sent.task_id)
    return await until(job.record, lambda record: record.finished_ms is not None)


async def _check(agents: Agents, records: Records, sent: Submitted, result: TaskResult) -> None:
    """Cancelled, told of as the last thing, and what was not used is back."""
    assert result.error is not None
    assert (result.status, result.exit_code, result.error.code) == ("cancelled", 130, "E012")
    assert (await agents.run(sent.run_id)).state is TaskState.CANCELLED
    kinds = [event.kind async for event in agents.follow(sent.run_id)]
    assert kinds[-1] is ProgressKind.JOB_CANCELLED
    assert kinds.count(ProgressKind.JOB_CANCELLED) == 1
    purse = await records.credits.balance(TENANT)
    assert (purse.held, purse.spent) == (0, result.credits_charged)
    assert purse.available == micro(_DEPOSIT) - purse.spent
    assert await records.credits.unbalanced() == []


async def test_while_it_waits(agents_with: Making, records: Records) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Turn:
        asked.append(request)
        return Turn(text="hello")

    async with agents_with(answer, deposit=_DEPOSIT) as agents:
        sent = await agents.submit("go", tenant=TENANT)
        [result] = await agents.cancel(sent.run_id)
        assert result.credits_charged == 0
        await _check(agents, records, sent, result)
        async with working(agents):
            await _settled(agents, sent)
        assert asked == []
        await _check(agents, records, sent, result)


async def test_while_a_model_speaks(agents_with: Making, records: Records) -> None:
    gone = asyncio.Event()
    pieces = 0

    async def falls_silent(_: float) -> None:
        nonlocal pieces
        pieces += 1
        if pieces > 3:
            try:
                await asyncio.Event().wait()
            finally:
                gone.set()

    def speaks(_: Request) -> Turn:
        return Turn(text="one two three four five", chunk=4, usage=Usage(10, 20))

    async with agents_with(speaks, deposit=_DEPOSIT, sleep=falls_silent) as agents, working(agents):
        sent = await agents.submit("go", tenant=TENANT)
        async with asyncio.timeout(_PATIENCE_S):
            async for event in agents.follow(sent.run_id):
                if event.kind is ProgressKind.LLM_STREAMING:
                    break
            [result] = await agents.cancel(sent.run_id)
            await gone.wait()
        await _settled(agents, sent)
        # Nobody knows what the provider will charge: all that the call could cost.
        assert result.credits_charged > 0
        await _check(agents, records, sent, result)


def _endless(began: asyncio.Event, gone: asyncio.Event) -> Tool:
    @tool(policy=Policy.READ_ONLY)
    async def wait_long() -> str:
        """Wait."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        return "never"

    return wait_long


async def test_while_a_tool_awaits(agents_with: Making, records: Records) -> None:
    began, gone = asyncio.Event(), asyncio.Event()

    def asks(_: Request) -> Turn:
        return Turn(calls=(CallTurn("wait_long", {}, id="c1"),), usage=Usage(10, 20))

    async with agents_with(asks, [_endless(began, gone)], deposit=_DEPOSIT) as agents, working(agents):
        sent = await agents.submit("go", tenant=TENANT)
        async with asyncio.timeout(_PATIENCE_S):
            await began.wait()
            [result] = await agents.cancel(sent.run_id)
            await gone.wait()
        record = await _settled(agents, sent)
        assert record.failure is not None
        assert record.failure.kind is FailureKind.CANCELLED
        assert result.credits_charged == 30 * 100
        await _check(agents, records, sent, result)


async def test_on_its_last_attempt_its_job_is_cancelled_too(
    agents_with: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker that is told finds that the run is over: a job that failed of it would be a dead letter."""
    monkeypatch.setitem(QUEUES, _QUEUE, msgspec.structs.replace(QUEUES[_QUEUE], retries=0))
    began, gone = asyncio.Event(), asyncio.Event()

    def asks(_: Request) -> Turn:
        return Turn(calls=(CallTurn("wait_long", {}, id="c1"),), usage=Usage(10, 20))

    async with agents_with(asks, [_endless(began, gone)]) as agents, working(agents):
        sent = await agents.submit("go", tenant=TENANT)
        async with asyncio.timeout(_PATIENCE_S):
            await began.wait()
            await agents.cancel(sent.run_id)
            await gone.wait()
        record = await _settled(agents, sent)
        assert record.failure is not None
        assert record.failure.kind is FailureKind.CANCELLED


@needs_bubblewrap
async def test_while_code_spins_in_its_sandbox(agents_with: Making, records: Records, tmp_path: Path) -> None:
    began = asyncio.Event()
    registry = Registry(tmp_path / "sandboxes")
    async with pool_of(registry.folder, "worker") as pool:
        making = agents_with(
            asks_to_spin, [spinning_tool(began.set)], deposit=_DEPOSIT, surroundings=Sandboxed(pool)
        )  # fmt: skip
        async with making as agents, working(agents):
            sent = await agents.submit("go", tenant=TENANT)
            async with asyncio.timeout(_PATIENCE_S):
                await began.wait()
            [entry] = registry.entries()
            assert pool.stats().in_use == 1
            [result] = await agents.cancel(sent.run_id)
            await _settled(agents, sent)
            assert pool.stats().in_use == 0
            assert registry.entries() == []
            assert not is_alive(int(entry.token["pid"]), int(entry.token["started"]))
            await _check(agents, records, sent, result)


@needs_bubblewrap
async def test_two_calls_side_by_side_share_the_sandbox_of_their_run(agents_with: Making, tmp_path: Path) -> None:
    def asks_twice(request: Request) -> Turn:
        calls = (CallTurn("spin", {}, id="c1"), CallTurn("spin", {}, id="c2"))
        return Turn(text="both") if len(request.messages) > 1 else Turn(calls=calls, usage=Usage(10, 20))

    said: list[None] = []
    tools = [spinning_tool(lambda: said.append(None), "echo hello")]
    async with pool_of(tmp_path / "sandboxes", "worker") as pool:
        async with agents_with(asks_twice, tools, surroundings=Sandboxed(pool)) as agents, working(agents):
            sent = await agents.submit("go", tenant=TENANT)
            assert (await agents.result(sent.run_id, timeout=_PATIENCE_S)).output == "both"
        assert len(said) == 2
        assert (pool.stats().acquired, pool.stats().in_use) == (1, 0)


@needs_bubblewrap
async def test_the_sandbox_of_a_killed_worker_is_reaped_by_another_which_goes_on(
    agents_with: Making, records: Records, place: Place, address: str, tmp_path: Path
) -> None:
    registry = Registry(tmp_path / "sandboxes")
    tools = [spinning_tool(lambda: None, "echo hello")]
    async with pool_of(registry.folder, "unused") as unused:
        async with agents_with(asks_to_spin, tools, deposit=_DEPOSIT, surroundings=Sandboxed(unused)) as agents:
            sent = await agents.submit("go", tenant=TENANT)
            words = ["-m", "tests.agents.runs.spinning", place.address, address, str(registry.folder)]
            pipe = asyncio.subprocess.PIPE
            doomed = await asyncio.create_subprocess_exec(sys.executable, *words, cwd=ROOT, stdout=pipe)
            assert doomed.stdout is not None
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    assert await doomed.stdout.readline() == b"spinning\n"
            finally:
                doomed.kill()
                await doomed.communicate()
            [left] = registry.entries()
            assert left.owner == "doomed"
    async with pool_of(registry.folder, "heir") as heir:
        # The pool reaps when it starts; nothing of the dead one's is left.
        assert registry.entries() == []
        assert marked(f"SANDBOX={left.id}") == []
        assert not is_alive(int(left.token["pid"]), int(left.token["started"]))
        async with agents_with(asks_to_spin, tools, deposit=0, surroundings=Sandboxed(heir)) as agents:
            worker = agents.pen.worker(options=LIVES)
            running = asyncio.create_task(worker.run())
            result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
            worker.stop()
            await running
        assert result.output == "it said: hello\n"
        assert (await records.credits.balance(TENANT)).held == 0
