"""Programs in processes of their own: started, heard, bounded in time, never left behind.

A child writes lines of JSON and ends when its input closes, so it also ends with its parent.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent
Answer = dict[str, Any]
T = TypeVar("T")

_LONGEST_S = 180.0
_LONGEST_LINE = 1_000_000


class ChildFailed(Exception):
    """A measured program ended without an answer, or took too long."""


class Child:
    def __init__(self, process: Process, deadline: float) -> None:
        self._process = process
        self._deadline = deadline

    async def answer(self) -> Answer:
        """Its next line."""
        assert self._process.stdout is not None
        line = await self._in_time(self._process.stdout.readline())
        if not line:
            raise ChildFailed(f"ended with code {await self._in_time(self._process.wait())} and no answer")
        answer: Answer = json.loads(line)
        return answer

    async def told(self, order: Mapping[str, Any]) -> Answer:
        """Its answer to a line of ours."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        return await self.answer()

    async def last_answer(self) -> Answer:
        """Tell it to stop, and hear what it has to say."""
        self.stop()
        return await self.answer()

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def ended(self) -> None:
        self.stop()
        code = await self._in_time(self._process.wait())
        if code:
            raise ChildFailed(f"ended with code {code}")

    async def _in_time(self, wait: Coroutine[Any, Any, T]) -> T:
        try:
            async with asyncio.timeout_at(self._deadline):
                return await wait
        except TimeoutError:
            raise ChildFailed("took too long") from None


@contextlib.asynccontextmanager
async def child(*command: str | Path, longest_s: float = _LONGEST_S) -> AsyncIterator[Child]:
    """Run a program for the time of a block; whatever happens, it does not outlive it."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command), stdin=PIPE, stdout=PIPE, cwd=ROOT, start_new_session=True, limit=_LONGEST_LINE
    )
    started = Child(process, asyncio.get_running_loop().time() + longest_s)
    try:
        yield started
        await started.ended()
    finally:
        if process.returncode is None:
            # Its own session, so this ends the program and what it started, and nothing else.
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def module(name: str, *arguments: str | int | Path) -> list[str]:
    """The command that runs one of our modules."""
    return [sys.executable, "-m", f"benchmarks.{name}", *map(str, arguments)]


async def ask(*command: str | Path) -> Answer:
    """Run a program that answers with one line."""
    async with child(*command) as asked:
        return await asked.answer()


# ── inside a child ───────────────────────────────────────────────────────────────────────


def say(answer: Answer) -> None:
    print(json.dumps(answer), flush=True)


def when_input_closes(act: Callable[[], None]) -> None:
    """Call back on this event loop once the parent closed our input, or is gone."""
    loop = asyncio.get_running_loop()

    def listen() -> None:
        while os.read(0, 1024):
            pass
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            loop.call_soon_threadsafe(act)

    threading.Thread(target=listen, daemon=True).start()


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a child's main on uvloop."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)
