"""What is to be done now and then by whoever has the records open."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from sqlalchemy.exc import SQLAlchemyError

from bullpen.errors import BullpenError
from bullpen.records.stopping import end, wait_for_any
from bullpen.records.turn_lease import TurnLease

logger = logging.getLogger("bullpen.records")

LOOK_EVERY_S = 10.0


class Chore:
    """A thing to do, and how often. Any number of processes may do it at once, unless it has a lease:
    then one of them does it each time.
    """

    def __init__(
        self, name: str, every_s: float, do: Callable[[], Awaitable[object]], *, lease: TurnLease | None = None
    ) -> None:
        self.name = name
        self._every_s = every_s
        self._do = do
        self._lease = lease
        self._next = time.monotonic() + every_s

    async def do_if_due(self) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._every_s
        await self.do()

    async def do(self) -> None:
        try:
            if self._lease is None or await self._lease.take():
                await self._do()
        except (BullpenError, SQLAlchemyError, OSError) as error:
            logger.warning("%s: not at present: %s", self.name, type(error).__name__)
        except Exception:
            # The others must not end with it, nor its own next time.
            logger.exception("%s: failed", self.name)


class Chores:
    """Does each in its time, from `start` to `stop`."""

    def __init__(self, *chores: Chore) -> None:
        self._chores = chores
        self._stopping = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._running is None:
            # Owned by these chores; ended and awaited by `stop`.
            self._stopping.clear()
            self._running = asyncio.create_task(self._run(), name="chores")

    async def stop(self) -> None:
        """Safe to call twice."""
        running, self._running = self._running, None
        if running is not None:
            await end(running, self._stopping)

    async def _run(self) -> None:
        while not self._stopping.is_set():
            await wait_for_any(self._stopping, seconds=LOOK_EVERY_S)
            for chore in self._chores:
                if not self._stopping.is_set():
                    await chore.do_if_due()
