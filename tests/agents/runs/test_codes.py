"""Each code of the table of errors as a run, or whoever submits one, meets it.

E002 belongs to the API, which alone knows who calls (`tests/server/test_uploads.py`).
"""

import asyncio
import dataclasses
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import delete, insert, update

from bullpen.agents.agents import Agents
from bullpen.agents.llm.scripted import CallTurn, Fault, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.sandbox import PoolOptions, Registry, SandboxPool, SandboxSpec, driver_from
from bullpen.agents.sandbox.base import Level
from bullpen.agents.surroundings import Around, Sandboxed
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext, tool
from bullpen.agents.words import Submitted, TaskProblem, problem_of
from bullpen.errors import BadOption, CreditsShort
from bullpen.job.record import JobRef
from bullpen.records.blobs.blobs import Blobs
from bullpen.records.blobs.folder import FolderHome
from bullpen.records.database import Database
from bullpen.records.records import Records
from bullpen.records.runs.words import ProgressEvent, ProgressKind, Task
from bullpen.records.tables.credits import hold
from bullpen.records.tables.files import checkpoint
from tests.agents.runs.conftest import TENANT, Making, says, working
from tests.agents.sandbox.conftest import SMALL

_PATIENCE_S = 60
_SECRET = "hunter2-hunter2-hunter2"
_PRIVATE = ("scripted", "parrot", "://", "sqlite:", "Error", _SECRET)
"""Nobody's business but the operator's: providers, addresses, keys, names of classes."""

needs_bubblewrap = pytest.mark.skipif(
    shutil.which("bwrap") is None and not os.environ.get("CI"), reason="bubblewrap is not installed"
)


def _check(problem: TaskProblem | None, code: str, *, retryable: bool) -> None:
    assert problem is not None
    assert (problem.code, problem.retryable) == (code, retryable)
    assert problem.message
    assert problem.user_facing_message.endswith(".")
    assert not [word for word in _PRIVATE if word in problem.user_facing_message]


async def _submit(agents: Agents, **more: Any) -> Submitted:
    """Of the kind that is tried again after a second."""
    return await agents.submit("go", tenant=TENANT, task_type="tool_execution", **more)


async def _first(agents: Agents, sent: Submitted, kind: ProgressKind) -> ProgressEvent:
    async with asyncio.timeout(_PATIENCE_S):
        async for event in agents.follow(sent.run_id):
            if event.kind is kind:
                return event
    raise AssertionError(f"the run ended without {kind}")


def _problem_in(event: ProgressEvent) -> TaskProblem:
    return msgspec.convert(event.data["error"], TaskProblem)


# ── at the submission ────────────────────────────────────────────────────────────────────


async def test_e001_a_request_that_makes_no_sense(agents_with: Making) -> None:
    async with agents_with(says("hello")) as agents:
        with pytest.raises(BadOption) as refused:
            await agents.submit(" ", tenant=TENANT)
    problem = problem_of(refused.value)
    assert (problem.code, problem.retryable) == ("E001", False)
    assert problem.user_facing_message.startswith("prompt: ")


async def test_e003_credits_that_are_not_there(agents_with: Making) -> None:
    async with agents_with(says("hello"), deposit=1) as agents:
        with pytest.raises(CreditsShort) as short:
            await agents.submit("go", tenant=TENANT)
    _check(problem_of(short.value), "E003", retryable=False)


# ── of models ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "fault, code",
    [
        (Fault("model-timeout", "scripted://10.0.0.1 is silent", times=1), "E006"),
        (Fault("model-error", "500 at scripted://10.0.0.1", times=1, after=1), "E007"),
        (Fault("model-limited", "429 at scripted://10.0.0.1", times=1, retry_after=0.1), "E008"),
    ],
)
async def test_e006_to_e008_a_model_that_fails_for_a_while(agents_with: Making, fault: Fault, code: str) -> None:
    def fails_once(_: Request) -> Turn:
        return Turn(text="there", usage=Usage(1, 1), error=fault)

    async with agents_with(fails_once) as agents, working(agents):
        sent = await _submit(agents)
        _check(_problem_in(await _first(agents, sent, ProgressKind.JOB_RETRYING)), code, retryable=True)
        assert (await agents.result(sent.run_id, timeout=_PATIENCE_S)).output == "there"


async def test_e007_a_model_that_fails_for_good(agents_with: Making, records: Records) -> None:
    def fails(_: Request) -> Turn:
        # After a word: the call itself is not made again.
        return Turn(text="half an answer", error=Fault("model-error", "500 at scripted://10.0.0.1", after=1))

    async with agents_with(fails) as agents, working(agents):
        sent = await _submit(agents)
        result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        assert (result.status, result.exit_code, result.stop_reason) == ("failed", 1, "error")
        _check(result.error, "E007", retryable=True)
        assert (await records.credits.balance(TENANT)).held == 0


