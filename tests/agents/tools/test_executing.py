"""Code and commands in a real sandbox: what comes out, what is cut, and what is refused."""

import asyncio
import dataclasses
import shutil
from typing import Any

import pytest

from bullpen.agents.sandbox.base import Level
from bullpen.agents.tools.executing import code_execute, shell_execute
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import ToolContext
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.errors import BadData, BadOption, IsolationTooWeak, ToolError, ToolTimeout
from tests.agents.tools.conftest import Drawer, SandboxedContext

CODE = code_execute()
SHELL = shell_execute()


async def test_python_runs_and_its_streams_come_back(boxed: ToolContext) -> None:
    code = "import sys\nprint(6 * 7)\nprint('careful', file=sys.stderr)\nsys.exit(3)"
    result = await CODE.call(boxed, {"code": code})
    assert (result["ended"], result["exit_code"]) == ("exit", 3)
    assert (result["stdout"], result["stderr"]) == ("42\n", "careful\n")
    assert "stdout_note" not in result


async def test_what_is_printed_is_told_as_it_comes(boxed: ToolContext) -> None:
    told: list[str] = []
    context = dataclasses.replace(boxed, progress=told.append)
    await CODE.call(context, {"code": "print('one')\nprint('two')"})
    await SHELL.call(context, {"command": "echo three"})
    assert told == ["one", "two", "three"]


async def test_an_error_names_its_line_and_stdin_is_empty(boxed: ToolContext) -> None:
    result = await CODE.call(boxed, {"code": "x = 1\nprint(repr(open(0).read()))\nx / 0\n"})
    assert result["stdout"] == "''\n"
    assert "line 3" in result["stderr"]
    assert "ZeroDivisionError" in result["stderr"]
    assert result["exit_code"] == 1


async def test_files_stay_between_calls_and_modules_of_the_workspace_are_found(boxed: ToolContext) -> None:
    await CODE.call(boxed, {"code": "open('tools.py', 'w').write('ANSWER = 42')"})
    assert (await CODE.call(boxed, {"code": "import tools; print(tools.ANSWER)"}))["stdout"] == "42\n"
    assert (await SHELL.call(boxed, {"command": "cat tools.py | wc -c"}))["stdout"].strip() == "11"


@pytest.mark.skipif(shutil.which("node", path="/usr/local/bin:/usr/bin:/bin") is None, reason="no Node in /usr")
async def test_javascript_runs_by_node(boxed: ToolContext) -> None:
    result = await CODE.call(boxed, {"code": "console.log([1, 2, 3].map(n => n * n).join())", "language": "javascript"})
    assert result["stdout"] == "1,4,9\n", result


