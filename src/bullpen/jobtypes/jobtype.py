"""A job type: a typed function, the queue its jobs wait in, and what is usual for them."""

import asyncio
import dataclasses
import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, Unpack, cast

from bullpen.errors import BadHandler
from bullpen.flows.shapes import with_children
from bullpen.job.limits import QueueLimits, Rate
from bullpen.job.names import check_job_name, check_queue_name
from bullpen.job.options import Duration, JobOptions, OptionFields, to_ms, with_options
from bullpen.job.spec import NewJob
from bullpen.job.verdicts import Failed, Verdict
from bullpen.jobtypes.arguments import Arguments, convert, to_plain
from bullpen.jobtypes.batches import Batcher, BatchFunction, Call
from bullpen.jobtypes.hooks import Alert, AlertHook, Hooks, Middleware, Severity, call_hook, raise_alert, tell_verdict
from bullpen.queue.groups import queue_limits
from bullpen.queue.job import Job
from bullpen.queue.queue import Queue
from bullpen.worker.context import Context
from bullpen.worker.handlers import Handler, Mode, find_function

P = ParamSpec("P")
R = TypeVar("R")

SkipIf = Callable[..., bool | Awaitable[bool]]
"""Given the handler's own arguments: whether the job's subject is already done."""


class Home(Protocol):
    """What a job type needs of the application that it is declared in."""

    middleware: list[Middleware]
    alert_hooks: list[AlertHook]

    async def ready(self) -> None: ...

    def queue(self, name: str) -> Queue: ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobTypeOptions:
    """What is declared beside the function."""

    queue: str = "default"
    """Where its jobs wait."""
    name: str | None = None
    """What its jobs are called; the function's name if not given."""
    critical: bool = False
    """A final failure is a high alert, not a warning."""
    in_process: bool = False
    """Run a plain function in a process of its own: for CPU-bound work, and for what must be killable."""
    skip_if: SkipIf | None = None
    """Asked before the handler runs, with its arguments: if True the job completes without running."""
    hooks: Hooks = Hooks()
    """Called as its jobs go on."""
    middleware: Sequence[Middleware] = ()
    """Around each call, after the application's own."""
    concurrency: int | None = None
    """How many of its jobs may run at once, on all workers together; it needs a queue of its own then."""
    rate: Rate | None = None
    """How many of its jobs may start in a while, likewise: `rate(100, per=60)`."""

    def __post_init__(self) -> None:
        check_queue_name(self.queue)
        if self.name is not None:
            check_job_name(self.name)
        queue_limits(self.concurrency, self.rate)


