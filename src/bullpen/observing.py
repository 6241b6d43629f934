"""Where others look on: metrics, traces and logs are observers, and no room below knows of them.

Each room holds an `Observers`; while that is empty, looking on costs one test of an empty list.
"""

import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol

import msgspec

from bullpen.job.entries import EntryKind
from bullpen.job.record import CrashKind, JobRecord, JobRef
from bullpen.job.spec import NewJob
from bullpen.job.verdicts import Verdict
from bullpen.stores.base import Added, Rescued, WorkerInfo
from bullpen.stores.workplace import Workplace

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


class RequestAtWork(msgspec.Struct):
    """A request to the server's API, from its head to its answer."""

    method: str
    headers: Mapping[str, str]
    """By their names in lower case. Credentials are among them: nothing for a log."""
    route: str | None = None
    """The pattern of its path, once it is known which route takes it."""
    status: int | None = None


class ModelCall(msgspec.Struct, frozen=True):
    """One call of a model that is over; one that is made again is another."""

    provider: str
    model: str
    """By its name in the table of models."""
    outcome: str
    """`answered`, `abandoned` by whoever asked, or the code of the error."""
    seconds: float
    input_tokens: int = 0
    output_tokens: int = 0


class ToolUse(msgspec.Struct, frozen=True):
    """A call of a tool by an agent that is over."""

    tool: str
    """Empty where there is none of the name that the model said."""
    outcome: str
    """`completed`, `failed`, `cancelled` in the midst of it, or `refused` before it was made."""
    seconds: float = 0.0


class TaskEnd(msgspec.Struct, frozen=True):
    """A task of an agent came to its end, on record."""

    kind: str
    state: str
    is_run: bool
    """Whether its run is over with it: it is not a part that another task made."""
    micro_credits: int
    """What it cost, those that it made included."""
    refunded: int = 0
    """Micro-credits that had been set aside for it, and were given back."""
    estimate: int = 0
    """Micro-credits that were set aside for it when it was submitted."""


class PoolSeen(msgspec.Struct, frozen=True):
    """How many sandboxes a pool has."""

    warm: int
    in_use: int
    most: int
    """0 for one that is closed."""
    pool: str = ""
    """Which of those in this process."""


class Serving(Protocol):
    """What an observer sees of a worker that runs; each is safe from any thread."""

    store: Workplace

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

    def requesting(self, request: RequestAtWork) -> AbstractContextManager[None]:  # noqa: ARG002
        """Around each request to the server's API."""
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

    def model_called(self, call: ModelCall) -> None:
        """An agent's model answered, or did not."""

    def tool_used(self, use: ToolUse) -> None:
        """An agent's tool was called; what is on record already is not called again."""

    def task_ended(self, end: TaskEnd) -> None:
        """Told where it was ended: by the worker that did it, or by whoever cancelled or rescued it."""

    def credits_set_aside(self, kind: str, micro_credits: int) -> None:
        """A run of agents of this kind was submitted, and so much set aside for it."""

    def overrun(self, micro_credits: int) -> None:
        """A call of an agent cost so much more than had been held for it."""

    def sandbox_asked(self, waited_s: float, *, is_lent: bool) -> None:
        """Somebody waited for a sandbox, and got one or not in time."""

    def pool_changed(self, seen: PoolSeen) -> None:
        """A pool of sandboxes lent some, closed some or made some."""


class Observers(list[Observer]):
    """Several observers as one; the first is the outermost."""

    def adding(self, adding: Adding) -> AbstractContextManager[None]:
        return self._around(lambda observer: observer.adding(adding))

    def attempting(self, attempt: Attempt) -> AbstractContextManager[None]:
        return self._around(lambda observer: observer.attempting(attempt))

    def stepping(self, step: StepAtWork) -> AbstractContextManager[None]:
        return self._around(lambda observer: observer.stepping(step))

    def requesting(self, request: RequestAtWork) -> AbstractContextManager[None]:
        return self._around(lambda observer: observer.requesting(request))

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

    def model_called(self, call: ModelCall) -> None:
        self._tell(lambda observer: observer.model_called(call))

    def tool_used(self, use: ToolUse) -> None:
        self._tell(lambda observer: observer.tool_used(use))

    def task_ended(self, end: TaskEnd) -> None:
        self._tell(lambda observer: observer.task_ended(end))

    def credits_set_aside(self, kind: str, micro_credits: int) -> None:
        self._tell(lambda observer: observer.credits_set_aside(kind, micro_credits))

    def overrun(self, micro_credits: int) -> None:
        self._tell(lambda observer: observer.overrun(micro_credits))

    def sandbox_asked(self, waited_s: float, *, is_lent: bool) -> None:
        self._tell(lambda observer: observer.sandbox_asked(waited_s, is_lent=is_lent))

    def pool_changed(self, seen: PoolSeen) -> None:
        self._tell(lambda observer: observer.pool_changed(seen))

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
