"""Being told to stop by the system, and ending with whoever started this process."""

import asyncio
import contextlib
import ctypes
import os
import signal
from collections.abc import Callable, Iterator

_STOP = (signal.SIGTERM, signal.SIGINT)
_SAME_S = 1.0
"""systemd tells each process of a service, and a supervisor passes on what it was told: all that is one signal."""
_PR_SET_PDEATHSIG = 1


@contextlib.contextmanager
def listening(loop: asyncio.AbstractEventLoop, callback: Callable[[], None] | None) -> Iterator[None]:
    """SIGTERM and SIGINT call back, for the time of a block; without a callback they do as before."""
    if callback is None:
        yield
        return
    ear = _Ear(loop, callback)
    for number in _STOP:
        loop.add_signal_handler(number, ear.hear)
    try:
        yield
    finally:
        for number in _STOP:
            loop.remove_signal_handler(number)


class _Ear:
    """Passes on the first signal, and those that are not the same one heard again."""

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        self._loop = loop
        self._callback = callback
        self._first_s: float | None = None

    def hear(self) -> None:
        now_s = self._loop.time()
        if self._first_s is None:
            self._first_s = now_s
        elif now_s < self._first_s + _SAME_S:
            return
        self._callback()


def when_parent_dies(number: signal.Signals) -> None:
    """Ask the kernel for this signal then, where it knows how: handlers in C code may never look."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def tell(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Send it a signal, if it lives."""
    # `process.send_signal` looks first whether it has ended, and takes its exit code away from whoever waits for it:
    # asyncio then has 255 for one that ended in this moment.
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