class JobType(Generic[P, R]):
    """Made by `@pen.job`. `add` has the handler's own signature; options stand apart."""

    def __init__(self, pen: Home, function: Callable[..., Any], declared: JobTypeOptions, usual: JobOptions) -> None:
        self._pen = pen
        self.function = function
        self.declared = declared
        self.usual = usual
        """The options of its jobs, where an add says nothing else."""
        self.name = check_job_name(declared.name or function.__name__)
        self.arguments = Arguments(function)
        self._batching: Callable[[], Batcher] | None = None
        self._telling: set[asyncio.Task[None]] = set()
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__

    def __repr__(self) -> str:
        return f"<JobType {self.name} on {self.queue}>"

    @property
    def queue(self) -> str:
        return self.declared.queue

    @property
    def limits(self) -> QueueLimits:
        """What its queue is limited to, unless an operator says otherwise."""
        return queue_limits(self.declared.concurrency, self.declared.rate)

    # ── adding ───────────────────────────────────────────────────────────────────────────

    async def add(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Add a job with these arguments; BadData names one that does not fit."""
        return await self._add(self.usual, args, kwargs)

    def options(self, **options: Unpack[OptionFields]) -> "Adding[P, R]":
        """The same job type with other options for the next add."""
        return Adding(self, with_options(self.usual, options), options)

    def after(self, *children: NewJob) -> "Adding[P, R]":
        """The same job type for a job that runs after these: `await report.after(fetch.prepare(1)).add(2026)`."""
        return Adding(self, self.usual, {}, children)

    def prepare(self, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """A job that is ready to be added later: in bulk, or when another one completes."""
        return self.prepared(self.usual, args, kwargs)

    def prepared(self, options: JobOptions, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NewJob:
        payload = self.arguments.pack(args, kwargs)
        return self._pen.queue(self.queue).prepare_with(self.name, payload, options)

    async def _add(self, options: JobOptions, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Job[R]:
        return await self.add_prepared(self.prepared(options, args, kwargs))

    async def add_prepared(self, new: NewJob) -> Job[R]:
        """Add one job that `prepare` made."""
        await self._pen.ready()
        job = await self._pen.queue(self.queue).add_prepared(new)
        return cast(Job[R], job.reading(self.read_result))

    def job(self, job_id: str) -> Job[R]:
        """A handle to a job of this type by its id."""
        return cast(Job[R], self._pen.queue(self.queue).job(job_id).reading(self.read_result))

    def read_result(self, value: Any) -> Any:
        """The result as the handler's return type; a job that was skipped has None."""
        if value is None and self.declared.skip_if is not None:
            return None
        return convert(value, self.arguments.returns, f"result of {self.name}")

    # ── handling ─────────────────────────────────────────────────────────────────────────

    def batch(self, size: int, *, wait: Duration = 0.01) -> Callable[[BatchFunction], BatchFunction]:
        """Declare a function that does up to `size` of these jobs in one call; each is settled on its own.

        It gets a list of `Call`s and returns a list of results in their order; an exception in
        its place fails that job alone. It runs as soon as `size` jobs are there, or after `wait`.
        The worker needs at least `size` slots for the queue.
        """

        def declare(function: BatchFunction) -> BatchFunction:
            self._batching = functools.partial(Batcher, function, size, to_ms("wait", wait))
            self._batching()  # what is wrong with the options is said here
            return function

        if self.declared.in_process:
            raise BadHandler(f"{self.name}: a batch runs in the worker's own process; declare it without in_process")
        return declare

    def handler(self) -> Handler:
        """What a worker runs for jobs of this type; each worker gathers batches of its own."""
        path = f"{self.__module__}:{self.__qualname__}.call_plain"
        function: Callable[[Context], Any] = self.call
        mode = Mode.ASYNC if self.is_async else Mode.THREAD
        if self._batching is not None:
            function, mode = functools.partial(self._call_batched, self._batching()), Mode.ASYNC
        elif self.declared.in_process:
            mode = Mode.PROCESS
            self._check_importable(path)
        return Handler(
            function,
            mode,
            path=path,
            around=self._around,
            on_verdict=self._on_verdict,
            on_progress=None if self.declared.hooks.on_progress is None else self._on_progress,
        )

    def _check_importable(self, path: str) -> None:
        if self.__module__ == "__main__" or getattr(find_function(path), "__self__", None) is not self:
            raise BadHandler(f"{self.name}: declare it at the top level of a module that another process can import")

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    def call(self, context: Context) -> Any:
        """The handler's call with the arguments from the payload."""
        return self.function(context, **self.arguments.unpack(context.data))

    def call_plain(self, context: Context) -> Any:
        """The same, with a result that can travel from another process."""
        return to_plain(self.call(context), f"result of {self.name}")

    async def _call_batched(self, batcher: Batcher, context: Context) -> Any:
        context.forbid_steps()  # one call does several jobs: none of them can be set aside alone
        return await batcher.do(Call(context, self.arguments.unpack(context.data)))

    async def _around(self, context: Context, call: Callable[[], Awaitable[Any]]) -> Any:
        """Everything that happens on the worker's loop around the call, wherever that runs."""
        if await self._is_done_already(context):
            context.log("already done: not run again")
            return None
        await call_hook(self.declared.hooks.on_start, context)
        for middleware in reversed((*self._pen.middleware, *self.declared.middleware)):
            call = functools.partial(middleware, context, call)
        return to_plain(await call(), f"result of {self.name}")

    async def _is_done_already(self, context: Context) -> bool:
        if self.declared.skip_if is None:
            return False
        answer = self.declared.skip_if(**self.arguments.unpack(context.data))
        return bool(await answer if inspect.isawaitable(answer) else answer)

    def _on_progress(self, context: Context, value: Any) -> None:
        # Owned by this job type until done; a hook may be async, and its failure is its own.
        telling = asyncio.get_running_loop().create_task(call_hook(self.declared.hooks.on_progress, context, value))
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)

    async def _on_verdict(self, context: Context, verdict: Verdict) -> None:
        await tell_verdict(self.declared.hooks, context, verdict, self._pen.queue(self.queue).codec)
        if isinstance(verdict, Failed):
            severity = Severity.HIGH if self.declared.critical else Severity.WARNING
            alert = Alert(severity, context.job.ref, self.name, context.tenant, verdict.failure)
            await raise_alert(self._pen.alert_hooks, alert)


class AsyncJobType(JobType[P, R]):
    """A job type whose handler is a coroutine function."""

    def __call__(self, context: Context, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """The handler itself, as in a test."""
        return cast(Awaitable[R], self.function(context, *args, **kwargs))


class SyncJobType(JobType[P, R]):
    """A job type whose handler is a plain function, run in a thread or a process."""

    def __call__(self, context: Context, *args: P.args, **kwargs: P.kwargs) -> R:
        """The handler itself, as in a test."""
        return cast(R, self.function(context, *args, **kwargs))


AsyncFunction = Callable[Concatenate[Context, P], Awaitable[R]]
SyncFunction = Callable[Concatenate[Context, P], R]


class Adding(Generic[P, R]):
    """A job type with options for one add."""

    def __init__(
        self,
        job_type: JobType[P, R],
        options: JobOptions,
        given: OptionFields,
        children: tuple[NewJob, ...] = (),
    ) -> None:
        self.job_type = job_type
        self.given = given
        """The options that were said, without the usual ones."""
        self._options = options
        self._children = children

    def after(self, *children: NewJob) -> "Adding[P, R]":
        """The same for a job that runs after these prepared ones."""
        return Adding(self.job_type, self._options, self.given, (*self._children, *children))

    async def add(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        return await self.job_type.add_prepared(self.prepare(*args, **kwargs))

    def prepare(self, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        new = self.job_type.prepared(self._options, args, kwargs)
        return with_children(new, self._children) if self._children else new
