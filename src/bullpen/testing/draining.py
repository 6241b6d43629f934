"""Running all jobs of an application in this process, until none is left to run.

    claim one ─▶ the worker's own executor ─▶ settle ─▶ claim one … nothing runnable ─▶ next due time

Hooks, middleware, validation, timeouts and verdicts are those of a worker, since it is a
worker's executor that runs each job. There is no lease thread, and no lease is left behind.
"""

import asyncio
import secrets
from collections.abc import Sequence
from typing import Any, Self

import msgspec

from bullpen.app import Bullpen
from bullpen.errors import BadData, BadHandler, BadOption, QueueMissing
from bullpen.job.record import ClaimedJob, Failure, FailureKind, JobRecord, JobRef
from bullpen.job.state import State
from bullpen.job.verdicts import Cancelled, Completed, Failed, Released, Retry, Settlement, Verdict
from bullpen.jobtypes.arguments import convert
from bullpen.jobtypes.jobtype import JobType
from bullpen.queue.payload import from_bytes
from bullpen.stores.base import Counts
from bullpen.testing.clock import ManualClock
from bullpen.worker.executor import Executor
from bullpen.worker.handlers import Registry
from bullpen.worker.options import WorkerOptions
from bullpen.worker.running import Run, Stop, StopCause

_LEASE_MS = 3_600_000
"""Nobody renews, and no handler of a test takes that long."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at one job, and what became of it."""

    ref: JobRef
    name: str
    attempt: int
    verdict: Verdict
    """Completed, Retry, Failed, Cancelled, Postponed, Parked or Released."""
    result: Any = None
    """If it completed: what the handler returned, as its type hint says."""
    failure: Failure | None = None
    """If it did not."""

    def __str__(self) -> str:
        how = type(self.verdict).__name__.lower()
        why = f": {self.failure.type or self.failure.kind}: {self.failure.message}" if self.failure else ""
        return f"{self.ref} {self.name} attempt {self.attempt} {how}{why}"


def _count(n: int, thing: str) -> str:
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


class Drained(msgspec.Struct, frozen=True):
    """What `run_until_empty` ran, in order, and what it left."""

    runs: tuple[Ran, ...]
    delayed: int = 0
    """How many jobs are still delayed."""

    def __len__(self) -> int:
        return len(self.runs)

    def __str__(self) -> str:
        return "\n".join(
            [*map(str, self.runs), f"{_count(len(self.runs), 'run')}, {_count(self.delayed, 'job')} still delayed"]
        )

    def of(self, what: JobType[..., Any] | str) -> tuple[Ran, ...]:
        """The runs of this job type, or of jobs with this name."""
        if isinstance(what, str):
            return tuple(run for run in self.runs if run.name == what)
        return tuple(run for run in self.runs if (run.ref.queue, run.name) == (what.queue, what.name))

    @property
    def completed(self) -> tuple[Ran, ...]:
        return tuple(run for run in self.runs if isinstance(run.verdict, Completed))

    @property
    def failed(self) -> tuple[Ran, ...]:
        """Those that failed for good; a failed attempt that was retried is not one."""
        return tuple(run for run in self.runs if isinstance(run.verdict, Failed))

    def check(self) -> Self:
        """Itself; AssertionError with the stack traces if a job failed for good."""
        __tracebackhide__ = True
        if self.failed:
            told = "\n".join(f"{run}\n{run.failure.stack if run.failure else ''}" for run in self.failed)
            raise AssertionError(f"{len(self.failed)} of {len(self.runs)} runs failed for good:\n{told}")
        return self


