"""Which tools are offered, with which settings, and that all they hold is given back."""

import sys
from pathlib import Path

import pytest

from bullpen.agents.sandbox.base import Level
from bullpen.agents.tools.browser import Browsers
from bullpen.agents.tools.builtin import builtin_tools
from bullpen.agents.tools.mcp import McpServer
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.search_folder import FolderSearch
from bullpen.agents.tools.tool import ToolContext, tool
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.errors import IsolationTooWeak, ToolError
from tests.agents.tools.test_mcp import PARTS

IN_SANDBOX = {"code_execute", "shell_execute", "file_read", "file_write"}


@tool
async def own() -> str:
    """One of ours."""
    return "own"


@pytest.fixture(autouse=True)
def _no_search_by_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BULLPEN_SEARCH", raising=False)


async def test_what_needs_no_setting_is_there() -> None:
    async with await builtin_tools() as toolset:
        assert {tool.name for tool in toolset} == IN_SANDBOX | {"browser_action"}
        with pytest.raises(IsolationTooWeak):
            Toolbox(toolset).check_isolation(Level.PROCESS)


async def test_what_cannot_be_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bullpen.agents.tools.builtin.find_spec", lambda _name: None)
    async with await builtin_tools(sandbox=False) as toolset:
        assert list(toolset) == []


async def test_all_of_them(ctx: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("# Tea")
    toolset = await builtin_tools(
        network=True,
        search=FolderSearch(tmp_path),
        browsers=Browsers(),
        servers=[McpServer(name="parts", command=PARTS, allow=("add",))],
        more=[own],
    )
    tools = {tool.name: tool for tool in Toolbox(toolset)}
    assert tools.keys() == IN_SANDBOX | {"browser_action", "web_search", "parts__add", "own"}
    assert tools["shell_execute"].policy is Policy.ONCE
    assert (await tools["web_search"].call(ctx, {"query": "tea"}))["results"][0]["title"] == "Tea"
    assert await tools["parts__add"].call(ctx, {"a": 1}) == "2"
    await toolset.end_run("r1")
    await toolset.close()
    await toolset.close()


async def test_a_setting_brings_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_SEARCH", str(tmp_path))
    async with await builtin_tools(sandbox=False) as toolset:
        assert "web_search" in {tool.name for tool in toolset}


async def test_a_server_that_does_not_answer_is_told_and_nothing_is_left() -> None:
    gone = McpServer(name="gone", command=(sys.executable, "-c", ""))
    with pytest.raises(ToolError, match="'gone'"):
        await builtin_tools(sandbox=False, servers=[gone])
