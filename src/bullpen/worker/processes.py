"""Processes for handlers that hold the interpreter lock, or must be killable.

A process runs one job at a time and is used again. It is killed when its job must stop and
does not give way within a second, and its death is told apart from a failure of the job.
"""

import asyncio
import os
import signal
import socket
import sys

from bullpen.errors import JobCancelled, Postpone, RateLimited
from bullpen.job.record import CrashKind
from bullpen.worker.judging import HandlerRaised
from bullpen.worker.messages import (
    LENGTH,
    Done,
    FromProcess,
    LogLine,
    Progress,
    Raised,
    RunJob,
    StopJob,
    Then,
    decode_from_process,
    frame,
)
from bullpen.worker.oom import OomWatch
from bullpen.worker.running import Run

_GIVE_WAY_S = 1.0


class ProcessCrash(Exception):
    """The process of a job ended under it."""

    def __init__(self, kind: CrashKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Processes:
    def __init__(self) -> None:
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        self._oom = OomWatch()

    async def run(self, run: Run) -> object:
        """The handler's result; its error, or ProcessCrash, raised."""
        process = self._idle.pop() if self._idle else await self._start()
        try:
            value = await process.run(run)
        except (HandlerRaised, Postpone, RateLimited, JobCancelled):
            self._idle.append(process)
            raise
        except asyncio.CancelledError:
            if await process.give_way(run):
                self._idle.append(process)
            else:
                self._all.discard(process)
            raise
        except EOFError:
            self._all.discard(process)
            raise self._explain(await process.ended()) from None
        self._idle.append(process)
        return value

    async def _start(self) -> "_Process":
        process = await _Process.start()
        self._all.add(process)
        return process

    def _explain(self, code: int) -> ProcessCrash:
        if code == -signal.SIGKILL and self._oom.happened():
            return ProcessCrash(CrashKind.OUT_OF_MEMORY, "its process was killed for using too much memory")
        if code < 0:
            return ProcessCrash(CrashKind.KILLED, f"its process was ended by {signal.Signals(-code).name}")
        return ProcessCrash(CrashKind.KILLED, f"its process ended itself with code {code}")

    async def close(self) -> None:
        for process in self._all:
            await process.kill()
        self._all.clear()
        self._idle.clear()


class _Process:
    def __init__(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls) -> "_Process":
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "bullpen.worker.child",
                str(theirs.fileno()),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
        reader, writer = await asyncio.open_connection(sock=ours)
        return cls(process, reader, writer)

    async def run(self, run: Run) -> object:
        context = run.context
        self._writer.write(frame(RunJob(run.job, context.data, run.handler.import_path)))
        while True:
            match await self._receive():
                case LogLine(line):
                    context.log(line)
                case Progress(value):
                    context.progress(value)
                case Then(job):
                    context.then(job)
                case Done(value):
                    return value
                case Raised() as raised:
                    raise _as_error(raised)

    async def give_way(self, run: Run) -> bool:
        """Ask the handler to stop, and kill the process if it does not; whether the process lives."""
        self._writer.write(frame(StopJob(run.context.cancel_reason or "")))
        try:
            async with asyncio.timeout(_GIVE_WAY_S):
                while not isinstance(await self._receive(), Done | Raised):
                    pass
        except (TimeoutError, EOFError):
            await self.kill()
            return False
        return True

    async def ended(self) -> int:
        self._writer.close()
        return await self._process.wait()

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self.ended()

    async def _receive(self) -> FromProcess:
        try:
            (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
            return decode_from_process(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise EOFError from error


def _as_error(raised: Raised) -> Exception:
    if raised.postpone_s is not None:
        return Postpone(raised.postpone_s, raised.message)
    if raised.limited_s is not None:
        return RateLimited(raised.limited_s, whole_queue=raised.limits_queue)
    if raised.cancelled:
        return JobCancelled(raised.message)
    return HandlerRaised(raised)
