"""Where others look on: metrics, traces and logs are observers, and no room below knows of them.

Each room holds an `Observers`; while that is empty, looking on costs one test of an empty list.
"""

import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol

import msgspec

from bullpen.job.entries import EntryKind
from bullpen.job.record import CrashKind, JobRecord, JobRef
from bullpen.job.spec import NewJob
from bullpen.job.verdicts import Verdict
from bullpen.stores.base import Added, Rescued, Store, WorkerInfo

logger = logging.getLogger("bullpen.observing")


class Adding(msgspec.Struct):
    """Jobs on their way to the store."""

    jobs: list[NewJob]
    """An observer may put others in their place, with headers of its own."""
    added: Sequence[Added] = ()
    """What the store said, once it did."""


class Attempt(msgspec.Struct):
    """A job at work, from the claim to the verdict."""

    job: JobRecord
    verdict: Verdict | None = None
    """Once there is one; None where another worker answers for the job."""


class StepAtWork(msgspec.Struct, frozen=True):
    """A durable step that is called; one that is on record already is not."""

    name: str
    kind: EntryKind
    attempt: int


class Serving(Protocol):
    """What an observer sees of a worker that runs; each is safe from any thread."""

    store: Store

    def info(self) -> WorkerInfo: ...


class Observer:
    """Looks on. Each method does nothing until you write it; what it raises is logged and harms no job.

    Called on the worker's event loop, but for `failed_unrun` and `rescued`, which may come from another thread.
    """

    def adding(self, adding: Adding) -> AbstractContextManager[None]:  # noqa: ARG002 - for others to use
        """Around each trip of new jobs, also of those that a handler adds."""
        return contextlib.nullcontext()

    def attempting(self, attempt: Attempt) -> AbstractContextManager[None]:  # noqa: ARG002
        """Around each call of a handler."""
        return contextlib.nullcontext()

    def stepping(self, step: StepAtWork) -> AbstractContextManager[None]:  # noqa: ARG002
        """Around each call of a durable step, inside the attempt."""
        return contextlib.nullcontext()

    def serving(self, worker: Serving) -> AbstractAsyncContextManager[None]:  # noqa: ARG002
        """Around the life of a worker; what this raises at its start ends the worker."""
        return contextlib.nullcontext()

    def settled(self, job: JobRecord, verdict: Verdict) -> None:
        """The store has carried the verdict out."""

    def lease_lost(self, ref: JobRef) -> None:
        """A verdict came too late: another worker has the job."""

    def failed_unrun(self, job: JobRecord) -> None:
        """It failed for good with no handler at work."""

    def rescued(self, rescued: Rescued) -> None:
        """These had lost their worker."""

    def process_died(self, kind: CrashKind, rescued: Rescued) -> None:
        """A worker process ended unasked; told in its supervisor's process."""


class Observers(list[Observer]):
    """Several observers as one; the first is the outermost."""

    def adding(self, adding: Adding) -> AbstractContextManager[None]:
        return self._around(lambda observer: observer.adding(adding))

    def attempting(self, attempt: Attempt) -> AbstractContextManager[None]:
        return self._around(lambda observer: observer.attempting(attempt))

    def stepping(self, step: StepAtWork) -> AbstractContextManager[None]:
        return self._around(lambda observer: observer.stepping(step))

    @contextlib.asynccontextmanager
    async def serving(self, worker: Serving) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for observer in self:
                await stack.enter_async_context(observer.serving(worker))
            yield

    def settled(self, job: JobRecord, verdict: Verdict) -> None:
        self._tell(lambda observer: observer.settled(job, verdict))

    def lease_lost(self, ref: JobRef) -> None:
        self._tell(lambda observer: observer.lease_lost(ref))

    def failed_unrun(self, job: JobRecord) -> None:
        self._tell(lambda observer: observer.failed_unrun(job))

    def rescued(self, rescued: Rescued) -> None:
        self._tell(lambda observer: observer.rescued(rescued))

    def process_died(self, kind: CrashKind, rescued: Rescued) -> None:
        self._tell(lambda observer: observer.process_died(kind, rescued))

    def _tell(self, tell: Callable[[Observer], None]) -> None:
        for observer in self:
            try:
                tell(observer)
            except Exception:
                logger.exception("%s failed; nothing else is affected", type(observer).__name__)

    @contextlib.contextmanager
    def _around(self, begin: Callable[[Observer], AbstractContextManager[None]]) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for observer in self:
                try:
                    manager = begin(observer)
                    manager.__enter__()
                except Exception:
                    logger.exception("%s failed; nothing else is affected", type(observer).__name__)
                else:
                    stack.push(_leaving(manager, observer))
            yield


def _leaving(manager: AbstractContextManager[None], observer: Observer) -> Callable[..., bool]:
    """The end of one observer's part, which can neither fail nor hide what the work itself raised."""

    def leave(kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        try:
            manager.__exit__(kind, error, trace)  # type: ignore[arg-type]  # as ExitStack gives it
        except Exception as raised:
            if raised is not error:
                logger.exception("%s failed; nothing else is affected", type(observer).__name__)
        return False

    return leave
