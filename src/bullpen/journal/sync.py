"""The same steps for plain functions, which a worker runs in threads.

What is asked of the store happens on the worker's event loop; the functions of the steps are
called here, in the handler's own thread, which waits meanwhile and has nothing else to do.
"""

import asyncio
import contextvars
import queue
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from bullpen.errors import BadStep
from bullpen.job.options import Duration
from bullpen.journal.performing import is_inside_step
from bullpen.journal.retries import StepRetry
from bullpen.journal.saga import Saga
from bullpen.journal.steps import Steps

T = TypeVar("T")

_Job = tuple[contextvars.Context, Callable[[], Any], "asyncio.Future[Any]"]


class SyncSteps:
    """`ctx.sync`: what a context offers to a program that is a plain function."""

    def __init__(self, steps: Steps, loop: asyncio.AbstractEventLoop, is_to_stop: Callable[[], bool]) -> None:
        self._steps = steps
        self._loop = loop
        self._is_to_stop = is_to_stop

    @overload
    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        retry: StepRetry | int | None = None,
        returns: type[T],
    ) -> T: ...

    @overload
    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        retry: StepRetry | int | None = None,
        returns: None = None,
    ) -> Any: ...

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        retry: StepRetry | int | None = None,
        returns: type[Any] | None = None,
    ) -> Any:
        """Call this once, whatever happens; its result, now and in later attempts."""
        return self.serve(lambda steps: steps.step(name, function, *args, retry=retry, returns=returns))

    def sleep(self, duration: Duration, *, name: str = "sleep") -> None:
        """Park the job for that long."""
        self.serve(lambda steps: steps.sleep(duration, name=name))

    def wait_for(self, signal: str, *, timeout: Duration | None = None) -> Any:
        """Park the job until this signal comes, and return its payload; WaitTimeout if it does not in time."""
        return self.serve(lambda steps: steps.wait_for(signal, timeout=timeout))

    def saga(self) -> "SyncSaga":
        """A block whose steps are undone if it fails."""
        return SyncSaga(self, self._is_to_stop)

    def serve(self, ask: Callable[[Steps], Awaitable[T]]) -> T:
        """Ask on the event loop, and call here what it wants to be called."""
        if is_inside_step():
            raise BadStep("a step cannot ask for steps: what it did would not be asked for again once it is on record")
        if _has_loop():
            raise BadStep("ctx.sync would block this event loop: await ctx.step(…) instead")
        wanted: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()

        async def call_there(function: Callable[[], Any]) -> Any:
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            wanted.put((contextvars.copy_context(), function, future))
            return await future

        async def go() -> T:
            try:
                return await ask(self._steps.with_caller(call_there))
            finally:
                wanted.put(None)

        asked = asyncio.run_coroutine_threadsafe(go(), self._loop)
        while (job := wanted.get()) is not None:
            self._call(*job)
        return asked.result()

    def _call(self, context: contextvars.Context, function: Callable[[], Any], future: "asyncio.Future[Any]") -> None:
        try:
            outcome, error = context.run(function), None
        except BaseException as raised:  # noqa: BLE001 - it is the step's, and its program is told on the loop
            outcome, error = None, raised
        self._loop.call_soon_threadsafe(_deliver, future, outcome, error)


class SyncSaga:
    """`with ctx.sync.saga() as saga:` everything in the block is done, or what was done of it is undone."""

    def __init__(self, front: SyncSteps, is_to_stop: Callable[[], bool]) -> None:
        self._front = front
        self._is_to_stop = is_to_stop
        self._saga: Saga | None = None

    def __enter__(self) -> Self:
        async def begin(steps: Steps) -> Saga:
            return Saga(steps, self._is_to_stop)

        self._saga = self._front.serve(begin)
        return self

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        undo: Callable[[Any], Any] | None = None,
        retry: StepRetry | int | None = None,
        undo_retry: StepRetry | int | None = None,
        returns: type[Any] | None = None,
    ) -> Any:
        """A step whose result `undo` is called with, should the saga fail later on."""
        return self._front.serve(
            lambda steps: self._with(steps).step(
                name, function, *args, undo=undo, retry=retry, undo_retry=undo_retry, returns=returns
            )
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._front.serve(lambda steps: self._with(steps).__aexit__(kind, error, trace))

    def _with(self, steps: Steps) -> Saga:
        assert self._saga is not None
        return self._saga.using(steps)


def _deliver(future: "asyncio.Future[Any]", outcome: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(outcome)
    elif isinstance(error, StopIteration):
        future.set_exception(RuntimeError(f"a step raised StopIteration: {error}"))
    else:
        future.set_exception(error)


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
