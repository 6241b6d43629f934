"""What a process counts of the agents in it: models, tools, tasks, credits and sandboxes, as Prometheus reads them."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.agents import Agents
from bullpen.agents.llm.scripted import CallTurn, Fault, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.sandbox import BubblewrapDriver, PoolOptions, Registry, SandboxPool
from bullpen.agents.surroundings import Sandboxed
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext, tool
from bullpen.agents.words import Submitted, TaskResult
from bullpen.errors import SandboxTimeout, ToolError
from bullpen.observing import Observers, ToolUse
from bullpen.telemetry.agent_metrics import MAX_TOOLS
from bullpen.telemetry.metrics import Metrics
from tests.agents.runs.conftest import TENANT, Making, jobs_are_there, says, working
from tests.agents.runs.models import MODEL
from tests.agents.runs.test_research import researches
from tests.worker.waiting import until

_PATIENCE_S = 60


@tool(policy=Policy.READ_ONLY)
async def look(n: int) -> str:
    """Look at something; there is no seventh."""
    if n == 7:
        raise ToolError("there is no seventh")
    return f"seen {n}"


def looks_around(request: Request) -> Turn:
    """Four calls at once: one goes well, one fails, one has no argument, one is of a tool that it made up."""
    if request.messages[-1].role is Role.TOOL:
        return Turn(text="that is all", usage=Usage(30, 5))
    calls = (
        CallTurn("look", {"n": 1}, id="a"),
        CallTurn("look", {"n": 7}, id="b"),
        CallTurn("look", {}, id="c"),
        CallTurn("guess", {}, id="d"),
    )
    return Turn(calls=calls, usage=Usage(10, 20))


async def _ask(agents: Agents, **more: Any) -> tuple[Submitted, TaskResult]:
    sent = await agents.submit("go", tenant=TENANT, **more)
    return sent, await agents.result(sent.run_id, timeout=_PATIENCE_S)


async def test_models_tools_tasks_and_credits_are_counted(agents_with: Making) -> None:
    metrics = Metrics()
    async with agents_with(looks_around, [look]) as agents:
        agents.pen.telemetry.append(metrics)
        async with working(agents):
            sent, result = await _ask(agents)
    assert metrics.model_calls.value("scripted", MODEL, "answered") == 2
    assert (metrics.tokens.value(MODEL, "input"), metrics.tokens.value(MODEL, "output")) == (40, 25)
    assert metrics.tool_calls.value("look", "completed") == 1
    assert metrics.tool_calls.value("look", "failed") == 1
    assert metrics.tool_calls.value("look", "refused") == 1
    assert metrics.tool_calls.value("", "refused") == 1, "a name that a model makes up is no label"
    assert metrics.tasks.value("agent_run", "completed") == metrics.runs.value("completed") == 1
    assert result.credits_charged == 65 * 100
    assert metrics.credits.value("agent_run") == pytest.approx(65 * 100 / 1_000_000)
    assert metrics.credits_reserved.value("agent_run", "estimate") == 11
    assert metrics.credits_reserved.value("agent_run", "more") == 0
    assert metrics.credits_refunded.value("agent_run", "completed") == pytest.approx(11 - 65 * 100 / 1_000_000)
    text = metrics.text()
    assert f'bullpen_llm_call_seconds_count{{provider="scripted",model="{MODEL}"}} 2' in text
    assert 'bullpen_tool_call_seconds_count{tool="look"} 2' in text
    for word in (TENANT, sent.run_id, sent.task_id, "guess"):
        assert word not in text


async def test_what_is_set_aside_is_counted_before_the_run_is_done(agents_with: Making) -> None:
    metrics = Metrics()
    async with agents_with(looks_around, [look]) as agents:
        agents.pen.telemetry.append(metrics)
        sent = await agents.submit("go", tenant=TENANT)
        assert metrics.credits_reserved.value("agent_run", "estimate") == 11
        await agents.cancel(sent.run_id)
    assert metrics.credits_refunded.value("agent_run", "cancelled") == 11
    assert metrics.credits_reserved.value("agent_run", "more") == 0


async def test_each_try_of_a_call_is_counted_by_how_it_ended(agents_with: Making) -> None:
    metrics = Metrics()
    turns = [Turn(error=Fault("model-error", retry_after=0.01)), Turn(text="there", usage=Usage(1, 2))]
    async with agents_with(lambda _: turns.pop(0)) as agents:
        agents.pen.telemetry.append(metrics)
        async with working(agents):
            await _ask(agents)
    assert metrics.model_calls.value("scripted", MODEL, "model-error") == 1
    assert metrics.model_calls.value("scripted", MODEL, "answered") == 1


async def test_what_parts_of_a_run_cost_is_counted_once(agents_with: Making) -> None:
    """The task that made them pays for them: its cost has theirs in it."""
    metrics = Metrics()
    async with agents_with(researches) as agents:
        agents.pen.telemetry.append(metrics)
        async with working(agents):
            _, result = await _ask(agents, task_type="wide_research")
    assert metrics.tasks.value("agent_run", "completed") == 2
    assert metrics.tasks.value("agent_run", "failed") == 1
    assert metrics.tasks.value("wide_research", "completed") == 1
    assert metrics.runs.value("completed") == 1
    assert metrics.runs.value("failed") == 0
    assert metrics.credits.value("wide_research") == pytest.approx(result.credits_charged / 1_000_000)
    assert metrics.model_calls.value("scripted", MODEL, "content-refused") == 1


async def test_a_run_that_is_cancelled_is_counted_once(agents_with: Making) -> None:
    metrics = Metrics()
    async with agents_with(says("hello")) as agents:
        agents.pen.telemetry.append(metrics)
        sent = await agents.submit("go", tenant=TENANT)
        await agents.cancel(sent.run_id)
        async with working(agents):
            await jobs_are_there(agents)
            queue = agents.pen.queue("agent-standard")
            await until(queue.counts, lambda counts: counts.completed + counts.failed == 1)
    assert metrics.runs.value("cancelled") == metrics.tasks.value("agent_run", "cancelled") == 1


async def test_a_call_that_a_cancel_cuts_off_is_counted(agents_with: Making) -> None:
    metrics, began = Metrics(), asyncio.Event()

    @tool(policy=Policy.READ_ONLY)
    async def linger() -> str:
        """Do not come to an end."""
        began.set()
        await asyncio.Event().wait()
        return "never"

    def lingers(_: Request) -> Turn:
        return Turn(calls=(CallTurn("linger", {}, id="a"),), usage=Usage(1, 1))

    async def count() -> float:
        return metrics.tool_calls.value("linger", "cancelled")

    async with agents_with(lingers, [linger]) as agents:
        agents.pen.telemetry.append(metrics)
        async with working(agents):
            sent = await agents.submit("go", tenant=TENANT)
            async with asyncio.timeout(_PATIENCE_S):
                await began.wait()
            await agents.cancel(sent.run_id)
            await until(count, bool)
    assert await count() == 1
    assert 'bullpen_tool_call_seconds_count{tool="linger"} 1' in metrics.text()


def test_names_of_tools_are_bounded() -> None:
    metrics = Metrics()
    for n in range(MAX_TOOLS + 5):
        metrics.tool_used(ToolUse(f"tool-{n}", "completed", 0.1))
    assert metrics.tool_calls.value("other", "completed") == 5


# ── sandboxes ────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[SandboxPool]:
    if shutil.which("bwrap") is None:
        assert not os.environ.get("CI"), "bubblewrap is not installed"
        pytest.skip("bubblewrap is not installed")
    options = PoolOptions(warm=0, most=1)
    async with SandboxPool(BubblewrapDriver(), options=options, registry=Registry(tmp_path / "boxes")) as pool:
        yield pool


def _tool_in_sandbox(pool: SandboxPool) -> Tool:
    @tool(policy=Policy.READ_ONLY)
    async def peek(ctx: ToolContext) -> str:
        """Have a sandbox while another one is asked for, which the pool has not."""
        await ctx.needs_sandbox()
        with pytest.raises(SandboxTimeout):
            await pool.acquire(timeout=0.01)
        return "done"

    return peek


def peeks(request: Request) -> Turn:
    if request.messages[-1].role is Role.TOOL:
        return Turn(text=request.messages[-1].results[0].text, usage=Usage(1, 1))
    return Turn(calls=(CallTurn("peek", {}, id="a"),), usage=Usage(1, 1))


async def test_sandboxes_are_counted(agents_with: Making, pool: SandboxPool) -> None:
    metrics = Metrics()
    surroundings = Sandboxed(pool)
    async with agents_with(peeks, [_tool_in_sandbox(pool)], surroundings=surroundings) as agents:
        agents.pen.telemetry.append(metrics)
        async with working(agents):
            _, result = await _ask(agents)
            text = metrics.text()
    assert result.output == "done"
    assert metrics.sandbox_timeouts.value() == 1
    assert "bullpen_sandbox_acquire_seconds_count 1" in text
    assert "bullpen_sandboxes_most 1" in text


async def test_the_gauges_follow_the_pool(pool: SandboxPool) -> None:
    metrics = Metrics()
    pool.observers = Observers([metrics])

    async def text() -> str:
        return metrics.text()

    async with pool.lend():
        await until(text, lambda seen: 'bullpen_sandboxes{state="in-use"} 1' in seen)
    await until(text, lambda seen: 'bullpen_sandboxes{state="in-use"} 0' in seen)


async def test_pools_of_one_process_are_counted_together(pool: SandboxPool, tmp_path: Path) -> None:
    metrics = Metrics()
    pool.observers = Observers([metrics])
    options, registry = PoolOptions(warm=0, most=2), Registry(tmp_path / "others")

    async def text() -> str:
        return metrics.text()

    other = SandboxPool(BubblewrapDriver(), options=options, registry=registry, observers=Observers([metrics]))
    async with other, other.lend(), pool.lend():
        both = ('bullpen_sandboxes{state="in-use"} 2', "bullpen_sandboxes_most 3")
        await until(text, lambda seen: all(line in seen for line in both))
        await other.close()
        left = ('bullpen_sandboxes{state="in-use"} 1', "bullpen_sandboxes_most 1")
        await until(text, lambda seen: all(line in seen for line in left))
