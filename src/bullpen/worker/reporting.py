"""A running job's words on their way to the store: gathered, sent in batches, flushed before the verdict."""

import asyncio
import collections
import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol

from bullpen.job.record import JobRef
from bullpen.job.spec import NewJob
from bullpen.job.words import storable
from bullpen.queue.payload import to_bytes
from bullpen.stores.workplace import Workplace

_SEND_AFTER_S = 0.1
MOST_LINES = 100_000
MOST_CHARS = 16 * 1024 * 1024
"""So many may wait to be sent: a store that is slow or away must not cost the worker its memory."""

logger = logging.getLogger("bullpen.worker")


class Reporter(Protocol):
    """Where a job's words go: to the store's outbox, or through a pipe to the parent process."""

    def log(self, line: str) -> None: ...

    def progress(self, value: Any) -> None: ...

    def then(self, job: NewJob) -> None: ...


class _Lines:
    """Lines that wait for their turn, from any thread; of too many the oldest are dropped, which the log then says."""

    __slots__ = ("_dropped", "_lock", "_size", "_waiting")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: collections.deque[str] = collections.deque()
        self._size = 0
        self._dropped = 0

    def add(self, line: str) -> None:
        with self._lock:
            self._waiting.append(line)
            self._size += len(line)
            while len(self._waiting) > MOST_LINES or (self._size > MOST_CHARS and len(self._waiting) > 1):
                self._size -= len(self._waiting.popleft())
                self._dropped += 1

    def take(self) -> list[str]:
        """All of them, in their order."""
        with self._lock:
            lines, dropped = list(self._waiting), self._dropped
            self._waiting.clear()
            self._size = self._dropped = 0
        many = "1 line" if dropped == 1 else f"{dropped:,} lines"
        return [f"… {many} dropped", *lines] if dropped else lines


class StoreReporter:
    """Takes words from any thread; sends them from the worker's event loop."""

    __slots__ = ("_due", "_lines", "_loop", "_on_progress", "_progress", "_ref", "_sending", "_store", "follow_ups")

    def __init__(
        self,
        store: Workplace,
        ref: JobRef,
        loop: asyncio.AbstractEventLoop,
        on_progress: Callable[[Any], Any] | None = None,
    ) -> None:
        self.follow_ups: list[NewJob] = []
        self._on_progress = on_progress
        self._store = store
        self._ref = ref
        self._loop = loop
        self._lines = _Lines()
        self._progress: bytes | None = None
        self._due = False
        self._sending: asyncio.Task[None] | None = None

    def log(self, line: str) -> None:
        self._lines.add(storable(str(line)))
        self._send_soon()

    def progress(self, value: Any) -> None:
        self._progress = to_bytes(value, what="progress")
        if self._on_progress is not None:
            self._loop.call_soon_threadsafe(self._on_progress, value)
        self._send_soon()

    def then(self, job: NewJob) -> None:
        self.follow_ups.append(job)

    @property
    def has_words(self) -> bool:
        """Whether anything was said that may not have been sent."""
        return self._due or self._sending is not None

    async def flush(self) -> None:
        """Send what is there; a store that refuses costs the words, not the job."""
        if self._sending is not None:
            await self._sending
        await self._send()

    def _send_soon(self) -> None:
        if not self._due:
            self._due = True
            self._loop.call_soon_threadsafe(self._loop.call_later, _SEND_AFTER_S, self._start_sending)

    def _start_sending(self) -> None:
        # A flush came first, and may have been the job's end: then nobody is left to await us.
        if self._due:
            # Owned by this reporter: `flush` awaits it before the job is settled.
            self._sending = self._loop.create_task(self._send_after(self._sending))

    async def _send_after(self, earlier: "asyncio.Task[None] | None") -> None:
        """So that lines keep their order, and whoever awaits the newest has awaited all."""
        if earlier is not None:
            await earlier
        await self._send()

    async def _send(self) -> None:
        self._due = False
        lines = self._lines.take()
        progress, self._progress = self._progress, None
        try:
            if lines:
                await self._store.add_log(self._ref, lines)
            if progress is not None:
                await self._store.set_progress(self._ref, progress)
        except Exception as error:  # noqa: BLE001 - no error of a store may become the job's
            logger.warning("words of job %s were lost: %s", self._ref, error)
