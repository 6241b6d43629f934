"""Threads for sync handlers.

Daemon threads, unlike the standard pool's: one that never returns must not keep a worker
that was told to stop from ending.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any

_Task = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


class Threads:
    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._idle = 0
        self._started = 0

    async def run(self, function: Callable[[], Any]) -> Any:
        """The function's result, from a thread that is free or new."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if self._idle > 0:
            self._idle -= 1
        else:
            self._started += 1
            threading.Thread(target=self._work, name=f"bullpen-handler-{self._started}", daemon=True).start()
        self._inbox.put((function, future, loop))
        return await future

    def close(self) -> None:
        """Let idle threads end; busy ones end when their function does."""
        for _ in range(self._started):
            self._inbox.put(None)

    def _work(self) -> None:
        while (task := self._inbox.get()) is not None:
            function, future, loop = task
            try:
                outcome, error = function(), None
            except BaseException as raised:  # noqa: BLE001 - handed to whoever awaits it
                outcome, error = None, raised
            try:
                loop.call_soon_threadsafe(self._deliver, future, outcome, error)
            except RuntimeError:
                return  # the loop has ended; nobody waits
            del function, future, outcome, error, task

    def _deliver(self, future: "asyncio.Future[Any]", outcome: Any, error: BaseException | None) -> None:
        self._idle += 1
        if future.done():
            return
        if error is None:
            future.set_result(outcome)
        elif isinstance(error, StopIteration):
            future.set_exception(RuntimeError(f"handler raised StopIteration: {error}"))
        else:
            future.set_exception(error)
