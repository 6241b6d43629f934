"""Declaring job types: what `@pen.job(…)` does with the function below it, and what an application has of them."""

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar, Unpack, cast, overload

from bullpen.errors import BadHandler, BadName, BadOption
from bullpen.job.limits import NO_LIMITS, QueueLimits, Rate
from bullpen.job.names import check_queue_name
from bullpen.job.options import JobOptions, OptionFields, with_options
from bullpen.job.record import Failure, FailureKind, JobRecord
from bullpen.jobtypes.hooks import Alert, AlertHook, Hooks, Middleware, Severity, raise_alert
from bullpen.jobtypes.jobtype import (
    AsyncFunction,
    AsyncJobType,
    JobType,
    JobTypeOptions,
    SkipIf,
    SyncFunction,
    SyncJobType,
)
from bullpen.queue.queue import Queue
from bullpen.worker.handlers import Handler

P = ParamSpec("P")
R = TypeVar("R")

NO_HOOKS = Hooks()
NORMAL_PRIORITY = 5
USUAL = JobOptions(priority=NORMAL_PRIORITY)
"""Job types always have a priority, so that none of their jobs runs before all others by accident."""


def check_neighbours(of_one_queue: Sequence[JobType[..., Any]]) -> None:
    """Limits are a queue's: a job type that declares some shares its queue with no other."""
    limited = next((one for one in of_one_queue if one.limits != NO_LIMITS), None)
    others = ", ".join(sorted(one.name for one in of_one_queue if one is not limited))
    if limited is not None and others:
        what = f"concurrency and rate of {limited.name}"
        raise BadOption(f"{what}: give it a queue of its own; {limited.queue!r} is shared with {others}")


def limits_of(job_types: Iterable[JobType[..., Any]]) -> dict[str, QueueLimits]:
    """What they declare, by queue."""
    return {one.queue: one.limits for one in job_types if one.limits != NO_LIMITS}


class Declaration:
    """What `@pen.job(…)` gives: makes a job type of the function below it."""

    def __init__(self, pen: "JobTypes", declared: JobTypeOptions, usual: JobOptions) -> None:
        self._pen = pen
        self._declared = declared
        self._usual = usual

    @overload
    def __call__(self, function: AsyncFunction[P, R]) -> AsyncJobType[P, R]: ...  # type: ignore[overload-overlap]  # the first that fits is meant

    @overload
    def __call__(self, function: SyncFunction[P, R]) -> SyncJobType[P, R]: ...

    def __call__(self, function: Callable[..., Any]) -> Any:
        if not callable(function):
            raise BadHandler(f"a job type is made of a function, not of {function!r}")
        is_async = inspect.iscoroutinefunction(function)
        if is_async and self._declared.in_process:
            raise BadHandler(f"{function.__qualname__}: a process runs a plain function, not a coroutine")
        kind = AsyncJobType if is_async else SyncJobType
        job_type = cast(JobType[..., Any], kind(self._pen, function, self._declared, self._usual))
        self._pen.declare(job_type)
        return job_type


class JobTypes(ABC):
    """The job types of an application: declared here, run by its workers, alerted of when one fails for good."""

    def __init__(self, middleware: Sequence[Middleware] = ()) -> None:
        self.middleware = list(middleware)
        self.alert_hooks: list[AlertHook] = []
        self._alerting: set[asyncio.Task[None]] = set()
        self.types: dict[tuple[str, str], JobType[..., Any]] = {}
        """By queue and job name."""

    @abstractmethod
    async def ready(self) -> None: ...

    @abstractmethod
    def queue(self, name: str) -> Queue: ...

    @overload
    def job(self, function: AsyncFunction[P, R], /) -> AsyncJobType[P, R]: ...  # type: ignore[overload-overlap]  # the first that fits is meant

    @overload
    def job(self, function: SyncFunction[P, R], /) -> SyncJobType[P, R]: ...

    @overload
    def job(
        self,
        *,
        queue: str = "default",
        name: str | None = None,
        critical: bool = False,
        in_process: bool = False,
        skip_if: SkipIf | None = None,
        hooks: Hooks = NO_HOOKS,
        middleware: Sequence[Middleware] = (),
        concurrency: int | None = None,
        rate: Rate | None = None,
        **usual: Unpack[OptionFields],
    ) -> Declaration: ...

    def job(  # type: ignore[misc]  # the options are checked by name in `with_options`
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        queue: str = "default",
        name: str | None = None,
        critical: bool = False,
        in_process: bool = False,
        skip_if: SkipIf | None = None,
        hooks: Hooks = NO_HOOKS,
        middleware: Sequence[Middleware] = (),
        concurrency: int | None = None,
        rate: Rate | None = None,
        **usual: Any,
    ) -> Any:
        """Make a job type of a typed function whose first parameter is its Context."""
        declared = JobTypeOptions(
            queue=queue,
            name=name,
            critical=critical,
            in_process=in_process,
            skip_if=skip_if,
            hooks=hooks,
            middleware=middleware,
            concurrency=concurrency,
            rate=rate,
        )
        declaration = Declaration(self, declared, with_options(USUAL, usual))
        return declaration if function is None else declaration(function)

    def on_alert(self, hook: AlertHook) -> AlertHook:
        """Call this for each final failure: a warning, or a high alert for critical types. Also a decorator."""
        self.alert_hooks.append(hook)
        return hook

    def alert_of(self, job: JobRecord) -> None:
        """Raise the alert for a job that failed for good with no handler at work; none for one that was cancelled."""
        failure = job.failure or Failure("failed")
        if failure.kind == FailureKind.CANCELLED:
            return
        job_type = self.types.get((job.queue, job.name))
        severity = Severity.HIGH if job_type is not None and job_type.declared.critical else Severity.WARNING
        alert = Alert(severity, job.ref, job.name, job.tenant, failure)
        # Owned by this application until done.
        alerting = asyncio.get_running_loop().create_task(raise_alert(self.alert_hooks, alert))
        self._alerting.add(alerting)
        alerting.add_done_callback(self._alerting.discard)

    def declare(self, job_type: JobType[..., Any]) -> None:
        key = (job_type.queue, job_type.name)
        if key in self.types:
            raise BadName(f"queue {key[0]!r} already has a job type named {key[1]!r}")
        check_neighbours([job_type, *(one for one in self.types.values() if one.queue == job_type.queue)])
        self.types[key] = job_type

    def handlers(self, queues: Sequence[str] = ()) -> dict[str, dict[str, Handler]]:
        """What a worker runs, by queue and job name; BadHandler for a queue without a job type."""
        wanted = [check_queue_name(queue) for queue in queues] or sorted({queue for queue, _ in self.types})
        handlers: dict[str, dict[str, Handler]] = {queue: {} for queue in wanted}
        for (queue, name), job_type in self.types.items():
            if queue in handlers:
                handlers[queue][name] = job_type.handler()
        for queue, found in handlers.items():
            if not found:
                raise BadHandler(f"no job type is declared for queue {queue!r}")
        return handlers
