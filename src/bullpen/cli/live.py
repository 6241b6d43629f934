"""A view that fills the terminal and renews itself, until it is told to end."""

import asyncio
import contextlib
import os
import sys
import termios
import tty
from collections.abc import Awaitable, Callable, Iterator, Sequence

from bullpen.cli.showing import Show
from bullpen.worker.signals import listening

_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME, _END_OF_LINE, _END_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"

Lines = Sequence[str]


class Ending:
    """Set by Ctrl-C, SIGTERM, `q`, or when the time is over."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        self._event.set()

    async def within(self, seconds: float | None) -> bool:
        """Wait for the end, but no longer than that; whether it came."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        return True

    @contextlib.contextmanager
    def listening(self, after_s: float | None = None) -> Iterator[None]:
        """Hear signals, and the clock if there is a limit, for the time of a block."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(after_s, self.set) if after_s is not None else None
        with listening(loop, self.set):
            try:
                yield
            finally:
                if timer is not None:
                    timer.cancel()


async def keep_drawing(show: Show, draw: Callable[[], Awaitable[Lines]], ending: Ending, every_s: float) -> None:
    """Draw on the terminal's other screen until the end; what was there before comes back."""
    with _other_screen(show), _keys(ending):
        while not ending.is_set:
            lines = list(await draw())[: show.height - 1]
            # Written over what stands there, line by line: clearing first would flicker.
            show.raw(_HOME + "".join(f"{line}{_END_OF_LINE}\r\n" for line in lines) + _END_OF_SCREEN)
            await ending.within(every_s)


@contextlib.contextmanager
def _other_screen(show: Show) -> Iterator[None]:
    show.raw(_ENTER)
    try:
        yield
    finally:
        show.raw(_LEAVE)


@contextlib.contextmanager
def _keys(ending: Ending) -> Iterator[None]:
    """`q` ends; keys are not echoed meanwhile."""
    if not sys.stdin.isatty():
        yield
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    loop = asyncio.get_running_loop()

    def pressed() -> None:
        letters = os.read(keyboard, 64)
        if not letters or b"q" in letters.lower():
            ending.set()

    try:
        tty.setcbreak(keyboard)
        loop.add_reader(keyboard, pressed)
        yield
    finally:
        loop.remove_reader(keyboard)
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
