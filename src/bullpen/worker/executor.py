"""Running one job: from a claim to a verdict."""

import asyncio
import contextvars
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, assert_never

from bullpen.clock import Clock
from bullpen.errors import TenantRefused
from bullpen.job.options import to_ms
from bullpen.job.record import ClaimedJob, CrashKind, Failure
from bullpen.job.spec import NewJob
from bullpen.job.verdicts import Cancelled, Completed, Failed, Postponed, Released, Verdict
from bullpen.job.words import storable
from bullpen.journal.suspension import Suspension, found_in, merged
from bullpen.observing import Adding, Attempt
from bullpen.queue.payload import from_bytes, to_bytes
from bullpen.settings import may_advance_schedules
from bullpen.stores.workplace import Workplace
from bullpen.worker.context import Context
from bullpen.worker.desk import DeskSupplies, JobDesk
from bullpen.worker.durable import IN_PLACE_MS
from bullpen.worker.family import Leave
from bullpen.worker.handlers import Mode, Registry
from bullpen.worker.judging import message_of, timed_out, verdict_on_error, verdict_on_failure
from bullpen.worker.options import VerifyTenant, WorkerOptions
from bullpen.worker.processes import ProcessCrash, Processes
from bullpen.worker.running import Run, Stop, StopCause
from bullpen.worker.threads import Threads
from bullpen.worker.ticking import HeldBack, Ticker

logger = logging.getLogger("bullpen.worker")

OnVerdict = Callable[[Run, Verdict | None], None]

# Looked up once, not for each job: on Python 3.11 a member of an enum costs as much as to make a small object.
_ASYNC, _PROCESS = Mode.ASYNC, Mode.PROCESS
_ENDS_ALL = (KeyboardInterrupt, GeneratorExit)


class Executor:
    """Runs claimed jobs and says what became of each; None where another answers for it."""

    def __init__(
        self,
        store: Workplace,
        registry: Registry,
        options: WorkerOptions,
        clock: Clock,
        *,
        in_place_ms: int = IN_PLACE_MS,
    ) -> None:
        self._store = store
        self._registry = registry
        self._options = options
        self._observers = options.observers
        self._clock = clock
        self._in_place_ms = in_place_ms
        self._around: DeskSupplies | None = None
        self._usual_timeout_ms = to_ms("timeout", options.timeout)
        self._threads = Threads()
        self._processes = Processes(options.max_memory_mb)
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
        except Exception as error:  # noqa: BLE001 - a codec is somebody else's code
            return verdict_on_error(error, job, self._options)
        desk = JobDesk(self._around or self._look_around(), claimed, has_steps=handler.mode is not _PROCESS)
        context = Context(job, data, desk)
        if handler.on_progress is not None:
            desk.on_progress = functools.partial(handler.on_progress, context)
        timeout_ms = job.spec.timeout_ms or self._usual_timeout_ms
        return Run(claimed, handler, context, desk, timeout_ms)

    def _look_around(self) -> DeskSupplies:
        """With the first job: which loop runs is a system call to ask, too much to ask for each."""
        loop = asyncio.get_running_loop()
        self._around = DeskSupplies(self._store, self._options, self._clock, loop, self._in_place_ms)
        return self._around

    def perform(self, run: Run, report: OnVerdict) -> Coroutine[Any, Any, None]:
        """Run the handler to its end, and report the verdict. Never raises for what the handler does."""
        return self._observed(run, report) if self._observers else self._attempt(run, report)

    async def _observed(self, run: Run, report: OnVerdict) -> None:
        attempt = Attempt(run.job)

        def note(_: Run, verdict: Verdict | None) -> None:
            attempt.verdict = verdict

        with self._observers.attempting(attempt):
            await self._attempt(run, note)
        report(run, attempt.verdict)

    async def _attempt(self, run: Run, report: OnVerdict) -> None:
        try:
            verdict = await self._outcome(run)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) or _ends_all(error):
                raise  # the worker around it ends; if it does not, it sees that this run said nothing, and judges it
            # What we do around a handler met what nobody thought of; a job without a verdict would hold its slot.
            logger.exception("job %s could not be judged; it counts as failed", run.job.ref)
            verdict = self.judge(run, error)
        run.has_ended = True
        report(run, None if run.over else verdict)

    async def _outcome(self, run: Run) -> Verdict | None:
        """What the handler's end means for its job, once its words are sent and whoever asked is told."""
        verdict: Verdict | None
        try:
            if run.job.is_tick:
                await self._ticker.begin(run.claimed)
            value = await self._call(run)
            run.has_ended = True
            verdict = run.desk.verdict_at_end() or self._completed(value, run.desk)
        except asyncio.CancelledError as error:
            if run.stop is not None:
                verdict = self._stopped(run, run.stop)
            elif _is_being_cancelled():
                raise  # not the job is cancelled, but the worker around it
            else:
                verdict = self._raised(run, error)  # the handler's own, from something that it cancelled
        except HeldBack as held:
            run.context.log(held.why)
            await run.desk.reporter.flush()
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
        except BaseException as error:
            if _ends_all(error):
                raise
            verdict = self._raised(run, error)  # whatever a handler raises is its verdict, also SystemExit
        run.has_ended = True
        if (said := run.desk.said) is not None and said.has_words:
            await said.flush()
        if run.handler.on_verdict is not None and verdict is not None:
            await run.handler.on_verdict(run.context, verdict)
        return verdict

    def judge(self, run: Run, error: BaseException) -> Verdict | None:
        """The verdict on a run that ended without one: never begun, cancelled by itself, or met by an accident."""
        if run.stop is not None:
            return self._stopped(run, run.stop)
        failure = Failure(message_of(error) or type(error).__name__, type=storable(type(error).__name__))
        return verdict_on_failure(failure, run.job, self._options)

    def _call(self, run: Run) -> Awaitable[Any]:
        if self._options.verify_tenant is None and run.handler.around is None:
            # The usual handler is called with nothing in between.
            is_async = run.handler.mode is _ASYNC
            return run.handler.function(run.context) if is_async else self._call_itself(run)
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

    def _completed(self, value: Any, desk: JobDesk) -> Completed:
        result = to_bytes(value, what="result", codec=self._options.codec, limit=self._options.max_result_bytes)
        return Completed(result) if desk.said is None else Completed(result, self._follow_ups(desk.said.follow_ups))

    def _follow_ups(self, jobs: Sequence[NewJob]) -> tuple[NewJob, ...]:
        if not self._observers or not jobs:
            return tuple(jobs)
        adding = Adding(list(jobs))
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
        if rest is not None:
            if _ends_all(rest):
                raise group
            return self._raised(run, rest)
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


def _ends_all(error: BaseException) -> bool:
    """Whether this, or anything in this group, ends the process, so that no job can be judged by it."""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(_ENDS_ALL) is not None
    return isinstance(error, _ENDS_ALL)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
