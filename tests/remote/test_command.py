"""A command as a handler: what it reads, what it says, how it ends, and how it is ended."""

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from bullpen.errors import BadData, BadOption
from bullpen.remote.command import EXIT_UNRECOVERABLE, CommandFailed, command_handler
from bullpen.testing import test_context as make_context
from bullpen.worker.judging import is_retryable
from bullpen.worker.options import RetryPolicy


def shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


def python(script: str) -> list[str]:
    return [sys.executable, "-c", script]


async def test_it_reads_the_data_and_gives_a_result() -> None:
    script = "import json, sys; data = json.load(sys.stdin); print('::result', json.dumps({'twice': data['n'] * 2}))"
    handler = command_handler(python(script))
    assert await handler(make_context(data={"n": 21})) == {"twice": 42}


async def test_its_lines_are_the_jobs_log_and_progress() -> None:
    """Those of its standard error too."""
    context = make_context()
    await command_handler(shell("echo one; echo '::progress 40'; echo two >&2"))(context)
    assert sorted(context.logs) == ["one", "two"]
    assert context.progress_values == [40]


async def test_it_knows_its_job_by_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not the token, which is good for all jobs."""
    monkeypatch.setenv("BULLPEN_TOKEN", "bp_secret")
    context = make_context("build", queue="dev", tenant="acme")
    await command_handler(shell("env | grep ^BULLPEN_ | sort"))(context)
    said = dict(line.split("=", 1) for line in context.logs)
    assert (said["BULLPEN_QUEUE"], said["BULLPEN_JOB_NAME"], said["BULLPEN_TENANT"]) == ("dev", "build", "acme")
    assert said["BULLPEN_JOB_ID"] == context.id
    assert said["BULLPEN_ATTEMPT"] == "1"
    assert "BULLPEN_TOKEN" not in said


@pytest.mark.parametrize("code, retryable", [(1, True), (EXIT_UNRECOVERABLE, False)])
async def test_an_exit_code_fails_the_attempt_with_the_end_of_its_errors(code: int, retryable: bool) -> None:
    with pytest.raises(CommandFailed, match="disk is full") as failed:
        await command_handler(shell(f"echo disk is full >&2; exit {code}"))(make_context())
    assert f"exit code {code}" in str(failed.value)
    assert is_retryable(failed.value, RetryPolicy()) is retryable


async def test_a_command_that_was_killed_says_by_what() -> None:
    with pytest.raises(CommandFailed, match="ended by SIGKILL"):
        await command_handler(shell("kill -9 $$"))(make_context())


async def test_a_result_that_is_no_json_fails_the_job() -> None:
    """Not in silence: someone waits for that result."""
    with pytest.raises(BadData, match="::result"):
        await command_handler(shell("echo '::result {oops'"))(make_context())


async def test_it_need_not_read_its_input() -> None:
    assert await command_handler(["/bin/true"])(make_context(data={"text": "x" * 200_000})) is None


async def test_a_very_long_line_comes_in_pieces() -> None:
    context = make_context()
    await command_handler(python("print('x' * 200_000)"))(context)
    assert "".join(context.logs) == "x" * 200_000


@pytest.mark.parametrize("manner", ["", "trap '' TERM; "])
async def test_when_the_job_is_to_stop_all_of_it_ends(tmp_path: Path, manner: str) -> None:
    """The command and what it started; also what does not listen."""
    pids = tmp_path / "pids"
    script = f"{manner}sleep 600 & echo $! $$ > {shlex.quote(str(pids))}.new; mv {pids}.new {pids}; wait; sleep 600"
    running = asyncio.create_task(_run(script))
    while not pids.exists():
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    for pid in pids.read_text().split():
        await _until_gone(int(pid))


async def test_when_the_job_is_to_stop_while_its_command_starts_all_of_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command runs already, with what it has begun, and we are about to learn of it."""
    pids = tmp_path / "pids"
    go_on = asyncio.Event()
    start = asyncio.create_subprocess_exec

    async def start_slowly(*words: Any, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*words, **options)
        await go_on.wait()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_slowly)
    running = asyncio.create_task(_run(f"sleep 600 & echo $! $$ > {pids}.new; mv {pids}.new {pids}; wait"))
    while not pids.exists():
        await asyncio.sleep(0.01)
    running.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    for pid in pids.read_text().split():
        await _until_gone(int(pid))


async def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    """It would hold the job open, and outlive its lease."""
    pid_file = tmp_path / "pid"
    await _run(f"sleep 600 & echo $! > {pid_file}; echo done")
    await _until_gone(int(pid_file.read_text()))


async def _run(script: str) -> None:
    await command_handler(shell(script))(make_context())


async def _until_gone(pid: int) -> None:
    """Ended; whether anyone has taken note of that is another question."""
    async with asyncio.timeout(60):
        while _state_of(pid) not in "ZX":
            await asyncio.sleep(0.01)


def _state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


@pytest.mark.parametrize("command", [[], ["/no/such/program"]])
def test_refuses_what_cannot_be_run(command: list[str]) -> None:
    with pytest.raises(BadOption):
        command_handler(command)
