"""Processes for handlers that hold the interpreter lock, or must be killable.

A process runs one job at a time and is used again. It is killed, with all that it has started, when its job
must stop and does not give way within a second, and its death is told apart from a failure of the job.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys

import msgspec

from bullpen.errors import JobCancelled, Postpone, RateLimited
from bullpen.job.record import CrashKind
from bullpen.queue.payload import from_bytes
from bullpen.worker.judging import HandlerRaised
from bullpen.worker.memory import resident_mb
from bullpen.worker.messages import (
    LENGTH,
    Begun,
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

logger = logging.getLogger("bullpen.worker")

_GIVE_WAY_S = 1.0


class ProcessCrash(Exception):
    """The process of a job ended under it."""

    def __init__(self, kind: CrashKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class _EndedIdle(Exception):
    """The process ended before it had its next job."""


class Processes:
    def __init__(self, max_memory_mb: int | None = None) -> None:
        self._max_memory_mb = max_memory_mb
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        self._oom = OomWatch()

    async def run(self, run: Run) -> object:
        """The handler's result; its error, or ProcessCrash, raised."""
        message = frame(RunJob(run.job, run.context.data, run.handler.import_path))
        while (process := self._take_idle()) is not None:
            try:
                return await self._run_in(process, run, message)
            except _EndedIdle:
                continue  # it ended before it had the job, which another one can do
        process = await _Process.start()
        self._all.add(process)
        return await self._run_in(process, run, message)

    async def _run_in(self, process: "_Process", run: Run, message: bytes) -> object:
        try:
            value = await process.run(run, message)
        except (HandlerRaised, Postpone, RateLimited, JobCancelled):
            self._put_back(process)
            raise
        except EOFError:
            self._all.discard(process)
            code = await process.ended()
            if process.was_idle:
                raise _EndedIdle from None
            process.kill_group()
            raise self._explain(code) from None
        except BaseException:
            # The job is to stop, or said what cannot be understood: either way its handler may go on.
            if await process.give_way(run):
                self._put_back(process)
            else:
                self._all.discard(process)
            raise
        self._put_back(process)
        return value

    def _take_idle(self) -> "_Process | None":
        while self._idle:
            process = self._idle.pop()
            if process.is_alive:
                return process
            self._all.discard(process)
            process.end_soon()
        return None

    def _put_back(self, process: "_Process") -> None:
        """For the next job, unless this one left it too large."""
        if self._max_memory_mb is not None and (size := process.resident_mb()) > self._max_memory_mb:
            logger.info("a handler's process is replaced: memory is %s MB, the limit is %s", size, self._max_memory_mb)
            self._all = {one for one in self._all if one.is_alive}  # those that were replaced before have ended by now
            process.end_soon()
            return
        process.was_idle = True
        self._idle.append(process)

    def _explain(self, code: int) -> ProcessCrash:
        if code == -signal.SIGKILL and self._oom.happened():
            return ProcessCrash(CrashKind.OUT_OF_MEMORY, "its process was killed for using too much memory")
        if code < 0:
            return ProcessCrash(CrashKind.KILLED, f"its process was ended by {signal.Signals(-code).name}")
        return ProcessCrash(CrashKind.KILLED, f"its process ended itself with code {code}")

    async def close(self) -> None:
        # Jobs that are just being cancelled take theirs out meanwhile.
        for process in tuple(self._all):
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
        self.was_idle = False
        """It has done a job, and has not yet said that it has another."""

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None and not self._reader.at_eof()

    def resident_mb(self) -> int:
        return resident_mb(self._process.pid)

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
                start_new_session=True,  # and so a group, with all that its handlers start
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
        reader, writer = await asyncio.open_connection(sock=ours)
        return cls(process, reader, writer)

    async def run(self, run: Run, message: bytes) -> object:
        context = run.context
        self._writer.write(message)
        while True:
            match await self._receive():
                case Begun():
                    self.was_idle = False
                case LogLine(line):
                    context.log(line)
                case Progress(json):
                    context.progress(from_bytes(json, what="progress"))
                case Then(job):
                    context.then(job)
                case Done(json):
                    return from_bytes(json, what="result")
                case Raised() as raised:
                    raise _as_error(raised)

    async def give_way(self, run: Run) -> bool:
        """Ask the handler to stop, and kill the process if it does not; whether the process lives."""
        self._writer.write(frame(StopJob(run.context.cancel_reason or "")))
        try:
            async with asyncio.timeout(_GIVE_WAY_S):
                while not isinstance(await self._receive(), Done | Raised):
                    pass
        except (TimeoutError, EOFError, msgspec.DecodeError):
            self.kill_group()
            await self.ended()
            return False
        return True

    def end_soon(self) -> None:
        """Between two jobs; who closes all waits for its end."""
        if self.is_alive:
            self.kill_group()
        self._writer.close()

    async def ended(self) -> int:
        self._writer.close()
        return await self._process.wait()

    async def kill(self) -> None:
        if self._process.returncode is None:
            self.kill_group()
        await self.ended()

    def kill_group(self) -> None:
        """With all that it has started; not for one that ended long ago, whose number another may bear."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

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