async def test_e007_a_key_that_is_not_taken_is_not_tried_again(agents_with: Making) -> None:
    def refuses(_: Request) -> Turn:
        return Turn(error=Fault("model-access", f"401 for {_SECRET}"))

    async with agents_with(refuses) as agents, working(agents):
        sent = await _submit(agents)
        _check((await agents.result(sent.run_id, timeout=_PATIENCE_S)).error, "E007", retryable=False)


# ── of tools and sandboxes: the model is told, and the run goes on ───────────────────────


def _asks_for(name: str) -> Any:
    def answer(request: Request) -> Turn:
        last = request.messages[-1]
        if last.role is Role.TOOL:
            return Turn(text=f"it said: {last.results[0].text}", usage=Usage(10, 20))
        return Turn(calls=(CallTurn(name, {}, id="c1"),), usage=Usage(10, 20))

    return answer


@tool(policy=Policy.READ_ONLY, timeout=0.05)
async def linger() -> None:
    """Wait for what never comes."""
    await asyncio.Event().wait()


@tool(policy=Policy.READ_ONLY)
async def stumble() -> None:
    """Fail."""
    raise RuntimeError(f"cannot reach scripted://10.0.0.1 with {_SECRET}")


@pytest.mark.parametrize("failing, code", [(linger, "E009"), (stumble, "E010")])
async def test_e009_e010_a_tool_that_fails(agents_with: Making, failing: Tool, code: str) -> None:
    async with agents_with(_asks_for(failing.name), [failing]) as agents, working(agents):
        sent = await _submit(agents)
        result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        assert result.output.startswith(f"it said: {failing.name}")
        _check(_problem_in(await _first(agents, sent, ProgressKind.TOOL_FAILED)), code, retryable=True)


@tool(policy=Policy.READ_ONLY)
async def run_code(ctx: ToolContext) -> str:
    """Run code."""
    return (await (await ctx.needs_sandbox()).run(["true"])).ended


@tool(policy=Policy.READ_ONLY)
async def break_sandbox(ctx: ToolContext) -> str:
    """Run code in a sandbox that has just ended."""
    sandbox = await ctx.needs_sandbox()
    await sandbox.kill()
    return str(await sandbox.list())


@tool(policy=Policy.READ_ONLY, isolation=Level.MICROVM, price=500)
async def dig() -> str:
    """Dig behind walls that this machine has not."""
    raise AssertionError


async def test_e005_a_tool_that_asks_for_stronger_walls_is_not_run(agents_with: Making) -> None:
    async with agents_with(_asks_for("dig"), [dig]) as agents, working(agents):
        sent = await _submit(agents)
        result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        assert result.output.startswith("it said: the tool 'dig' needs microvm isolation, and has ")
        _check(_problem_in(await _first(agents, sent, ProgressKind.TOOL_FAILED)), "E005", retryable=False)


def _small_pool(folder: Path, **options: Any) -> SandboxPool:
    specs = [SandboxSpec(limits=SMALL)]
    return SandboxPool(
        driver_from("bubblewrap"), specs, PoolOptions(warm=0, most=1, **options), registry=Registry(folder)
    )  # fmt: skip


@needs_bubblewrap
@pytest.mark.parametrize("policy", [Policy.READ_ONLY, Policy.ONCE])
async def test_e004_no_sandbox_is_free_for_a_while(agents_with: Making, tmp_path: Path, policy: Policy) -> None:
    """The task waits in its line with no attempt used, nobody is asked, and nothing is paid for what was not done."""
    run_priced = dataclasses.replace(run_code, policy=policy, isolation=Level.NAMESPACE, price=500)
    async with _small_pool(tmp_path / "sandboxes", acquire_timeout=2) as pool:
        making = agents_with(_asks_for("run_code"), [run_priced], surroundings=Sandboxed(pool))
        async with making as agents, working(agents):
            taken = await pool.acquire(timeout=_PATIENCE_S)
            sent = await _submit(agents)
            _check(_problem_in(await _first(agents, sent, ProgressKind.JOB_RETRYING)), "E004", retryable=True)
            await pool.release(taken)
            result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
            assert (result.output, result.credits_charged) == ("it said: exit", 60 * 100 + 500)
            [task] = await agents.tasks(sent.run_id)
            assert (await agents.pen.store.job(JobRef(task.queue, task.id))).attempts_made <= 1


