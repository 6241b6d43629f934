"""A job as its producer holds it."""

import asyncio
import contextlib
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bullpen.errors import BadOption, JobFailed, JobMissing, ResultTimeout, WrongState
from bullpen.job.entries import JournalEntry
from bullpen.job.names import check_job_name
from bullpen.job.options import MAX_PRIORITY, Duration, to_ms
from bullpen.job.record import Failure, JobRecord, JobRef
from bullpen.job.trees import natural_order
from bullpen.queue.buffer import Buffer
from bullpen.queue.payload import from_bytes, to_bytes
from bullpen.stores.base import Added, AddOutcome, Cancellation, Child, ChildState, Delivery, Store

if TYPE_CHECKING:
    from bullpen.queue.queue import Queue


R = TypeVar("R")
T = TypeVar("T")


class Job(Generic[R]):
    """A handle: cheap, holds no state of its own but the id."""

    def __init__(
        self,
        queue: "Queue",
        job_id: str,
        outcome: AddOutcome | None = None,
        read_result: Callable[[Any], R] = lambda value: value,
    ) -> None:
        self._queue = queue
        self._read_result = read_result
        self.ref = JobRef(queue.name, job_id)
        self.outcome = outcome
        """What the add did; None for a job that was looked up."""
        self.added: Added | None = None
        """The same with that of its children, for the root of a tree."""

    def __repr__(self) -> str:
        return f"<Job {self.ref}>"

    @property
    def id(self) -> str:
        return self.ref.id

    async def record(self) -> JobRecord:
        """All that is known of it; JobMissing once it is gone."""
        return await self._queue.store.job(self.ref)

    async def data(self) -> Any:
        return from_bytes((await self.record()).data, what="data", codec=self._queue.codec)

    async def result(self, timeout: Duration | None = None) -> R:  # noqa: ASYNC109 - it is this call's own promise
        """Wait for the end and return the result.

        JobFailed if it failed, ResultTimeout if it did not end in time (the job goes on),
        JobMissing if it was removed and the log has no trace of it.
        """
        seconds = None if timeout is None else to_ms("timeout", timeout) / 1000
        try:
            async with asyncio.timeout(seconds):
                await self._added()
                outcome = await self._queue.results.of(self.id)
        except TimeoutError:
            raise ResultTimeout(f"job {self.id!r} of queue {self.ref.queue!r} did not end within {seconds} s") from None
        if isinstance(outcome, Failure):
            raise JobFailed(f"job {self.id!r} of queue {self.ref.queue!r} failed: {outcome.message}", outcome)
        return self._read_result(from_bytes(outcome, what="result", codec=self._queue.codec))

    async def _added(self) -> None:
        """Wait for a job that the producer's buffer holds while the store is away."""
        producer = self._queue.producer
        if self.outcome == AddOutcome.BUFFERED and isinstance(producer, Buffer):
            await producer.until_added(self.id)

    def reading(self, read_result: Callable[[Any], T]) -> "Job[T]":
        """The same job, whose result is read in this way."""
        return Job(self._queue, self.id, self.outcome, read_result)

    async def cancel(self, reason: str = "", *, children: bool = False) -> Cancellation:
        """End it now if it waits; if it runs, its worker is told at once.

        Its children go on, unless they are to be cancelled too: then all below it that are not done,
        one after the other.
        """
        answer = await self._queue.store.cancel(self.ref, reason=reason)
        if children:
            await _cancel_below(self._queue.store, self.ref, reason)
        return answer

    async def children(self) -> list[Child]:
        """Its children, and what became of each, also of those that are gone."""
        return await _children(self._queue.store, self.ref)

    async def retry(self) -> None:
        """Run a finished job again, with fresh attempts."""
        await self._queue.store.retry(self.ref)

    async def promote(self) -> None:
        """Do not wait for the delay."""
        await self._queue.store.promote(self.ref)

    async def signal(self, name: str, payload: Any = None) -> Delivery:
        """Send it a signal: it wakes if it waits for this one, or finds it when it asks.

        JobMissing, WrongState for a finished job, MailboxFull if it does not take what it is sent.
        """
        body = self._queue.signal_payload(check_job_name(name), payload)
        return await self._queue.store.signal(self.ref, name, body, request=uuid.uuid4().hex)

    async def journal(self) -> list[JournalEntry]:
        """What its durable steps have recorded, by place."""
        entries: list[JournalEntry] = []
        start: int | None = 0
        while start is not None:
            page = await self._queue.store.read_journal(self.ref, start=start)
            entries += page.entries
            start = page.next_place
        return entries

    async def change_delay(self, delay: Duration) -> None:
        await self._queue.store.change_delay(self.ref, to_ms("delay", delay))

    async def change_priority(self, priority: int) -> None:
        if isinstance(priority, bool) or not isinstance(priority, int) or not 0 <= priority <= MAX_PRIORITY:
            raise BadOption(f"priority: a whole number from 0 to {MAX_PRIORITY}, not {priority!r}")
        await self._queue.store.change_priority(self.ref, priority)

    async def update_data(self, data: Any) -> None:
        await self._queue.store.update_data(self.ref, self._queue.payload(data))

    async def set_progress(self, progress: Any) -> None:
        """A number or an object."""
        await self._queue.store.set_progress(self.ref, to_bytes(progress, what="progress"))

    async def remove(self) -> None:
        await self._queue.store.remove(self.ref)

    async def log(self, *lines: str) -> int:
        """Append to its log; how many lines are kept."""
        return await self._queue.store.add_log(self.ref, lines)

    async def logs(self, start: int = 0, limit: int = 1_000) -> tuple[str, ...]:
        return (await self._queue.store.logs(self.ref, start=start, limit=limit)).lines


async def _children(store: Store, ref: JobRef) -> list[Child]:
    found: dict[JobRef, Child] = {}
    cursor = None
    while True:
        page = await store.children(ref, cursor=cursor)
        # One that ended between two pages may be told twice; the later word counts.
        found |= {child.ref: child for child in page.children}
        cursor = page.next_cursor
        if cursor is None:
            return sorted(found.values(), key=lambda child: natural_order(child.ref))


async def _cancel_below(store: Store, ref: JobRef, reason: str) -> None:
    for child in await _children(store, ref):
        if child.state == ChildState.PENDING:
            # Its own children first: their names are known only as long as it is.
            await _cancel_below(store, child.ref, reason)
            with contextlib.suppress(JobMissing, WrongState):
                await store.cancel(child.ref, reason=reason)
