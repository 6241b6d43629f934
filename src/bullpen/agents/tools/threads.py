"""Threads for tools that are plain functions: their own, so that one that hangs keeps nobody else from a thread."""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

MOST = 32


class Threads:
    """So many at most, made as they are needed. A process ends also while one of them works."""

    def __init__(self, name: str, most: int = MOST) -> None:
        self._name = name
        self._most = most
        self._work: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._made = 0
        self._making = threading.Lock()

    async def run(self, function: Callable[[], T]) -> T:
        """What it returns or raises. Who is cancelled goes on at once; a function that began goes on in its thread."""
        done: Future[T] = Future()
        context = contextvars.copy_context()
        self._work.put((done, lambda: context.run(function)))
        self._make_if_needed()
        return await asyncio.wrap_future(done)

    def _make_if_needed(self) -> None:
        if self._idle.acquire(blocking=False):
            return
        with self._making:
            if self._made < self._most:
                self._made += 1
                threading.Thread(target=self._serve, name=f"{self._name}-{self._made}", daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                done, work = self._work.get_nowait()
            except queue.Empty:
                self._idle.release()
                done, work = self._work.get()
            _do(done, work)
            # Not kept while it waits for the next one.
            del done, work


def _do(done: Future[Any], work: Callable[[], Any]) -> None:
    if not done.set_running_or_notify_cancel():
        return  # nobody waits for it any more
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - whatever it is, who waits is told
        done.set_exception(error)
    else:
        done.set_result(result)
