"""Batch handlers: jobs that are claimed and settled one by one, done together.

Each job of the type waits here for company, in its own slot, under its own lease.
"""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bullpen.errors import BadData
from bullpen.job.checks import check_at_least
from bullpen.worker.context import Context


class Call(msgspec.Struct, frozen=True):
    """One job of a batch."""

    context: Context
    arguments: dict[str, Any]


BatchFunction = Callable[[list[Call]], Any]
"""Plain or async; returns as many results as it was given calls, in their order."""


class Batcher:
    def __init__(self, function: BatchFunction, size: int, wait_ms: int) -> None:
        check_at_least("size", size, 1)
        self._function = function
        self._size = size
        self._wait_s = wait_ms / 1000
        self._waiting: list[tuple[Call, asyncio.Future[Any]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._running: set[asyncio.Task[None]] = set()

    async def do(self, call: Call) -> Any:
        """This call's own result, once its batch is done."""
        loop = asyncio.get_running_loop()
        mine: tuple[Call, asyncio.Future[Any]] = (call, loop.create_future())
        self._waiting.append(mine)
        if len(self._waiting) >= self._size:
            self._go()
        elif self._timer is None:
            self._timer = loop.call_later(self._wait_s, self._go)
        try:
            return await mine[1]
        finally:
            if mine in self._waiting:  # cancelled before its batch began
                self._waiting.remove(mine)

    def _go(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._waiting = self._waiting, []
        if batch:
            # Owned by this batcher; each call awaits its own future.
            task = asyncio.create_task(self._run(batch))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _run(self, batch: Sequence[tuple[Call, "asyncio.Future[Any]"]]) -> None:
        try:
            outcomes = await self._outcomes([call for call, _ in batch])
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is every call's error
            outcomes = [error] * len(batch)
        except asyncio.CancelledError:
            for _, future in batch:
                future.cancel()
            raise
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if future.done():
                continue  # its job was cancelled meanwhile
            if isinstance(outcome, Exception | SystemExit):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

    async def _outcomes(self, calls: list[Call]) -> Sequence[Any]:
        if inspect.iscoroutinefunction(self._function):
            outcomes = await self._function(calls)
        else:
            outcomes = await asyncio.to_thread(self._function, calls)
        if not isinstance(outcomes, list | tuple) or len(outcomes) != len(calls):
            raise BadData(f"{self._function.__qualname__}: a batch of {len(calls)} wants a list of as many results")
        return outcomes
