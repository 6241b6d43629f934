"""Running one job: from a claim to a verdict."""

import asyncio
import contextvars
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, assert_never

from bullpen.clock import Clock
from bullpen.errors import BullpenError, TenantRefused
from bullpen.job.options import to_ms
from bullpen.job.record import ClaimedJob, CrashKind, JobRecord
from bullpen.job.spec import NewJob
from bullpen.job.verdicts import Cancelled, Completed, Failed, Parked, Postponed, Released, Verdict
from bullpen.journal.suspension import Suspension, found_in, merged
from bullpen.observing import Adding, Attempt
from bullpen.queue.payload import from_bytes, to_bytes
from bullpen.settings import may_advance_schedules
from bullpen.stores.base import Store
from bullpen.worker.context import Context
from bullpen.worker.durable import IN_PLACE_MS, JobSteps
from bullpen.worker.family import Leave, StoreFamily
from bullpen.worker.handlers import Handler, Mode, Registry
from bullpen.worker.judging import timed_out, verdict_on_error, verdict_on_failure
from bullpen.worker.options import VerifyTenant, WorkerOptions
from bullpen.worker.processes import ProcessCrash, Processes
from bullpen.worker.reporting import StoreReporter
from bullpen.worker.running import Run, Stop, StopCause
from bullpen.worker.threads import Threads
from bullpen.worker.ticking import HeldBack, Ticker

logger = logging.getLogger("bullpen.worker")

OnVerdict = Callable[[Run, Verdict | None], None]


