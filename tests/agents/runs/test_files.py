"""Files that a run's tools leave in its workspace: artifacts of the run, however it ended, and inputs of the next."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen.agents.llm.scripted import CallTurn, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.sandbox import SandboxPool
from bullpen.agents.surroundings import Sandboxed
from bullpen.agents.tools.files import file_read, file_write
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import ToolContext, tool
from bullpen.errors import RecordMissing
from bullpen.records.files.words import FileKind
from bullpen.records.records import Records
from bullpen.records.runs.words import ProgressKind
from tests.agents.runs.conftest import TENANT, Answers, Making, working
from tests.agents.runs.spinning import pool_of

_PATIENCE_S = 60

pytestmark = pytest.mark.skipif(
    shutil.which("bwrap") is None and not os.environ.get("CI"), reason="bubblewrap is not installed"
)


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[SandboxPool]:
    async with pool_of(tmp_path / "sandboxes", "worker") as pool:
        yield pool


def _calls(name: str, **arguments: object) -> Answers:
    """The tool once, then an end with what it said."""

    def answer(request: Request) -> Turn:
        last = request.messages[-1]
        if last.role is Role.TOOL:
            return Turn(text=last.results[0].text, usage=Usage(1, 1))
        return Turn(calls=(CallTurn(name, arguments, id="c1"),), usage=Usage(1, 1))

    return answer


async def test_what_a_run_wrote_is_an_artifact_and_an_input_of_the_next(
    agents_with: Making, records: Records, pool: SandboxPool
) -> None:
    writes = _calls("file_write", path="out/sales.csv", text="lamp,7\n")
    async with agents_with(writes, [file_write()], surroundings=Sandboxed(pool)) as agents, working(agents):
        first = await agents.submit("go", tenant=TENANT)
        result = await agents.result(first.run_id, timeout=_PATIENCE_S)
        assert result.status == "completed"
        events = [event async for event in agents.follow(first.run_id)]
    [made] = await records.files.of_run(first.run_id, tenant=TENANT, kind=FileKind.ARTIFACT)
    assert (made.name, made.mime, made.metadata) == ("sales.csv", "text/csv", {"path": "out/sales.csv"})
    assert await records.files.read(made.id, tenant=TENANT) == b"lamp,7\n"
    [told] = result.artifacts
    assert (told.id, told.name, told.type, told.size_bytes) == (made.id, "sales.csv", "file", 7)
    assert told.url == f"/v1/files/{made.id}/content"
    kinds = [event.kind for event in events]
    assert kinds.index(ProgressKind.ARTIFACT_CREATED) < kinds.index(ProgressKind.JOB_COMPLETED)
    reads = _calls("file_read", path="/inputs/sales.csv")
    async with agents_with(reads, [file_read()], surroundings=Sandboxed(pool)) as agents, working(agents):
        await agents.deposit("other", 100)
        with pytest.raises(RecordMissing):
            await agents.submit("go", tenant="other", files=[made.id])
        second = await agents.submit("go", tenant=TENANT, files=[made.id])
        assert "lamp,7" in (await agents.result(second.run_id, timeout=_PATIENCE_S)).output
    assert await records.files.of_run(second.run_id, kind=FileKind.ARTIFACT) == []


async def test_files_of_a_run_that_failed_are_kept_too(
    agents_with: Making, records: Records, pool: SandboxPool
) -> None:
    def answer(request: Request) -> Turn:
        call = CallTurn("file_write", {"path": "half.txt", "text": "half"}, id="c1")
        assert request.messages[-1].role is Role.USER, "there is no second call"
        return Turn(calls=(call,), usage=Usage(1, 29_000))

    async with agents_with(answer, [file_write()], surroundings=Sandboxed(pool)) as agents, working(agents):
        sent = await agents.submit("go", tenant=TENANT, task_type="tool_execution", max_credits=3)
        result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
    assert result.error is not None
    assert result.error.code == "E003"
    [made] = await records.files.of_run(sent.run_id, kind=FileKind.ARTIFACT)
    assert made.name == "half.txt"


async def test_a_run_that_ends_at_its_last_step_is_completed(agents_with: Making, pool: SandboxPool) -> None:
    """It did all that it may: that is no error, and `stop_reason` says that there is no answer."""
    writes = _calls("file_write", path="a.txt", text="a")
    async with agents_with(writes, [file_write()], surroundings=Sandboxed(pool)) as agents, working(agents):
        sent = await agents.submit("go", tenant=TENANT, max_steps=1)
        result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
    assert (result.status, result.exit_code, result.stop_reason) == ("completed", 0, "max_steps")
    assert result.error is None


@tool(policy=Policy.READ_ONLY)
async def measure(ctx: ToolContext) -> str:
    """How large the sandbox is."""
    limits = (await ctx.needs_sandbox()).spec.limits
    return f"{limits.memory_mb} {limits.timeout:g}"


async def test_a_run_has_the_sandbox_that_it_asked_for(agents_with: Making, pool: SandboxPool) -> None:
    async with agents_with(_calls("measure"), [measure], surroundings=Sandboxed(pool)) as agents, working(agents):
        usual = await agents.submit("go", tenant=TENANT)
        asked = await agents.submit("go", tenant=TENANT, sandbox={"type": "bubblewrap", "memory_mb": 64, "timeout": 5})
        assert (await agents.result(usual.run_id, timeout=_PATIENCE_S)).output == "128 30"
        assert (await agents.result(asked.run_id, timeout=_PATIENCE_S)).output == "64 5"


async def test_a_run_waits_for_a_worker_that_has_its_type_of_sandbox(agents_with: Making, pool: SandboxPool) -> None:
    """And fails with E001, which names the field, if none came in its time."""
    async with agents_with(_calls("measure"), [measure], surroundings=Sandboxed(pool)) as agents, working(agents):
        sent = await agents.submit("go", tenant=TENANT, sandbox={"type": "docker"}, timeout=0.5)
        result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        events = [event async for event in agents.follow(sent.run_id)]
    assert result.error is not None
    assert result.error.code == "E001"
    assert result.error.message.startswith("sandbox.type: no worker that has sandboxes of the type 'docker'")
    assert [event.data["lack"] for event in events if event.kind == "job_suspended"] == [{"sandbox": "docker"}]
