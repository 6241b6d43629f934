"""Agents that are equipped when they are opened: by hand, or by a worker of the command line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bullpen import Bullpen
from bullpen.agents.agents import Agents
from bullpen.agents.equipping import equipped
from bullpen.agents.sandbox.registry import Registry
from bullpen.agents.tools.policy import Policy
from bullpen.records.files.words import FileKind

_TEAM = """
from bullpen import Bullpen
from bullpen.agents.agents import Agents
from bullpen.agents.equipping import equipped
from bullpen.agents.llm.models import table_of
from bullpen.agents.llm.scripted import CallTurn, Script, ScriptedProvider, Turn

model = {"provider": "scripted", "context_window": 100_000, "max_output": 4_096, "input": "1", "output": "2"}
call = CallTurn("code_execute", {"code": "print(6 * 7, file=open('a.txt', 'w'))"})
provider = ScriptedProvider(Script((Turn(calls=(call,)), Turn(text="42"))))
models = table_of({"version": "1", "models": {"m": model}})
pen = Bullpen("sqlite:team.db")
agents = Agents(pen, "sqlite:records.db", providers=[provider], models=models, equipment=equipped)
"""


async def test_equipment_is_there_while_they_are_open(tmp_path: Path) -> None:
    """And they can be opened again."""
    async with Bullpen(f"sqlite:{tmp_path / 'a.db'}") as pen:
        agents = Agents(pen, f"sqlite:{tmp_path / 'records.db'}", providers=[], equipment=equipped)
        for _ in range(2):
            assert len(agents.tools) == 0
            async with agents:
                assert {"code_execute", "file_write", "generate_document"} <= {tool.name for tool in agents.tools}
        assert len(agents.tools) == 0


async def test_tools_know_that_sandboxes_have_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else they refuse to work in them, and what was done out there would be done twice."""
    monkeypatch.setenv("BULLPEN_SANDBOX_NETWORK", "yes")
    async with Bullpen(f"sqlite:{tmp_path / 'a.db'}") as pen:
        async with Agents(pen, f"sqlite:{tmp_path / 'records.db'}", providers=[], equipment=equipped) as agents:
            assert agents.tools.find("code_execute").policy is Policy.ONCE
            assert agents.tools.find("shell_execute").policy is Policy.ONCE


@pytest.mark.skipif(shutil.which("bwrap") is None and not os.environ.get("CI"), reason="bubblewrap is not installed")
async def test_a_worker_of_the_command_line_has_tools_and_a_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "team_of_test.py").write_text(_TEAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("BULLPEN_SANDBOX_DIR", str(tmp_path / "sandboxes"))
    from team_of_test import agents, pen  # type: ignore[import-not-found]

    async with pen:
        await agents.deposit("default", 100)
        sent = await agents.submit("What is it?")
        worker = subprocess.Popen([sys.executable, "-m", "bullpen.cli", "worker", "team_of_test:pen"])
        try:
            result = await agents.result(sent.run_id, timeout=90)
            assert (result.output, [one.name for one in result.artifacts]) == ("42", ["a.txt"])
            files = (await agents.records()).files
            [made] = await files.of_run(sent.run_id, kind=FileKind.ARTIFACT)
            assert await files.read(made.id) == b"42\n"
        finally:
            worker.terminate()
            ended = worker.wait(60)
    assert (ended, Registry(tmp_path / "sandboxes").entries()) == (0, [])
