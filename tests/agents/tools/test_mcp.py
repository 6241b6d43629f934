"""Tools of real MCP servers: a program of the protocol's own package, an address, and `bullpen mcp`."""

import asyncio
import contextlib
import dataclasses
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bullpen import Bullpen
from bullpen.agents.tools.json_schema import reader_of
from bullpen.agents.tools.mcp import McpServer, McpSource
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.errors import BadData, BadOption, ToolError, ToolTimeout
from tests.agents.tools.conftest import Drawer
from tests.docs.pages import ROOT

PROGRAM = str(Path(__file__).with_name("mcp_program.py"))
PARTS = (sys.executable, PROGRAM)
WRONG: list[tuple[Any, str]] = [
    ({}, r"'a' is a required property - at `\$`"),
    ({"a": "four"}, r"'four' is not of type 'integer' - at `\$.a`"),
    ([], "Expected `object`"),
]
"""Arguments that do not fit, and what is said of each."""


@contextlib.asynccontextmanager
async def _tools(**options: Any) -> AsyncIterator[dict[str, Tool]]:
    async with McpSource(McpServer(**{"name": "parts", "command": PARTS, **options})) as source:
        yield {tool.name: tool for tool in await source.tools()}


@contextlib.asynccontextmanager
async def _over_http(port: int = 0) -> AsyncIterator[tuple[Process, int]]:
    process = await asyncio.create_subprocess_exec(*PARTS, "http", str(port), stdout=PIPE)
    assert process.stdout is not None
    try:
        yield process, int(await process.stdout.readline())
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def test_a_servers_tools_are_tools(ctx: ToolContext) -> None:
    async with _tools() as tools:
        assert tools.keys() == {
            f"parts__{name}" for name in ("add", "note", "who_am_i", "fail", "die", "hang", "picture")
        }
        add = tools["parts__add"]
        assert add.description == "Add two numbers."
        assert add.parameters["properties"]["a"]["type"] == "integer"
        assert add.parameters["required"] == ["a"]
        assert await add.call(ctx, {"a": 40, "b": 2}) == "42"
        assert await add.call(ctx, {"a": 40}) == "41"
        assert await tools["parts__note"].call(ctx, {"text": "tea"}) == "noted: tea"


async def test_hints_say_what_a_crash_means_if_they_are_trusted() -> None:
    async with _tools() as tools:
        policies = {name: tool.policy for name, tool in tools.items()}
        assert policies["parts__add"] is Policy.READ_ONLY
        assert policies["parts__note"] is Policy.IDEMPOTENT
        assert policies["parts__die"] is Policy.ONCE
        with pytest.raises(BadOption, match="two of the name 'parts__add'"):
            Toolbox([*tools.values(), dataclasses.replace(tools["parts__add"])])


async def test_only_what_is_allowed_is_taken() -> None:
    async with _tools(allow=("add",), trust_hints=False) as tools:
        assert {name: tool.policy for name, tool in tools.items()} == {"parts__add": Policy.ONCE}
        for arguments, told in WRONG:
            with pytest.raises(BadData, match=f"arguments: of 'parts__add': .*{told}"):
                tools["parts__add"].check(arguments)
    with pytest.raises(BadOption, match="allow: 'parts' has no tool 'subtract'; it has add, die"):
        async with _tools(allow=("add", "subtract")):
            pass


async def test_what_a_server_says_went_wrong_is_told(ctx: ToolContext) -> None:
    async with _tools() as tools:
        with pytest.raises(ToolError, match=r"fail: .*no such part"):
            await tools["parts__fail"].call(ctx, {})
        assert await tools["parts__add"].call(ctx, {"a": 1}) == "2"


async def test_a_picture_is_a_file_of_the_run(ctx: ToolContext, drawer: Drawer) -> None:
    async with _tools() as tools:
        told = await tools["parts__picture"].call(ctx, {})
        assert told == "(the artifact r1/3/picture-0.png: picture-0.png, image/png, 12 bytes)"
        assert drawer.files["r1/3/picture-0.png"].data == b"\x89PNG picture"
        alone = await tools["parts__picture"].call(ToolContext(task_id="r", key="k"), {})
        assert alone == "(image/png, 12 bytes, which this run does not keep)"


