"""The dead letters of a store: its jobs in the failed state. There is no second copy of them.

Jobs are read in pages, so that a million of them need no more memory than five hundred.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec

from bullpen.deadletters.filter import DeadFilter
from bullpen.deadletters.fingerprint import fingerprint_of, stack_of
from bullpen.errors import BadOption, BullpenError, JobMissing, QueueMissing, WrongState
from bullpen.job.checks import check_at_least
from bullpen.job.names import check_queue_name
from bullpen.job.record import FailureKind, JobRecord, JobRef
from bullpen.job.state import State
from bullpen.queue.payload import Codec, from_bytes
from bullpen.stores.base import Store

_PAGE = 500
_AT_ONCE = 50
_ALL = DeadFilter()


class DeadGroup(msgspec.Struct, frozen=True):
    """Jobs that failed for the same reason."""

    fingerprint: str
    count: int
    name: str
    queue: str
    message: str
    """Of the newest."""
    kind: FailureKind
    newest_ms: int
    oldest_ms: int
    sample: JobRef
    """The newest."""


class DeadLetters:
    """Look at, group, retry, remove and export the failed jobs of a store, or of some of its queues."""

    def __init__(self, store: Store, queues: Sequence[str] | None = None, *, codec: Codec | None = None) -> None:
        self._store = store
        self._queues = None if queues is None else [check_queue_name(queue) for queue in queues]
        self._codec = codec

    async def find(self, wanted: DeadFilter = _ALL, *, limit: int = 100) -> list[JobRecord]:
        """Up to that many, queue by queue, the newest of each first."""
        check_at_least("limit", limit, 1)
        found: list[JobRecord] = []
        async for page in self._pages(wanted, newest_first=True):
            found += page[: limit - len(found)]
            if len(found) >= limit:
                break
        return found

    async def groups(self, wanted: DeadFilter = _ALL) -> list[DeadGroup]:
        """The reasons for which jobs failed, the most frequent first."""
        groups: dict[str, DeadGroup] = {}
        async for page in self._pages(wanted):
            for job in page:
                fingerprint = fingerprint_of(job)
                groups[fingerprint] = _joined(groups.get(fingerprint), fingerprint, job)
        return sorted(groups.values(), key=lambda group: (-group.count, -group.newest_ms, group.fingerprint))

    async def retry(self, wanted: DeadFilter = _ALL, *, limit: int | None = None) -> int:
        """Run them again with fresh attempts, oldest first, each noted in its log; how many.

        A job that fails again in the meantime is not taken up a second time.
        """
        return await self._for_each(wanted, limit, self._store.retry)

    async def purge(self, wanted: DeadFilter = _ALL, *, limit: int | None = None) -> int:
        """Remove them for good, oldest first; how many."""
        return await self._for_each(wanted, limit, self._store.remove)

    async def export(self, wanted: DeadFilter = _ALL) -> AsyncIterator[dict[str, Any]]:
        """Each as plain values that JSON can carry, oldest first."""
        async for page in self._pages(wanted):
            for job in page:
                yield self._exported(job)

    # ── reading ──────────────────────────────────────────────────────────────────────────

    async def _pages(self, wanted: DeadFilter, *, newest_first: bool = False) -> AsyncIterator[list[JobRecord]]:
        """What the filter wants, of a page of each queue after the other."""
        for queue in await self._queues_of(wanted):
            last_ms = await self._last_failed_ms(queue, is_named=wanted.queue is not None)
            cursor: str | None = None
            while last_ms is not None:
                page = await self._store.jobs(
                    queue, State.FAILED, limit=_PAGE, cursor=cursor, newest_first=newest_first
                )
                # What failed after we began may be our own doing: a retried job that failed again.
                known = [job for job in page.jobs if (job.finished_ms or 0) <= last_ms]
                yield [job for job in known if wanted.matches(job)]
                cursor = page.next_cursor
                if cursor is None or (not known and not newest_first):
                    break

    async def _queues_of(self, wanted: DeadFilter) -> Sequence[str]:
        if wanted.queue is None:
            return await self._store.queues() if self._queues is None else self._queues
        if self._queues is not None and wanted.queue not in self._queues:
            raise BadOption(f"queue: {wanted.queue!r} is not one of {', '.join(self._queues)}")
        return [wanted.queue]

    async def _last_failed_ms(self, queue: str, *, is_named: bool) -> int | None:
        """When the last job of a queue failed; None if none did."""
        try:
            newest = await self._store.jobs(queue, State.FAILED, limit=1, newest_first=True)
        except QueueMissing:
            if is_named:
                raise
            return None  # declared, and nothing was ever added to it; or gone by now
        return (newest.jobs[0].finished_ms or 0) if newest.jobs else None

    # ── acting ───────────────────────────────────────────────────────────────────────────

    async def _for_each(self, wanted: DeadFilter, limit: int | None, act: Callable[[JobRef], Awaitable[None]]) -> int:
        if limit is not None:
            check_at_least("limit", limit, 1)
        done = 0
        async for page in self._pages(wanted):
            refs = iter([job.ref for job in page])
            while some := list(itertools.islice(refs, _AT_ONCE if limit is None else min(_AT_ONCE, limit - done))):
                # Asked together and in order: a store that commits in groups makes one commit of them.
                outcomes = await asyncio.gather(*[_was_done(act, ref) for ref in some])
                done += sum(outcomes)
            if limit is not None and done >= limit:
                break
        return done

    def _exported(self, job: JobRecord) -> dict[str, Any]:
        failure = job.failure
        return {
            "id": job.id,
            "queue": job.queue,
            "name": job.name,
            "data": self._readable(job.data),
            "failure": None
            if failure is None
            else {"message": failure.message, "kind": str(failure.kind), "type": failure.type},
            "fingerprint": fingerprint_of(job),
            "stack": stack_of(job),
            "attempts": {"made": job.attempts_made, "allowed": job.spec.attempts, "crashes": dict(job.crashes)},
            "times": {"added_ms": job.added_ms, "started_ms": job.started_ms, "failed_ms": job.finished_ms},
            "tenant": job.tenant,
            "workspace": job.spec.workspace,
            "tags": list(job.spec.tags),
        }

    def _readable(self, data: bytes) -> Any:
        """The data as values; as it is stored where it needs a codec that we were not given."""
        try:
            return from_bytes(data, what="data", codec=self._codec)
        except BullpenError:
            return data.decode(errors="replace")


async def _was_done(act: Callable[[JobRef], Awaitable[None]], ref: JobRef) -> bool:
    try:
        await act(ref)
    except (JobMissing, WrongState):
        return False  # someone else was quicker
    return True


def _joined(group: DeadGroup | None, fingerprint: str, job: JobRecord) -> DeadGroup:
    """The group with one more job."""
    failed_ms = job.finished_ms or 0
    if group is not None and failed_ms < group.newest_ms:
        return msgspec.structs.replace(group, count=group.count + 1, oldest_ms=min(group.oldest_ms, failed_ms))
    failure = job.failure
    return DeadGroup(
        fingerprint,
        count=1 if group is None else group.count + 1,
        name=job.name,
        queue=job.queue,
        message="" if failure is None else failure.message,
        kind=FailureKind.ERROR if failure is None else failure.kind,
        newest_ms=failed_ms,
        oldest_ms=failed_ms if group is None else group.oldest_ms,
        sample=job.ref,
    )