async def run_until_empty(
    pen: Bullpen,
    *,
    clock: ManualClock | None = None,
    include_delayed: bool = False,
    queues: Sequence[str] = (),
    at_once: int = 1,
    options: WorkerOptions | None = None,
    limit: int = 1_000,
) -> Drained:
    """Run every job of the app's job types, also those that jobs add, until none is left to run.

    Queues take turns, one job each. Delayed jobs and retries with a backoff stay where they are,
    unless there is a `clock`, which is moved to each due time, or `include_delayed`, which runs
    them at once in the order of their due times. Jobs that sleep are woken by a clock only, those
    that wait for a signal by the signal. `at_once` jobs of a queue run together: for batch
    handlers. A failed job is in the report and raises nothing: see `Drained.check`.

    Raises AssertionError after `limit` runs, since jobs that add each other would run for ever;
    BadHandler for a job that no job type is declared for; BadOption for a clock that is not the store's.
    """
    __tracebackhide__ = True
    if clock is not None and pen.store.clock is not clock:
        raise BadOption("clock: the app's store goes by another clock; give this one to the store as well")
    await pen.open()
    drain = _Drain(pen, queues, pen.worker_options(options), at_once, limit)
    try:
        while await drain.run_what_is_due() or await drain.reach_what_is_delayed(clock, include_delayed):
            pass
        return Drained(tuple(drain.runs), await drain.count_delayed())
    finally:
        await drain.close()