async def test_a_program_gets_nothing_of_the_workers_environment(
    ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKER_SECRET", "hunter2")
    async with _tools(env={"GIVEN": "this"}) as tools:
        seen = await tools["parts__who_am_i"].call(ctx, {})
    assert "hunter2" not in seen
    assert '"given": "this"' in seen


async def test_a_server_that_dies_is_told_and_started_again(ctx: ToolContext) -> None:
    async with _tools() as tools:
        before = await tools["parts__who_am_i"].call(ctx, {})
        with pytest.raises(ToolError, match=r"connection to the MCP server 'parts' has ended.*effect is not known"):
            await tools["parts__die"].call(ctx, {})
        assert await tools["parts__add"].call(ctx, {"a": 1}) == "2"
        assert await tools["parts__who_am_i"].call(ctx, {}) != before


async def test_calls_side_by_side_have_one_server_and_fail_together(ctx: ToolContext, tmp_path: Path) -> None:
    async with _tools() as tools:
        sums = await asyncio.gather(*(tools["parts__add"].call(ctx, {"a": n}) for n in range(10)))
        assert sums == [str(n + 1) for n in range(10)]
        hanging = asyncio.create_task(tools["parts__hang"].call(ctx, {"began": str(tmp_path / "began")}))
        async with asyncio.timeout(60):
            while not (tmp_path / "began").exists():
                await asyncio.sleep(0.02)
        with pytest.raises(ToolError, match="has ended"):
            await tools["parts__die"].call(ctx, {})
        with pytest.raises(ToolError, match="has ended"):
            await hanging


async def test_a_call_that_takes_too_long_is_given_up(ctx: ToolContext, tmp_path: Path) -> None:
    async with _tools(timeout_s=4) as tools:  # the other call is to be quick enough on a busy machine too
        with pytest.raises(ToolTimeout, match="hang took longer than 4 s"):
            await tools["parts__hang"].call(ctx, {"began": str(tmp_path / "began")})
        assert await tools["parts__add"].call(ctx, {"a": 1}) == "2"


async def test_the_program_ends_with_its_source(ctx: ToolContext) -> None:
    source = McpSource(McpServer(name="parts", command=PARTS))
    tools = {tool.name: tool for tool in await source.tools()}
    pid = int((await tools["parts__who_am_i"].call(ctx, {})).partition('"pid": ')[2].partition(",")[0])
    assert Path(f"/proc/{pid}").exists()
    await source.close()
    await source.close()
    assert not Path(f"/proc/{pid}").exists()


async def test_an_address_serves_tools_too_and_is_connected_to_again(ctx: ToolContext) -> None:
    async with _over_http() as (process, port):
        source = McpSource(McpServer(name="far", url=f"http://127.0.0.1:{port}/mcp", headers={"X-Key": "k"}))
        tools = {tool.name: tool for tool in await source.tools()}
        assert await tools["far__add"].call(ctx, {"a": 41}) == "42"
        with pytest.raises(ToolError, match=r"fail: .*no such part"):
            await tools["far__fail"].call(ctx, {})
        process.kill()
        await process.wait()
        with pytest.raises(ToolError, match="'far'"):
            await tools["far__add"].call(ctx, {"a": 41})
    async with _over_http(port):
        assert await tools["far__add"].call(ctx, {"a": 41}) == "42"
        await source.close()


async def test_bullpens_own_server_is_a_source(ctx: ToolContext, tmp_path: Path) -> None:
    command = (sys.executable, "-m", "bullpen.cli", "mcp")
    env = {"BULLPEN_STORE": str(tmp_path / "queue.db"), "PYTHONPATH": str(ROOT / "src")}
    async with Bullpen(env["BULLPEN_STORE"]):
        pass
    async with _tools(name="queues", command=command, env=env, cwd=str(tmp_path)) as tools:
        assert tools["queues__list_queues"].policy is Policy.READ_ONLY
        assert json.loads(await tools["queues__list_queues"].call(ctx, {})) == {"queues": []}
        with pytest.raises(BadData, match="'queue' is a required property"):
            await tools["queues__list_jobs"].call(ctx, {})


@pytest.mark.parametrize(
    "options, told",
    [
        ({"command": ("/no/such/program",)}, "'parts' cannot be used: FileNotFoundError"),
        ({"command": (sys.executable, "-c", "print('hello')")}, "'parts' "),
        ({"command": (), "url": "http://127.0.0.1:9/mcp"}, "'parts' cannot be used: "),
    ],
)
async def test_a_server_that_is_none_is_told(options: Any, told: str) -> None:
    with pytest.raises(ToolError, match=told):
        async with _tools(connect_s=20, **options):
            pass


async def test_a_server_that_says_nothing_is_given_up() -> None:
    silent = (sys.executable, "-c", "import time; time.sleep(600)")
    with pytest.raises(ToolTimeout, match="'parts' did not answer within 1 s"):
        async with _tools(command=silent, connect_s=1):
            pass


@pytest.mark.parametrize(
    "options, told",
    [
        ({"name": "a__b", "command": ("x",)}, "name: up to 32"),
        ({"name": "", "command": ("x",)}, "name: up to 32"),
        ({"name": "a"}, "command: of 'a': either a command or a url"),
        ({"name": "a", "command": ("x",), "url": "http://x"}, "either a command or a url"),
        ({"name": "a", "url": "ftp://x"}, "url: of 'a'"),
        ({"name": "a", "command": ("x",), "timeout_s": 0}, "timeout_s"),
        ({"name": "a", "command": ("x",), "connect_s": -1}, "connect_s"),
    ],
)
def test_bad_settings_are_named(options: Any, told: str) -> None:
    with pytest.raises(BadOption, match=told):
        McpServer(**options)


async def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ToolError, match=r"pip install 'bullpen\[mcp-tools\]'"):
        await McpSource(McpServer(name="parts", command=PARTS)).tools()


# ── schemas of others ────────────────────────────────────────────────────────────────────


def test_what_a_schema_refers_to_elsewhere_is_not_fetched() -> None:
    read = reader_of({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}})
    with pytest.raises(ValueError, match="refers to what is not in it"):
        read({"a": 1})
    assert read({}) == {}


def test_a_schema_may_refer_to_its_own_parts() -> None:
    read = reader_of({"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}})
    assert read({"a": 1}) == {"a": 1}
    with pytest.raises(ValueError, match=r"at `\$.a`"):
        read({"a": "x"})


def test_what_is_no_schema_is_refused() -> None:
    with pytest.raises(BadOption, match="schema: "):
        reader_of({"type": "objekt"})
