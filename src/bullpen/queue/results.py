"""Waiting for results: one reader of a queue's events serves all who await its jobs.

The result comes with the event, so retention cannot take it away between the job's end and
our look. A job that ended before anyone listened is found in its record, or, if that is gone
already, in the log.
"""

import asyncio
import logging
from collections import defaultdict

from bullpen.errors import JobMissing, StoreNotOpen, StoreUnavailable
from bullpen.job.events import Event, EventKind
from bullpen.job.record import Failure, JobRef
from bullpen.job.state import State
from bullpen.queue.trips import new_pauses, until_answered
from bullpen.stores.base import FROM_START, EventPage, Store

logger = logging.getLogger("bullpen.queue")

Outcome = bytes | Failure
"""The result's JSON, or why the job failed."""

_PAGE = 500
_LISTEN_MS = 10_000


class Results:
    """The awaited results of one queue, on one event loop."""

    def __init__(self, store: Store, queue: str) -> None:
        self._store = store
        self._queue = queue
        self._waiting: defaultdict[str, set[asyncio.Future[Outcome]]] = defaultdict(set)
        self._listener: asyncio.Task[None] | None = None
        self._listening = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    @property
    def is_on_this_loop(self) -> bool:
        return self._loop is asyncio.get_running_loop()

    async def of(self, job_id: str) -> Outcome:
        """The outcome, however long it takes."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[job_id].add(future)
        try:
            await self._start_listening()
            if not future.done() and (known := await until_answered(lambda: self._already(job_id))) is not None:
                return known
            return await future
        finally:
            self._waiting[job_id].discard(future)
            if not self._waiting[job_id]:
                del self._waiting[job_id]
            if not self._waiting:
                self._stop_listening()

    async def _already(self, job_id: str) -> Outcome | None:
        try:
            job = await self._store.job(JobRef(self._queue, job_id))
        except JobMissing:
            return await self._from_the_log(job_id)
        if job.state == State.COMPLETED:
            return job.result or b"null"
        if job.state == State.FAILED:
            return job.failure or Failure("failed")
        return None

    async def _from_the_log(self, job_id: str) -> Outcome:
        cursor = FROM_START
        latest: Outcome | None = None  # a job that was retried has ended more than once
        while True:
            page = await self._store.events(self._queue, after=cursor, limit=_PAGE, timeout_ms=0)
            for event in page.events:
                if event.job_id == job_id:
                    latest = _outcome(event) or latest
            if not page.events and latest is not None:
                return latest
            if not page.events:
                raise JobMissing(f"no job {job_id!r} in queue {self._queue!r}, nor a trace of its end")
            cursor = page.cursor

    # ── the listener ─────────────────────────────────────────────────────────────────────

    async def _start_listening(self) -> None:
        if self._listener is None:
            self._listening.clear()
            # Owned by this object: cancelled when the last one who waits is gone.
            self._listener = asyncio.create_task(self._listen(), name=f"results of {self._queue}")
        await self._listening.wait()

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            self._listener = None

    async def _listen(self) -> None:
        try:
            page = await until_answered(lambda: self._store.events(self._queue, after=None, limit=1, timeout_ms=0))
            self._listening.set()
            pauses = new_pauses()
            while True:
                try:
                    page = await self._hear(page.cursor)
                    pauses.begin_anew()
                except StoreNotOpen:
                    raise
                except StoreUnavailable as error:
                    # Nothing is missed: what happens meanwhile stands behind our cursor.
                    logger.warning("cannot listen for results, trying again: %s", error)
                    await asyncio.sleep(pauses.next_s())
        except Exception as error:  # noqa: BLE001 - told to all who wait, who would wait for ever
            self._listening.set()
            self._listener = None
            for future in [future for futures in self._waiting.values() for future in futures]:
                if not future.done():
                    future.set_exception(error)

    async def _hear(self, cursor: str) -> EventPage:
        page = await self._store.events(self._queue, after=cursor, limit=_PAGE, timeout_ms=_LISTEN_MS)
        for event in page.events:
            self._deliver(event)
        if page.gap:
            await self._look_again()
        return page

    def _deliver(self, event: Event) -> None:
        if event.job_id is not None and event.job_id in self._waiting and (outcome := _outcome(event)) is not None:
            for future in self._waiting[event.job_id]:
                if not future.done():
                    future.set_result(outcome)

    async def _look_again(self) -> None:
        """Events were dropped before we read them: ask for each awaited job."""
        for job_id in tuple(self._waiting):
            try:
                outcome = await self._already(job_id)
            except JobMissing as error:
                for future in self._waiting.get(job_id, ()):
                    if not future.done():
                        future.set_exception(error)
            else:
                for future in self._waiting.get(job_id, ()):
                    if outcome is not None and not future.done():
                        future.set_result(outcome)


def _outcome(event: Event) -> Outcome | None:
    if event.kind == EventKind.COMPLETED:
        return event.value or b"null"
    if event.kind == EventKind.FAILED:
        return event.failure or Failure("failed")
    return None