class _Drain:
    def __init__(self, pen: Bullpen, queues: Sequence[str], options: WorkerOptions, at_once: int, limit: int) -> None:
        self.runs: list[Ran] = []
        self._pen = pen
        self._store = pen.store
        self._at_once = at_once
        self._limit = limit
        self._registry = Registry(pen.handlers(queues))
        self._executor = Executor(pen.store, self._registry, options, pen.store.clock, in_place_ms=0)
        self._codec = options.codec
        self._due_ms: dict[str, int] = {}
        self._name = f"drain-{secrets.token_hex(6)}"
        self._requests = 0

    async def run_what_is_due(self) -> int:
        """Give each queue one turn; how many jobs ran."""
        __tracebackhide__ = True
        ran = 0
        for queue in self._registry.queues:
            ran += await self._take_turn(queue)
        return ran

    async def reach_what_is_delayed(self, clock: ManualClock | None, include_delayed: bool) -> bool:
        """Make the next delayed job runnable, if that is wanted and there is one."""
        if clock is not None:
            due_ms = min(self._due_ms.values(), default=None)
            # A due time that has come and gave nothing is that of a paused queue.
            if due_ms is None or due_ms <= clock.now_ms():
                return False
            clock.advance(due_ms - clock.now_ms())
            return True
        next_delayed = await self._next_delayed() if include_delayed else None
        if next_delayed is not None:
            await self._store.promote(next_delayed.ref)
        return next_delayed is not None

    async def count_delayed(self) -> int:
        return sum([(await self._counts(queue)).delayed for queue in self._registry.queues])

    async def close(self) -> None:
        await asyncio.gather(*self._pen._alerting)
        await self._executor.close()

    # ── one turn ─────────────────────────────────────────────────────────────────────────

    async def _take_turn(self, queue: str) -> int:
        __tracebackhide__ = True
        claimed = await self._store.claim(
            {queue: self._at_once}, worker=self._name, lease_ms=_LEASE_MS, request=self._next_request()
        )
        self._due_ms.pop(queue, None)
        if claimed.next_due_ms is not None:
            self._due_ms[queue] = claimed.next_due_ms
        if claimed.jobs:
            await self._run(claimed.jobs)
        return len(claimed.jobs)

    async def _run(self, jobs: Sequence[ClaimedJob]) -> None:
        """Run these together, and settle them; what has no verdict in the end is handed back."""
        __tracebackhide__ = True
        verdicts: dict[str, Verdict] = {}
        try:
            self._check(jobs)
            await self._perform(jobs, verdicts)
        finally:
            settlements = [Settlement(job.lease, verdicts.get(job.lease.token) or Released()) for job in jobs]
            await self._store.settle(settlements, request=self._next_request())
        self.runs += [self._told(one.job, verdicts[one.lease.token]) for one in jobs if one.lease.token in verdicts]

    async def _perform(self, jobs: Sequence[ClaimedJob], verdicts: dict[str, Verdict]) -> None:
        def note(run: Run, verdict: Verdict | None) -> None:
            if verdict is not None:
                verdicts[run.lease.token] = verdict

        loop = asyncio.get_running_loop()
        deadlines: list[asyncio.TimerHandle] = []
        try:
            async with asyncio.TaskGroup() as tasks:
                for claimed in jobs:
                    run = self._executor.prepare(claimed)
                    if not isinstance(run, Run):
                        verdicts[claimed.lease.token] = run
                        self._tell_if_failed(claimed.job, run)
                        continue
                    run.task = tasks.create_task(self._executor.perform(run, note))
                    stop = Stop(StopCause.TIMED_OUT)
                    deadlines.append(loop.call_later(run.timeout_ms / 1000, run.ask_to_stop, stop))
        finally:
            for deadline in deadlines:
                deadline.cancel()

    def _tell_if_failed(self, job: JobRecord, verdict: Verdict) -> None:
        """Its handler's hooks are not called, since it did not run; the application's alerts are."""
        if isinstance(verdict, Failed):
            self._pen.alert_of(msgspec.structs.replace(job, failure=verdict.failure))

    def _check(self, jobs: Sequence[ClaimedJob]) -> None:
        __tracebackhide__ = True
        if len(self.runs) + len(jobs) > self._limit:
            latest = "\n".join(f"  {run}" for run in self.runs[-5:])
            raise AssertionError(f"{len(self.runs)} runs and still more to do; the latest were:\n{latest}")
        for job in (claimed.job for claimed in jobs):
            if self._registry.find(job.queue, job.name) is None:
                known = ", ".join(name for queue, name in self._pen.types if queue == job.queue)
                raise BadHandler(f"job {job.ref}: no job type {job.name!r} on queue {job.queue!r}, which has {known}")

    def _told(self, job: JobRecord, verdict: Verdict) -> Ran:
        return Ran(
            ref=job.ref,
            name=job.name,
            attempt=job.attempts_made + 1,
            verdict=verdict,
            result=self._result(job, verdict) if isinstance(verdict, Completed) else None,
            failure=_failure(verdict),
        )

    def _result(self, job: JobRecord, verdict: Completed) -> Any:
        value = from_bytes(verdict.result, what="result", codec=self._codec)
        try:
            return convert(value, self._pen.types[job.queue, job.name].arguments.returns, "result")
        except BadData:
            return value  # of a job that `skip_if` skipped, or a middleware answered

    # ── looking ──────────────────────────────────────────────────────────────────────────

    async def _next_delayed(self) -> JobRecord | None:
        found: list[JobRecord] = []
        for queue in self._registry.queues:
            if (await self._counts(queue)).delayed:
                found += await self._first_delayed(queue)
        return min(found, key=lambda job: (job.run_at_ms or 0, job.ref), default=None)

    async def _first_delayed(self, queue: str) -> list[JobRecord]:
        """One that is not parked: such a one would only park again."""
        cursor = None
        while True:
            page = await self._store.jobs(queue, State.DELAYED, limit=100, cursor=cursor)
            for job in page.jobs:
                if job.parked is None:
                    return [job]
            cursor = page.next_cursor
            if cursor is None:
                return []

    async def _counts(self, queue: str) -> Counts:
        try:
            return await self._store.counts(queue)
        except QueueMissing:
            return Counts()

    def _next_request(self) -> str:
        self._requests += 1
        return f"{self._name}-{self._requests}"


def _failure(verdict: Verdict) -> Failure | None:
    match verdict:
        case Retry(failure) | Failed(failure):
            return failure
        case Cancelled(reason):
            return Failure(reason, FailureKind.CANCELLED)
        case _:
            return None
