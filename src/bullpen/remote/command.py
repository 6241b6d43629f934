"""A handler that runs a command: the job's data on its standard input, lines out of it, its exit code the verdict.

    data ──▶ stdin │ command │ stdout ──▶ log, `::progress 40`, `::result {"n": 1}`
                             │ stderr ──▶ log, and its end is the error
                             │ exit   ──▶ 0 completed, 65 never to be tried again, else the attempt failed

The command has a process group of its own: when the job is to stop, all of it is told to (SIGTERM), and
what has not ended within a second and a half is killed.
"""

import asyncio
import collections
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from typing import IO, Any

import msgspec

from bullpen.errors import BadData, BadOption, UsageError
from bullpen.worker.context import Context
from bullpen.worker.handlers import HandlerFunction

EXIT_UNRECOVERABLE = 65
"""The exit code of a command for which another attempt cannot help; EX_DATAERR of sysexits.h."""
PROGRESS = "::progress "
RESULT = "::result "
_MAX_LINE = 65_536
_GIVE_WAY_S = 1.5
"""Less than a worker that stops waits for its handlers: no command is to outlive its agent."""
_TAIL_LINES = 20
_TAIL_CHARS = 2_000


class CommandFailed(Exception):
    """The command ended with an exit code other than 0; the end of its standard error says why."""

    def __init__(self, code: int, tail: str) -> None:
        super().__init__(f"{_how(code)}: {tail}" if tail else _how(code))
        self.retryable = code != EXIT_UNRECOVERABLE


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"ended by {signal.Signals(-code).name}"


def command_handler(command: Sequence[str]) -> HandlerFunction:
    """A handler that runs this command for each job; BadOption if there is no such program."""
    if not command:
        raise BadOption("command: say what to run, after `--`")
    if shutil.which(command[0]) is None:
        raise BadOption(f"command: {command[0]!r} is no program that can be found and run")

    async def run_command(ctx: Context) -> Any:
        output = _Output(ctx)
        async with contextlib.AsyncExitStack() as closing:
            out = await closing.enter_async_context(_pipe())
            err = await closing.enter_async_context(_pipe())
            process = await _start(command, ctx, out, err)
            closing.push_async_callback(_end, process)
            async with asyncio.TaskGroup() as reading:
                reading.create_task(_read(out.reader, output.take))
                reading.create_task(_read(err.reader, output.take_error))
                code = await process.wait()
                # What the command left behind holds our pipes, and would outlive its lease.
                await _end(process)
        if code != 0:
            raise CommandFailed(code, output.tail)
        if output.problem is not None:
            raise output.problem
        return output.result

    return run_command


class _Pipe:
    """From the command to us. Ours, not the subprocess module's: its `wait` would wait for whoever holds one."""

    def __init__(self, reader: asyncio.StreamReader, write_end: int) -> None:
        self.reader = reader
        self.write_end = write_end

    def close_write_end(self) -> None:
        """Safe to call twice."""
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1


@contextlib.asynccontextmanager
async def _pipe() -> AsyncIterator[_Pipe]:
    read_end, write_end = os.pipe()
    reader = asyncio.StreamReader(limit=_MAX_LINE)
    pipe = _Pipe(reader, write_end)
    try:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", buffering=0)
        )
        try:
            yield pipe
        finally:
            transport.close()
    finally:
        pipe.close_write_end()


async def _start(command: Sequence[str], ctx: Context, out: _Pipe, err: _Pipe) -> asyncio.subprocess.Process:
    with await asyncio.to_thread(_file_with, msgspec.json.encode(ctx.data)) as data:
        process = await _unless_cancelled(
            asyncio.create_subprocess_exec(
                *command,
                stdin=data,
                stdout=out.write_end,
                stderr=err.write_end,
                env=_without_secrets(os.environ) | environment_of(ctx),
                start_new_session=True,
            )
        )
    out.close_write_end()
    err.close_write_end()
    return process


async def _unless_cancelled(
    starting: Coroutine[Any, Any, asyncio.subprocess.Process],
) -> asyncio.subprocess.Process:
    """Cancelled in the middle, asyncio would end the command alone, and not what it has begun by then."""
    started = asyncio.ensure_future(starting)
    try:
        return await asyncio.shield(started)
    except asyncio.CancelledError:
        await asyncio.wait([started])
        if started.exception() is None:
            await _end(started.result())
        raise


def _file_with(data: bytes) -> IO[bytes]:
    """A file that nobody else sees: unlike a pipe, it need not be read by the command."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by whoever asked for it
    file.write(data)
    file.seek(0)
    return file


def _without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """A command works on one job; the token is good for all of them, and the key for none."""
    hidden = {"BULLPEN_TOKEN", "BULLPEN_TOKEN_FILE", "BULLPEN_SECRET_KEY", "BULLPEN_SECRET_KEY_FILE"}
    return {name: value for name, value in environment.items() if name not in hidden}


def environment_of(ctx: Context) -> dict[str, str]:
    """What a command learns of its job."""
    job = ctx.job
    said = {
        "BULLPEN_JOB_ID": job.id,
        "BULLPEN_QUEUE": job.queue,
        "BULLPEN_JOB_NAME": job.name,
        "BULLPEN_ATTEMPT": str(ctx.attempt),
        "BULLPEN_EPOCH": str(ctx.epoch),
        "BULLPEN_TENANT": ctx.tenant,
        "BULLPEN_WORKSPACE": ctx.workspace,
        "BULLPEN_TRACEPARENT": ctx.headers.get("traceparent"),
    }
    return {name: value for name, value in said.items() if value is not None and "\0" not in value}


class _Output:
    """What a command says, line by line."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._errors: collections.deque[str] = collections.deque(maxlen=_TAIL_LINES)
        self.result: Any = None
        self.problem: UsageError | None = None
        """The first line that could not be taken as it was meant."""

    @property
    def tail(self) -> str:
        return "\n".join(self._errors)[-_TAIL_CHARS:]

    def take(self, line: str) -> None:
        try:
            if line.startswith(PROGRESS):
                self._ctx.progress(_json_of(line, PROGRESS))
            elif line.startswith(RESULT):
                self.result = _json_of(line, RESULT)
            else:
                self._ctx.log(line)
        except UsageError as error:
            self.problem = self.problem or error

    def take_error(self, line: str) -> None:
        self._errors.append(line)
        self._ctx.log(line)


def _json_of(line: str, mark: str) -> Any:
    try:
        return msgspec.json.decode(line.removeprefix(mark))
    except msgspec.DecodeError as error:
        raise BadData(f"after {mark.strip()} stands JSON: {error}") from error


async def _read(stream: asyncio.StreamReader, take: Callable[[str], None]) -> None:
    while line := await _line_of(stream):
        take(line.decode(errors="replace").rstrip("\r\n"))


async def _line_of(stream: asyncio.StreamReader) -> bytes:
    """The next line; one that is too long comes in pieces."""
    try:
        return await stream.readuntil(b"\n")
    except asyncio.IncompleteReadError as end:
        return end.partial
    except asyncio.LimitOverrunError as over:
        return await stream.readexactly(over.consumed)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End what is left of the command's process group, whatever it does about it."""
    if not _tell_group(process.pid, signal.SIGTERM):
        return
    try:
        async with asyncio.timeout(_GIVE_WAY_S):
            await process.wait()
    except TimeoutError:
        pass
    _tell_group(process.pid, signal.SIGKILL)
    await process.wait()


def _tell_group(pid: int, number: signal.Signals) -> bool:
    """Whether there was anyone to tell. The group bears the number of the command, which led it."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
