"""What a context offers for durable steps, and the steps of one claimed job behind it."""

import asyncio
import functools
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, overload

from bullpen.clock import Clock
from bullpen.errors import BadStep
from bullpen.job.names import check_job_name
from bullpen.job.options import Duration
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.verdicts import Parked
from bullpen.journal.home import StoreJournal
from bullpen.journal.performing import current_key, is_inside_step
from bullpen.journal.program import JournalLimits, Program, Terms
from bullpen.journal.retries import StepRetry
from bullpen.journal.saga import Saga
from bullpen.journal.steps import Steps
from bullpen.journal.suspension import Suspension
from bullpen.journal.sync import SyncSteps
from bullpen.queue.payload import to_bytes
from bullpen.stores.base import Delivery
from bullpen.stores.workplace import Workplace
from bullpen.worker.judging import describe
from bullpen.worker.options import WorkerOptions

T = TypeVar("T")

IN_PLACE_MS = 5_000
"""A step that is tried again within this time keeps its slot; for longer, the job parks."""
_NOT_HERE = "durable steps are for handlers in the worker's own process: async ones, and plain ones in threads"


class StepsOfJob(Protocol):
    """What a context asks for on behalf of its job."""

    @property
    def steps(self) -> Steps: ...

    def sync(self, is_to_stop: Callable[[], bool]) -> SyncSteps: ...

    async def signal(self, ref: JobRef, name: str, payload: Any) -> Delivery: ...

    def verdict_at_end(self) -> Parked | None:
        """Why the job parks though its handler returned: it did not let itself be suspended, or does not fit."""


class JobSteps:
    """The durable steps of one activation of a job."""

    __slots__ = ("_clock", "_in_place_ms", "_job", "_loop", "_options", "_steps", "_store")

    def __init__(
        self,
        store: Workplace,
        job: JobRecord,
        options: WorkerOptions,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        in_place_ms: int = IN_PLACE_MS,
    ) -> None:
        self._store = store
        self._job = job
        self._options = options
        self._clock = clock
        self._in_place_ms = in_place_ms
        self._loop = loop
        self._steps: Steps | None = None

    @property
    def steps(self) -> Steps:
        if self._steps is None:
            job = self._job
            key = f"{job.ref}@{job.added_ms}"
            self._steps = Steps(Program(StoreJournal(self._store), str(job.ref), key, job.epoch, self._terms()))
        return self._steps

    def sync(self, is_to_stop: Callable[[], bool]) -> SyncSteps:
        return SyncSteps(self.steps, self._loop, is_to_stop)

    async def signal(self, ref: JobRef, name: str, payload: Any) -> Delivery:
        request = f"{current_key()} signals {ref} {name}" if is_inside_step() else uuid.uuid4().hex
        return await self._store.signal(
            ref, name, to_bytes(payload, what=f"signal {name!r}", codec=self._options.codec), request=request
        )

    def verdict_at_end(self) -> Parked | None:
        if self._steps is None:
            return None
        program = self._steps.program
        if program.suspended:
            return program.verdict_if_suspended()
        try:
            program.check_end()
        except Suspension as suspension:
            return suspension.verdict
        return None

    def _terms(self) -> Terms:
        options = self._options
        return Terms(
            clock=self._clock,
            observers=options.observers,
            describe=functools.partial(describe, policy=options.retry_policy),
            codec=options.codec,
            limits=JournalLimits(
                entries=options.max_journal_entries,
                bytes=options.max_journal_bytes,
                entry_bytes=options.max_result_bytes,
            ),
            in_place_ms=self._in_place_ms,
            unfit_ms=options.unhandled_delay_ms,
        )


class Durable:
    """The part of a context that asks for durable steps."""

    @overload
    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        retry: StepRetry | int | None = None,
        timeout: Duration | None = None,
        returns: type[T],
    ) -> Awaitable[T]: ...

    @overload
    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        retry: StepRetry | int | None = None,
        timeout: Duration | None = None,
        returns: None = None,
    ) -> Awaitable[Any]: ...

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        retry: StepRetry | int | None = None,
        timeout: Duration | None = None,
        returns: type[Any] | None = None,
    ) -> Awaitable[Any]:
        """Call this function once, whatever happens, and return its result, as JSON carries it.

        The result is on record before this returns; a later attempt gets it without a call. With
        `retry` the step has attempts of its own, and then StepFailed; else what it raises is the
        job's failure. `returns` is the type that the result is read as.
        """
        return self._asked.step(name, function, *args, retry=retry, timeout=timeout, returns=returns)

    @property
    def step_key(self) -> str:
        """Inside a step: a text that is the same in every attempt and no other step's, for whatever it calls."""
        return current_key()

    def sleep(self, duration: Duration, *, name: str = "sleep") -> Awaitable[None]:
        """Sleep that many seconds, or a timedelta: the job parks and holds no slot."""
        return self._asked.sleep(duration, name=name)

    def wait_for(self, signal: str, *, timeout: Duration | None = None) -> Awaitable[Any]:
        """Wait for a signal and return its payload: the job parks. WaitTimeout if it does not come in time."""
        return self._asked.wait_for(signal, timeout=timeout)

    def parallel(self, *steps: Awaitable[Any]) -> Awaitable[list[Any]]:
        """Run steps side by side: `await ctx.parallel(ctx.step(…), ctx.step(…))`; results in the order given."""
        return self._asked.parallel(*steps)

    def saga(self) -> Saga:
        """A block whose steps are undone, backwards, if it fails: `async with ctx.saga() as saga:`."""
        return Saga(self._asked, self._is_to_stop)

    async def signal(self, queue: str, job_id: str, name: str, payload: Any = None) -> Delivery:
        """Send a signal to another job."""
        return await self._known.signal(JobRef(queue, job_id), check_job_name(name), payload)

    @property
    def sync(self) -> SyncSteps:
        """The same steps for a handler that is a plain function: `ctx.sync.step(…)`."""
        return self._known.sync(self._is_to_stop)

    @property
    def _asked(self) -> Steps:
        return self._known.steps

    @property
    def _known(self) -> StepsOfJob:
        steps = self._steps_of_job()
        if steps is None:
            raise BadStep(_NOT_HERE)
        return steps

    def _steps_of_job(self) -> StepsOfJob | None:
        raise NotImplementedError

    def _is_to_stop(self) -> bool:
        raise NotImplementedError
