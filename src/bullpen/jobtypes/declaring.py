"""What `@pen.job(…)` does with the function below it."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from bullpen.errors import BadHandler, BadOption
from bullpen.job.limits import NO_LIMITS, QueueLimits
from bullpen.job.options import JobOptions
from bullpen.jobtypes.jobtype import (
    AsyncFunction,
    AsyncJobType,
    Home,
    JobType,
    JobTypeOptions,
    SyncFunction,
    SyncJobType,
)

P = ParamSpec("P")
R = TypeVar("R")


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


class Declares(Home, Protocol):
    """An application that job types are declared in."""

    def declare(self, job_type: JobType[..., Any]) -> None: ...


class Declaration:
    """What `@pen.job(…)` gives: makes a job type of the function below it."""

    def __init__(self, pen: Declares, declared: JobTypeOptions, usual: JobOptions) -> None:
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
