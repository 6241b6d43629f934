"""Files of the workspace, by a real sandbox."""

import asyncio
from typing import Any

import pytest

from bullpen.agents.sandbox.base import Level
from bullpen.agents.tools.executing import shell_execute
from bullpen.agents.tools.files import file_read, file_write
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import ToolContext
from bullpen.errors import BadData, ToolError
from tests.agents.tools.conftest import SandboxedContext

READ = file_read()
WRITE = file_write()
SHELL = shell_execute()


async def test_what_is_written_is_read(boxed: ToolContext) -> None:
    written = await WRITE.call(boxed, {"path": "notes/plan.md", "text": "# Plan\nÜben\n"})
    assert written == {"path": "notes/plan.md", "bytes_written": 13}
    assert await READ.call(boxed, {"path": "notes/plan.md"}) == {
        "path": "notes/plan.md", "text": "# Plan\nÜben\n", "lines": 2
    }  # fmt: skip
    await WRITE.call(boxed, {"path": "notes/plan.md", "text": "less"})
    assert (await READ.call(boxed, {"path": "/workspace/notes/plan.md"}))["text"] == "less"


async def test_additions_side_by_side_are_all_there(boxed: ToolContext) -> None:
    lines = [f"line {n}\n" for n in range(20)]
    await asyncio.gather(*(WRITE.call(boxed, {"path": "a/log", "text": one, "append": True}) for one in lines))
    assert sorted((await READ.call(boxed, {"path": "a/log"}))["text"].splitlines(keepends=True)) == sorted(lines)


async def test_a_file_is_read_in_parts(boxed: ToolContext) -> None:
    await WRITE.call(boxed, {"path": "n", "text": "".join(f"{n}\n" for n in range(10))})
    part = await READ.call(boxed, {"path": "n", "offset": 3, "limit": 2})
    assert (part["text"], part["lines"], part["next_offset"]) == ("3\n4\n", 10, 5)
    last = await READ.call(boxed, {"path": "n", "offset": 8, "limit": 5})
    assert last["text"] == "8\n9\n"
    assert "next_offset" not in last
    assert (await READ.call(boxed, {"path": "n", "offset": 50}))["text"] == ""


async def test_no_more_is_read_at_a_time_than_a_model_should_see(boxed: ToolContext) -> None:
    reads = file_read(most_characters=10)
    await WRITE.call(boxed, {"path": "n", "text": "1234\n5678\n9\n"})
    assert await reads.call(boxed, {"path": "n"}) == {"path": "n", "text": "1234\n5678\n", "lines": 3, "next_offset": 2}
    await WRITE.call(boxed, {"path": "wide", "text": "x" * 100 + "\nnext\n"})
    wide = await reads.call(boxed, {"path": "wide"})
    assert wide["text"].startswith("xxxxxxxxxx … 91 characters")
    assert wide["next_offset"] == 1


async def test_binary_is_named_and_not_shown(boxed: ToolContext) -> None:
    await SHELL.call(boxed, {"command": r"printf '\211PNG\r\n\000\001' > a.png; printf '\377\376' > b"})
    assert await READ.call(boxed, {"path": "a.png"}) == {
        "path": "a.png", "bytes": 8, "note": "this is no text but binary (image/png): it is not shown"
    }  # fmt: skip
    assert "of an unknown kind" in (await READ.call(boxed, {"path": "b"}))["note"]


async def test_a_folder_is_listed(boxed: ToolContext) -> None:
    await SHELL.call(boxed, {"command": "mkdir -p d/e; touch d/f"})
    assert await READ.call(boxed, {"path": "d"}) == {"path": "d", "folder": ["e/", "f"]}


@pytest.mark.parametrize(
    "arguments, told",
    [
        ({"path": "../../etc/passwd"}, r"path: ../../etc/passwd leads out of the workspace"),
        ({"path": "/etc/passwd"}, "leads out of the workspace"),
        ({"path": "way-out"}, "way-out leads out of the workspace"),
        ({"path": "none.txt"}, "path: there is no none.txt"),
        ({"path": "pipe"}, "path: pipe is no regular file"),
        ({"path": "a\0b"}, "path: has a NUL"),
    ],
)
async def test_what_cannot_be_read_says_why(boxed: ToolContext, arguments: Any, told: str) -> None:
    await SHELL.call(boxed, {"command": "ln -s /etc/passwd way-out; mkfifo pipe"})
    with pytest.raises(ToolError, match=told):
        await READ.call(boxed, arguments)


@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize(
    "path, told",
    [("../x", "leads out"), ("/etc/x", "leads out"), ("way-out", "leads out"), ("folder", "folder"), ("pipe", "pipe")],
)
async def test_what_cannot_be_written_says_why(boxed: ToolContext, path: str, told: str, append: bool) -> None:
    await SHELL.call(boxed, {"command": "ln -s /etc/passwd way-out; mkdir folder; mkfifo pipe"})
    with pytest.raises(ToolError, match=f"path: .*{told}"):
        await WRITE.call(boxed, {"path": path, "text": "x", "append": append})


async def test_too_much_is_refused(boxed: ToolContext) -> None:
    with pytest.raises(ToolError, match="text: 11 bytes, and no more than 10"):
        await file_write(most_bytes=10).call(boxed, {"path": "x", "text": "x" * 11})
    await WRITE.call(boxed, {"path": "x", "text": "x" * 11})
    with pytest.raises(ToolError, match="path: x is larger than 10 bytes"):
        await file_read(most_bytes=10).call(boxed, {"path": "x"})


async def test_a_full_workspace_is_told(with_sandbox: SandboxedContext) -> None:
    boxed = await with_sandbox(disk_mb=1)
    with pytest.raises(ToolError, match="the workspace is full"):
        await WRITE.call(boxed, {"path": "x", "text": "x" * 3_000_000})
    with pytest.raises(ToolError, match="path: y cannot be added to"):
        await WRITE.call(boxed, {"path": "y", "text": "x" * 3_000_000, "append": True})


@pytest.mark.parametrize("arguments", [{}, {"path": ""}, {"path": "x", "offset": -1}, {"path": "x", "limit": 0}])
def test_arguments_that_do_not_fit_are_refused(arguments: Any) -> None:
    with pytest.raises(BadData, match="arguments: of 'file_read'"):
        READ.check(arguments)


async def test_a_run_without_a_sandbox_has_no_files(ctx: ToolContext) -> None:
    with pytest.raises(ToolError, match="no sandbox"):
        await READ.call(ctx, {"path": "x"})


def test_what_a_crash_means() -> None:
    assert (READ.policy, WRITE.policy) == (Policy.READ_ONLY, Policy.IDEMPOTENT)
    assert (READ.isolation, WRITE.isolation) == (Level.NAMESPACE, Level.NAMESPACE)