@needs_bubblewrap
async def test_e004_no_sandbox_is_free_for_too_long(agents_with: Making, tmp_path: Path) -> None:
    async with _small_pool(tmp_path / "sandboxes", acquire_timeout=0.1) as pool:
        making = agents_with(_asks_for("run_code"), [run_code], surroundings=Sandboxed(pool))
        async with making as agents, working(agents):
            taken = await pool.acquire(timeout=_PATIENCE_S)
            sent = await _submit(agents, timeout=2)
            result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
            assert result.status == "failed"
            _check(result.error, "E004", retryable=True)
            await pool.release(taken)


@needs_bubblewrap
async def test_e005_a_sandbox_that_breaks(agents_with: Making, tmp_path: Path) -> None:
    async with _small_pool(tmp_path / "sandboxes") as pool:
        making = agents_with(_asks_for("break_sandbox"), [break_sandbox], surroundings=Sandboxed(pool))
        async with making as agents, working(agents):
            sent = await _submit(agents)
            await agents.result(sent.run_id, timeout=_PATIENCE_S)
            _check(_problem_in(await _first(agents, sent, ProgressKind.TOOL_FAILED)), "E005", retryable=True)


# ── of the run itself ────────────────────────────────────────────────────────────────────


@tool(policy=Policy.READ_ONLY)
async def wait_long() -> None:
    """Wait for what never comes."""
    await asyncio.Event().wait()


async def test_e011_a_run_that_takes_too_long(agents_with: Making) -> None:
    async with agents_with(_asks_for("wait_long"), [wait_long]) as agents, working(agents):
        sent = await _submit(agents, timeout=0.3)
        result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        assert result.status == "timeout"
        _check(result.error, "E011", retryable=False)


async def test_e012_a_run_that_was_cancelled(agents_with: Making) -> None:
    async with agents_with(says("hello")) as agents:
        sent = await _submit(agents)
        [result] = await agents.cancel(sent.run_id)
        _check(result.error, "E012", retryable=False)


@needs_bubblewrap
async def test_e013_a_workspace_that_cannot_be_saved(agents_with: Making, records: Records, tmp_path: Path) -> None:
    """The place of blobs is away: the run goes no further without it, and on when it is back."""
    records.files.blobs = Blobs(FolderHome(tmp_path / "blobs"))
    (tmp_path / "blobs").write_text("no folder")
    async with _small_pool(tmp_path / "sandboxes") as pool:
        making = agents_with(_asks_for("leave_file"), [leave_file], surroundings=Sandboxed(pool))
        async with making as agents, working(agents):
            sent = await _submit(agents)
            _check(_problem_in(await _first(agents, sent, ProgressKind.JOB_RETRYING)), "E013", retryable=True)
            (tmp_path / "blobs").unlink()
            result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
            assert (result.output, [one.name for one in result.artifacts]) == ("it said: left", ["a.txt"])


@tool(policy=Policy.READ_ONLY)
async def leave_file(ctx: ToolContext) -> str:
    """Write a file."""
    await (await ctx.needs_sandbox()).write("a.txt", b"a")
    return "left"


@needs_bubblewrap
async def test_e010_a_workspace_that_is_too_large_is_told_to_the_model(agents_with: Making, tmp_path: Path) -> None:
    """The call is not made again and again: the run goes on."""
    calls: list[str] = []

    @tool(policy=Policy.READ_ONLY)
    async def make_holes(ctx: ToolContext) -> str:
        """Make files that take no room."""
        calls.append(ctx.key)
        await (await ctx.needs_sandbox()).run(["truncate", "-s", "15M", "one", "two", "three"])
        return "made"

    async with _small_pool(tmp_path / "sandboxes") as pool:
        making = agents_with(_asks_for("make_holes"), [make_holes], surroundings=Sandboxed(pool))
        async with making as agents, working(agents):
            sent = await _submit(agents)
            result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
            assert result.status == "completed"
            assert result.output.startswith("it said: made\n(the workspace cannot be saved: ")
            assert len(calls) == 1
            _check(_problem_in(await _first(agents, sent, ProgressKind.TOOL_FAILED)), "E010", retryable=True)