class Executor:
    """Runs claimed jobs and says what became of each; None where another answers for it."""

    def __init__(
        self, store: Store, registry: Registry, options: WorkerOptions, clock: Clock, *, in_place_ms: int = IN_PLACE_MS
    ) -> None:
        self._store = store
        self._registry = registry
        self._options = options
        self._observers = options.observers
        self._clock = clock
        self._in_place_ms = in_place_ms
        self._usual_timeout_ms = to_ms("timeout", options.timeout)
        self._threads = Threads()
        self._processes = Processes()
        self._ticker = Ticker(store, may_advance=may_advance_schedules())

    def prepare(self, claimed: ClaimedJob) -> Run | Verdict:
        """A run of the job, or the verdict on a job that cannot run here."""
        job = claimed.job
        if job.doomed is not None:
            return Failed(job.doomed)
        handler = self._registry.find(job.queue, job.name)
        if handler is None:
            note = f"no handler for {job.name!r} on this worker"
            return Postponed(self._options.unhandled_delay_ms, note)
        try:
            data = from_bytes(job.data, what="data", codec=self._options.codec)
        except BullpenError as error:
            return verdict_on_error(error, job, self._options)
        reporter = StoreReporter(self._store, job.ref, asyncio.get_running_loop())
        family = StoreFamily(self._store, claimed.lease, job, self._options.codec, self._observers)
        context = Context(job, data, reporter, self._steps_of(job, handler), family)
        if handler.on_progress is not None:
            reporter.on_progress = functools.partial(handler.on_progress, context)
        timeout_ms = job.spec.timeout_ms or self._usual_timeout_ms
        return Run(claimed, handler, context, timeout_ms, self._clock.mono_ms())

    def _steps_of(self, job: JobRecord, handler: Handler) -> JobSteps | None:
        if handler.mode == Mode.PROCESS:
            return None
        return JobSteps(self._store, job, self._options, self._clock, in_place_ms=self._in_place_ms)

    async def perform(self, run: Run, report: OnVerdict) -> None:
        """Run the handler to its end, and report the verdict. Never raises for what the handler does."""
        verdict = await (self._observed(run) if self._observers else self._attempt(run))
        report(run, None if run.over else verdict)

    async def _observed(self, run: Run) -> Verdict | None:
        attempt = Attempt(run.job)
        with self._observers.attempting(attempt):
            attempt.verdict = await self._attempt(run)
        return attempt.verdict

    async def _attempt(self, run: Run) -> Verdict | None:
        reporter = _reporter(run)
        try:
            if run.job.tick is not None:
                await self._ticker.begin(run.claimed)
            value = await self._call(run)
            run.has_ended = True
            verdict: Verdict | None = _parked_at_end(run) or self._completed(value, reporter)
        except asyncio.CancelledError as error:
            if run.stop is not None:
                verdict = self._stopped(run, run.stop)
            elif _is_being_cancelled():
                raise  # not the job is cancelled, but the worker around it
            else:
                verdict = self._raised(run, error)  # the handler's own, from something that it cancelled
        except HeldBack as held:
            run.context.log(held.why)
            await reporter.flush()
            return held.verdict
        except Suspension as suspension:
            verdict = suspension.verdict
        except BaseExceptionGroup as group:
            verdict = self._group_raised(run, group)
        except ProcessCrash as crash:
            run.context.log(str(crash))
            verdict = Released(crash.kind, self._options.limits)
        except Leave as leave:
            verdict = leave.verdict
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a handler raises is its verdict
            verdict = self._raised(run, error)
        run.has_ended = True
        if reporter.has_words:
            await reporter.flush()
        if run.handler.on_verdict is not None and verdict is not None:
            await run.handler.on_verdict(run.context, verdict)
        return verdict

    def _call(self, run: Run) -> Awaitable[Any]:
        if self._options.verify_tenant is None and run.handler.around is None:
            return self._call_itself(run)
        return self._call_with_care(run)

    async def _call_with_care(self, run: Run) -> Any:
        if self._options.verify_tenant is not None:
            await self._verify_tenant(run.context, self._options.verify_tenant)
        around = run.handler.around
        if around is None:
            return await self._call_itself(run)
        return await around(run.context, functools.partial(self._call_itself, run))

    async def _verify_tenant(self, context: Context, verify: VerifyTenant) -> None:
        answer = verify(context)
        if not (await answer if inspect.isawaitable(answer) else answer):
            raise TenantRefused(f"tenant {context.tenant!r} is not one that this worker may work for")

    async def _call_itself(self, run: Run) -> Any:
        handler = run.handler
        match handler.mode:
            case Mode.ASYNC:
                return await handler.function(run.context)
            case Mode.THREAD:
                run.context.mark_in_thread(asyncio.get_running_loop())
                call = functools.partial(handler.function, run.context)
                if self._observers:
                    call = functools.partial(contextvars.copy_context().run, call)  # the span and ids that are set here
                return await self._threads.run(call)
            case Mode.PROCESS:
                return await self._processes.run(run)
            case unknown:
                assert_never(unknown)

    def _completed(self, value: Any, reporter: StoreReporter) -> Completed:
        return Completed(
            to_bytes(value, what="result", codec=self._options.codec, limit=self._options.max_result_bytes),
            self._follow_ups(reporter),
        )

    def _follow_ups(self, reporter: StoreReporter) -> tuple[NewJob, ...]:
        if not self._observers or not reporter.follow_ups:
            return tuple(reporter.follow_ups)
        adding = Adding(list(reporter.follow_ups))
        with self._observers.adding(adding):
            return tuple(adding.jobs)

    def _raised(self, run: Run, error: BaseException) -> Verdict | None:
        """A handler that was told to stop and raised has stopped; otherwise it failed."""
        if run.stop is not None and run.handler.mode == Mode.THREAD:
            return self._stopped(run, run.stop)
        return verdict_on_error(error, run.job, self._options)

    def _group_raised(self, run: Run, group: BaseExceptionGroup[BaseException]) -> Verdict | None:
        """Tasks of the handler may be suspended together; a failure among them counts first."""
        _, rest = group.split(Suspension)
        if isinstance(rest, Exception):
            return self._raised(run, rest)
        if rest is not None:
            raise group
        verdicts = [suspension.verdict for suspension in found_in(group)]
        parked = [verdict for verdict in verdicts if verdict is not None]
        return merged(parked) if len(parked) == len(verdicts) else None

    def _stopped(self, run: Run, stop: Stop) -> Verdict | None:
        match stop.cause:
            case StopCause.CANCELLED:
                return Cancelled(stop.reason)
            case StopCause.TIMED_OUT:
                return verdict_on_failure(timed_out(run.timeout_ms), run.job, self._options)
            case StopCause.SHUTDOWN:
                return Released(CrashKind.DEPLOY)
            case StopCause.LEASE_LOST:
                return None
            case unknown:
                assert_never(unknown)

    async def close(self) -> None:
        self._threads.close()
        await self._processes.close()


def _parked_at_end(run: Run) -> Parked | None:
    steps = run.context._steps  # noqa: SLF001 - made in `prepare`
    return None if steps is None else steps.verdict_at_end()


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _reporter(run: Run) -> StoreReporter:
    reporter = run.context._reporter  # noqa: SLF001 - made in `prepare`
    assert isinstance(reporter, StoreReporter)
    return reporter
