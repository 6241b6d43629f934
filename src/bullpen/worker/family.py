"""A running job's children: what became of them, new ones, and waiting for them."""

import hashlib
import uuid
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from bullpen.job.record import JobRecord, JobRef, Lease
from bullpen.job.spec import NewJob
from bullpen.job.trees import natural_order, with_ids
from bullpen.job.verdicts import AwaitChildren, Verdict
from bullpen.observing import Adding, Observers
from bullpen.queue.payload import Codec, from_bytes
from bullpen.stores.base import ChildState
from bullpen.stores.workplace import Workplace

_PAGE = 1_000


class Leave(BaseException):
    """Takes a handler out of its call, past its own `except Exception`; the job is settled with this verdict."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"left with {type(verdict).__name__}")
        self.verdict = verdict


class ChildOutcome(msgspec.Struct, frozen=True):
    """What a job knows of one of its children."""

    ref: JobRef
    state: ChildState
    result: Any = None
    """Of one that completed, as Python values."""
    reason: str | None = None
    """Why it failed, of one that is ignored."""


class Family(Protocol):
    """Where a context's children are: in the store, or in a test's hands."""

    async def children(self) -> list[ChildOutcome]: ...

    async def add(self, jobs: Sequence[NewJob]) -> list[JobRef]: ...


class StoreFamily:
    """The children of one activation of a job.

    A handler that runs again, from its start, adds its children again: so the n-th that one
    activation adds has the same id in each, and is added once.
    """

    __slots__ = ("_added", "_codec", "_job", "_lease", "_observers", "_store")

    def __init__(
        self, store: Workplace, lease: Lease, job: JobRecord, codec: Codec | None, observers: Observers
    ) -> None:
        self._store = store
        self._lease = lease
        self._job = job
        self._codec = codec
        self._observers = observers
        self._added = 0

    async def children(self) -> list[ChildOutcome]:
        found: dict[JobRef, ChildOutcome] = {}
        cursor = None
        while True:
            page = await self._store.children(self._lease.ref, limit=_PAGE, cursor=cursor)
            for child in page.children:
                result = from_bytes(child.result, what=f"result of {child.ref}", codec=self._codec)
                found[child.ref] = ChildOutcome(child.ref, child.state, result, child.reason)
            cursor = page.next_cursor
            if cursor is None:
                return sorted(found.values(), key=lambda child: natural_order(child.ref))

    async def add(self, jobs: Sequence[NewJob]) -> list[JobRef]:
        named = [self._with_id(job) for job in jobs]
        adding = Adding(named)
        with self._observers.adding(adding):
            adding.added = await self._store.add_children(self._lease, adding.jobs, request=uuid.uuid4().hex)
        added = adding.added
        return [JobRef(job.queue, one.id) for job, one in zip(named, added, strict=True)]

    def _with_id(self, job: NewJob) -> NewJob:
        self._added += 1
        if job.id is None:
            # Another job that takes the parent's id later has other children: hence the time.
            incarnation = f"{self._job.ref}@{self._job.added_ms}"
            digest = hashlib.sha256(incarnation.encode()).hexdigest()[:16]
            job = msgspec.structs.replace(job, id=f"c-{digest}-{self._added:05}")
        return with_ids(job)


def wait_unless_done(children: Sequence[ChildOutcome]) -> None:
    """Leave the handler if a child is pending."""
    if any(child.state == ChildState.PENDING for child in children):
        raise Leave(AwaitChildren())
