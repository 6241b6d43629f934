"""Seeing that the event loop is blocked, by whom, and where.

The loop beats a few times a second; the lease thread listens. When the beat stays away, it
samples the loop's stack: the job whose coroutine is on it is the one that blocks.
"""

import asyncio
import sys
import sysconfig
import threading
import types
from collections.abc import Iterable, Iterator

import msgspec

from bullpen.clock import Clock
from bullpen.worker.running import Run

_BEAT_S = 0.1
_LIBRARIES = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class Pulse:
    """The loop's heartbeat. Started on the loop, read from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._last_ms = clock.mono_ms()
        self._handle: asyncio.TimerHandle | None = None
        self._beat()

    def _beat(self) -> None:
        self._last_ms = self._clock.mono_ms()
        self._handle = self._loop.call_later(_BEAT_S, self._beat)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def silent_ms(self) -> int:
        """For how long the loop has done nothing but one thing."""
        return max(0, self._clock.mono_ms() - self._last_ms - round(_BEAT_S * 1000))

    def stack(self) -> list[types.FrameType]:
        """What the loop's thread does now, innermost first."""
        return list(_frames(sys._current_frames().get(self._thread_id)))  # noqa: SLF001 - the documented way


class Block(msgspec.Struct):
    """A handler that holds the loop."""

    run: Run
    place: str
    longest_ms: int


def who_blocks(pulse: Pulse, runs: Iterable[Run]) -> tuple[Run, str] | None:
    """The run whose code is on the loop's stack, and the place in its code."""
    stack = pulse.stack()
    on_stack = {id(frame) for frame in stack}
    for run in runs:
        if run.task is not None and any(id(frame) in on_stack for frame in _task_frames(run.task)):
            return run, place_of(stack)
    return None


def place_of(stack: list[types.FrameType]) -> str:
    """`resize(), job.py:88`: the innermost place that is no library's."""
    own = next((frame for frame in stack if not frame.f_code.co_filename.startswith(_LIBRARIES)), None)
    frame = own or (stack[0] if stack else None)
    if frame is None:
        return "unknown place"
    file = frame.f_code.co_filename.rpartition("/")[2]
    return f"{frame.f_code.co_name}(), {file}:{frame.f_lineno}"


def _task_frames(task: "asyncio.Task[None]") -> Iterator[types.FrameType]:
    """The frames of a task's coroutine and of those that it awaits."""
    inner: object = task.get_coro()
    while isinstance(inner, types.CoroutineType):
        if inner.cr_frame is not None:
            yield inner.cr_frame
        inner = inner.cr_await


def _frames(frame: types.FrameType | None) -> Iterator[types.FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
