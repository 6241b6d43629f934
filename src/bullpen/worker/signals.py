"""Being told to stop by the system."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator

_STOP = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def listening(loop: asyncio.AbstractEventLoop, callback: Callable[[], None] | None) -> Iterator[None]:
    """SIGTERM and SIGINT call back, for the time of a block; without a callback they do as before."""
    for number in _STOP if callback is not None else ():
        assert callback is not None
        loop.add_signal_handler(number, callback)
    try:
        yield
    finally:
        for number in _STOP if callback is not None else ():
            loop.remove_signal_handler(number)