@needs_bubblewrap
async def test_e013_a_checkpoint_that_has_expired(agents_with: Making, records: Records, tmp_path: Path) -> None:
    """It is gone, and no other attempt would find it."""

    @tool(policy=Policy.READ_ONLY)
    async def lose_files(ctx: ToolContext) -> str:
        """Ask for a workspace that is not kept any more."""
        await (await ctx.needs_sandbox()).kill()
        async with records.database.writing() as connection:
            await connection.execute(update(checkpoint).where(checkpoint.c.task == ctx.task_id).values(expires_ms=1))
        return str((await ctx.needs_sandbox()).id)

    def answer(request: Request) -> Turn:
        name = "lose_files" if request.messages[-1].role is Role.TOOL else "leave_file"
        return Turn(calls=(CallTurn(name, {}, id="c1"),), usage=Usage(10, 20))

    async with _small_pool(tmp_path / "sandboxes") as pool:
        making = agents_with(answer, [leave_file, lose_files], surroundings=Sandboxed(pool))
        async with making as agents, working(agents):
            sent = await _submit(agents)
            result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
            assert result.status == "failed"
            _check(result.error, "E013", retryable=False)


async def test_e014_books_that_do_not_agree(agents_with: Making, records: Records) -> None:
    """The hold of the next call is there already, and is another's: the run waits until a person has seen to it."""
    database = records.database

    @tool(policy=Policy.READ_ONLY)
    async def spoil(ctx: ToolContext) -> str:
        """Write into the books by hand."""
        row = {"accounts": [], "amount": 1, "state": "held", "charged": 0, "at_ms": 0}
        async with database.writing() as connection:
            await connection.execute(insert(hold), {"id": f"{ctx.task_id}/3/1", **row})
        return "spoilt"

    async with agents_with(_asks_for("spoil"), [spoil]) as agents, working(agents):
        sent = await _submit(agents)
        _check(_problem_in(await _first(agents, sent, ProgressKind.JOB_RETRYING)), "E014", retryable=True)
        await _mend(database, sent.task_id)
        assert (await agents.result(sent.run_id, timeout=_PATIENCE_S)).output == "it said: spoilt"
        purse = await records.credits.balance(TENANT)
        assert (purse.held, purse.spent) == (0, 60 * 100)


async def _mend(database: Database, task_id: str) -> None:
    async with database.writing() as connection:
        await connection.execute(delete(hold).where(hold.c.id == f"{task_id}/3/1"))


class _Shaky:
    """Surroundings that fail the first time."""

    def __init__(self) -> None:
        self.tries = 0

    @asynccontextmanager
    async def around(self, records: Records, task: Task, *, epoch: int) -> AsyncIterator[Around]:
        self.tries += 1
        if self.tries == 1:
            raise RuntimeError(f"scripted://10.0.0.1 does not take {_SECRET}")
        yield Around(ToolContext(task_id=task.id, key=task.id))

    async def close(self) -> None:
        pass


async def test_e999_what_nobody_thought_of(agents_with: Making) -> None:
    async with agents_with(says("hello"), surroundings=_Shaky()) as agents, working(agents):
        sent = await _submit(agents)
        _check(_problem_in(await _first(agents, sent, ProgressKind.JOB_RETRYING)), "E999", retryable=True)
        assert (await agents.result(sent.run_id, timeout=_PATIENCE_S)).output == "hello"


# ── secrets ──────────────────────────────────────────────────────────────────────────────


@tool(policy=Policy.READ_ONLY)
async def peek() -> str:
    """Read a variable of the environment."""
    return os.environ["PEEKED_TOKEN"]


async def test_no_event_has_a_secret_of_the_environment(agents_with: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what a tool returned, nor what the model said in small pieces, nor an error, nor the result."""
    monkeypatch.setenv("PEEKED_TOKEN", _SECRET)

    def repeats(request: Request) -> Turn:
        last = request.messages[-1]
        if last.role is not Role.TOOL:
            return Turn(calls=(CallTurn("peek", {}, id="c1"), CallTurn("stumble", {}, id="c2")), usage=Usage(1, 1))
        text = f"one {last.results[0].text} two {last.results[0].text}"
        return Turn(text=text, chunk=5, delay=0.05, usage=Usage(1, 1))

    async with agents_with(repeats, [peek, stumble], surroundings=_Shaky()) as agents, working(agents):
        sent = await _submit(agents)
        result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        assert result.output == f"one {_SECRET} two {_SECRET}"
        events = [event async for event in agents.follow(sent.run_id)]
        kinds = {event.kind for event in events}
        assert kinds >= {ProgressKind.JOB_RETRYING, ProgressKind.TOOL_FAILED, ProgressKind.LLM_STREAMING}
        told = msgspec.json.encode(events).decode()
        assert "hunter2" not in told
        assert "[redacted]" in told
        streamed = [event.data["content_delta"] for event in events if event.kind is ProgressKind.LLM_STREAMING]
        assert len(streamed) > 1
        assert "".join(streamed) == "one [redacted] two [redacted]"
