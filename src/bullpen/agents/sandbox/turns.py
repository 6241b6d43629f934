"""Turns at what several calls share. Who waits for one has no time counted: how long it takes is up to others."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar

_LIMIT: ContextVar[asyncio.Timeout | None] = ContextVar("the limit of a call", default=None)


@contextlib.contextmanager
def counted_by(limit: asyncio.Timeout) -> Iterator[None]:
    """What is done in this block has this limit, which rests while it waits in line."""
    token = _LIMIT.set(limit)
    try:
        yield
    finally:
        _LIMIT.reset(token)


@contextlib.contextmanager
def in_line() -> Iterator[None]:
    """A wait that does not count; something else must bound it."""
    limit = _LIMIT.get()
    # Of a call that does several things at once the first to wait stops the clock, and starts it again.
    if limit is None or limit.expired() or (until := limit.when()) is None:
        yield
        return
    loop = asyncio.get_running_loop()
    left_s = until - loop.time()
    limit.reschedule(None)
    try:
        yield
    finally:
        limit.reschedule(loop.time() + left_s)


class Turns:
    """One at a time."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    def locked(self) -> bool:
        return self._lock.locked()

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        with in_line():
            await self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()
