"""A store and the file that it holds open; every verb goes to its writer or to a reader."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar, cast

from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.errors import StoreNotOpen
from bullpen.stores.base import StoreFacts
from bullpen.stores.sqlite.connection import Sync
from bullpen.stores.sqlite.file import SharedFile, Waiter, acquire, release
from bullpen.stores.sqlite.transaction import News, Transaction

T = TypeVar("T")


class OpenFile:
    facts = StoreFacts(name="sqlite", exchanges_in_flight=1, detects_dead_processes=True)

    def __init__(self, path: str | Path, *, sync: Sync = "full", clock: Clock = SYSTEM_CLOCK) -> None:
        self._path = Path(path).absolute()
        self._sync = sync
        self._clock = clock
        self._opened: SharedFile | None = None

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def place(self) -> str:
        return f"sqlite:{self._path}"

    async def open(self) -> None:
        if self._opened is not None:
            return
        file = await asyncio.to_thread(acquire, self._path, self._sync, self._clock)
        if self._opened is None:
            self._opened = file
        else:  # someone else opened us meanwhile
            await asyncio.to_thread(release, file)

    async def close(self) -> None:
        if (file := self._opened) is not None:
            self._opened = None
            await asyncio.to_thread(release, file)

    @property
    def _file(self) -> SharedFile:
        if self._opened is None:
            raise StoreNotOpen(f"{self._path}: the store is not open")
        return self._opened

    async def _write(self, do: Callable[[Transaction], T]) -> T:
        return cast(T, await self._file.writer.submit(do))

    async def _look_until(
        self,
        timeout_ms: int,
        *,
        topic: int,
        concerns: Callable[[News], bool],
        look: Callable[[], Awaitable[T]],
        enough: Callable[[T], bool],
    ) -> T:
        """Look, and look again at each news that concerns us, until there is enough or no time left."""
        file = self._file
        waiter = Waiter(topic, concerns)
        deadline_ms = self._clock.mono_ms() + timeout_ms
        file.join(waiter)
        try:
            while True:
                found = await look()
                left_ms = deadline_ms - self._clock.mono_ms()
                if enough(found) or left_ms <= 0 or not await waiter.sleep(left_ms / 1000):
                    return found
        finally:
            file.leave(waiter)