async def test_a_language_without_a_program_is_told(boxed: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bullpen.agents.tools.executing._PROGRAMS", {"javascript": "no-such-node"})
    with pytest.raises(ToolError, match="there is no no-such-node in this sandbox"):
        await CODE.call(boxed, {"code": "1", "language": "javascript"})


async def test_a_program_that_takes_too_long_is_ended_and_its_output_is_there(boxed: ToolContext) -> None:
    code = "import time\nprint('begun', flush=True)\ntime.sleep(600)"
    result = await CODE.call(boxed, {"code": code, "timeout_s": 1})
    assert result["ended"] == "timeout: it took longer than 1 s"
    assert result["stdout"] == "begun\n"


async def test_nobody_may_take_longer_than_the_tool_allows(boxed: ToolContext) -> None:
    result = await shell_execute(longest_s=0.5).call(boxed, {"command": "sleep 600", "timeout_s": 600})
    assert result["ended"] == "timeout: it took longer than 0.5 s"


async def test_long_output_is_cut_in_the_middle_and_kept_whole(boxed: ToolContext, drawer: Drawer) -> None:
    result = await shell_execute(shown=100).call(boxed, {"command": "seq 1 1000"})
    assert result["stdout"].startswith("1\n2\n")
    assert result["stdout"].endswith("999\n1000\n")
    assert "characters left out" in result["stdout"]
    assert len(result["stdout"]) < 200
    assert "/stdout.txt (stdout.txt, 3893 bytes)" in result["stdout_note"]
    kept = drawer.named("stdout.txt")
    assert kept.data.decode().splitlines() == [str(n) for n in range(1, 1001)]
    assert kept.mime == "text/plain"
    assert "stderr_note" not in result


async def test_what_a_sandbox_did_not_keep_is_not_claimed(with_sandbox: SandboxedContext, drawer: Drawer) -> None:
    boxed = await with_sandbox(output_bytes=1_000)
    result = await shell_execute(shown=100).call(boxed, {"command": "seq 1 100000"})
    size = len(drawer.named("stdout.txt").data)
    assert f"only the first {size} bytes were kept" in result["stdout_note"]


async def test_a_run_that_keeps_no_files_is_told_that_the_rest_is_gone(with_sandbox: SandboxedContext) -> None:
    boxed = await with_sandbox(files=False)
    result = await shell_execute(shown=100).call(boxed, {"command": "seq 1 1000"})
    assert "the rest is not kept" in result["stdout_note"]


async def test_output_that_is_no_text_does_no_harm(boxed: ToolContext) -> None:
    result = await SHELL.call(boxed, {"command": r"printf '\377\376ok'"})
    assert result["stdout"] == "��ok"


@pytest.mark.parametrize(
    "arguments, told",
    [
        ({}, "missing required field `code`"),
        ({"code": ""}, "length >= 1"),
        ({"code": "1", "language": "cobol"}, r"Invalid enum value 'cobol' - at `\$.language`"),
        ({"code": "1", "timeout_s": 0}, r"at `\$.timeout_s`"),
        ({"code": "1", "cwd": "/"}, "unknown field `cwd`"),
    ],
)
def test_arguments_that_do_not_fit_name_the_field(arguments: Any, told: str) -> None:
    with pytest.raises(BadData, match=told):
        CODE.check(arguments)


async def test_a_command_with_a_nul_is_refused(boxed: ToolContext) -> None:
    with pytest.raises(ToolError, match="command: has a NUL"):
        await SHELL.call(boxed, {"command": "ls \0"})


async def test_a_run_without_a_sandbox_runs_no_code(ctx: ToolContext) -> None:
    with pytest.raises(ToolError, match="this run has no sandbox"):
        await CODE.call(ctx, {"code": "print(1)"})


async def test_a_crash_lets_it_run_again_only_where_nothing_got_out(with_sandbox: SandboxedContext) -> None:
    """Without network all that it did is gone with the sandbox; with it, a person is asked."""
    assert (CODE.policy, SHELL.policy) == (Policy.READ_ONLY, Policy.READ_ONLY)
    assert (code_execute(network=True).policy, shell_execute(network=True).policy) == (Policy.ONCE, Policy.ONCE)
    online = await with_sandbox(network=True)
    with pytest.raises(ToolError, match="make it with network=True"):
        await SHELL.call(online, {"command": "true"})
    assert (await shell_execute(network=True).call(online, {"command": "echo there"}))["stdout"] == "there\n"


def test_weaker_walls_are_refused() -> None:
    for tool in (CODE, SHELL):
        with pytest.raises(IsolationTooWeak):
            Toolbox([tool]).check_isolation(Level.PROCESS)
        Toolbox([tool]).check_isolation(Level.NAMESPACE)


def test_a_bad_setting_is_refused() -> None:
    with pytest.raises(BadOption, match="longest_s"):
        code_execute(longest_s=0)


async def test_waiting_for_the_sandbox_is_not_counted(boxed: ToolContext) -> None:
    """Two calls side by side: the second has its whole time when the first one is done."""
    first, second = (dataclasses.replace(SHELL, timeout_s=1.5) for _ in range(2))
    command = {"command": "sleep 1; echo done"}
    found = await asyncio.gather(first.call(boxed, command), second.call(boxed, command))
    assert [one["stdout"] for one in found] == ["done\n", "done\n"]


async def test_what_is_done_with_the_sandbox_is_counted(boxed: ToolContext) -> None:
    hasty = dataclasses.replace(SHELL, timeout_s=0.3)
    with pytest.raises(ToolTimeout):
        await hasty.call(boxed, {"command": "sleep 5"})


async def test_a_call_made_again_names_what_it_wrote_this_time(boxed: ToolContext, drawer: Drawer) -> None:
    """After a crash it has the same key, and may print otherwise."""
    brief = shell_execute(shown=10)
    for word in ("first", "again", "first"):
        result = await brief.call(boxed, {"command": f"for n in 1 2 3 4 5; do echo {word}; done"})
        named = result["stdout_note"].split("the artifact ")[1].split(" ")[0]
        assert drawer.files[named].data == f"{word}\n".encode() * 5
    assert len(drawer.files) == 2
