"""The thin synchronous front, for Django, Flask and scripts.

One thread with an event loop and a store of its own, started at the first use, serves all
threads of the process. It is no second implementation: each call is the async one, waited for.
"""

import asyncio
import atexit
import contextlib
import logging
import os
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from bullpen.errors import BufferLost, UsageError
from bullpen.job.options import Duration
from bullpen.job.record import JobRecord, JobRef
from bullpen.jobtypes.jobtype import Adding, JobType
from bullpen.queue.job import Job
from bullpen.queue.queue import Queue
from bullpen.stores.base import AddOutcome, Cancellation, Delivery

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

logger = logging.getLogger("bullpen.sync")

_CLOSE_S = 10.0


class Pen(Protocol):
    """What this front needs of an application."""

    async def open(self) -> None: ...

    async def ready(self) -> None: ...

    async def close(self) -> None: ...

    def queue(self, name: str) -> Queue: ...


B = TypeVar("B", bound=Pen)


class Sync(Generic[B]):
    """`pen.sync`: adds jobs, and awaits them, from code that is not async. Safe from many threads."""

    def __init__(self, twin: Callable[[], B]) -> None:
        self._make_twin = twin
        """Makes an application like ours on a store of its own, for our loop."""
        self._starting = threading.Lock()
        self._line: _Line[B] | None = None
        _all.add(self)

    def add(self, job_type: JobType[P, R] | Adding[P, R], /, *args: P.args, **kwargs: P.kwargs) -> "SyncJob[R]":
        """Add a job of this type: `pen.sync.add(welcome, user_id=42)`, or with `welcome.options(delay=60)`."""
        kind = job_type.job_type if isinstance(job_type, Adding) else job_type
        new = job_type.prepare(*args, **kwargs)

        async def add(pen: B) -> Job[R]:
            await pen.ready()
            job = await pen.queue(kind.queue).add_prepared(new)
            return job.reading(kind.read_result)

        return SyncJob(self, self._run(add))

    def job(self, job_type: JobType[P, R], job_id: str) -> "SyncJob[R]":
        """A handle to a job of this type by its id."""

        async def find(pen: B) -> Job[R]:
            return pen.queue(job_type.queue).job(job_id).reading(job_type.read_result)

        return SyncJob(self, self._run(find))

    def run(self, action: Callable[[B], Awaitable[T]]) -> T:
        """Anything else: `pen.sync.run(lambda pen: pen.queue("mail").counts())`.

        The application that the action is given is like yours, with a store of its own, opened.
        """

        async def act(pen: B) -> T:
            await pen.open()
            return await action(pen)

        return self._run(act)

    def _run(self, action: Callable[[B], Awaitable[T]]) -> T:
        if _has_loop():
            raise UsageError("pen.sync would block this event loop: await the async call instead")
        return self._started().run(action)

    def close(self) -> None:
        """End the thread and let go of its store; BufferLost if jobs that waited for the store were not added."""
        with self._starting:
            line, self._line = self._line, None
        if line is not None:
            line.close()

    def _started(self) -> "_Line[B]":
        with self._starting:
            if self._line is None:
                self._line = _Line(self._make_twin())
            return self._line

    def _forget(self) -> None:
        """In a forked child: the thread stayed with the parent, and the lock may be held by nobody."""
        self._starting = threading.Lock()
        if self._line is not None:
            self._line.leave_to_the_parent()
            self._line = None


class SyncJob(Generic[R]):
    """A job as code that is not async holds it."""

    def __init__(self, front: Sync[Any], job: Job[R]) -> None:
        self._front = front
        self._job = job

    def __repr__(self) -> str:
        return f"<SyncJob {self.ref}>"

    @property
    def ref(self) -> JobRef:
        return self._job.ref

    @property
    def id(self) -> str:
        return self._job.id

    @property
    def outcome(self) -> AddOutcome | None:
        """What the add did; None for a job that was looked up."""
        return self._job.outcome

    def result(self, timeout: Duration | None = None) -> R:
        """Wait for the end and return the result; raises as `Job.result` does."""
        return self._on_the_loop(lambda: self._job.result(timeout))

    def record(self) -> JobRecord:
        """All that is known of it; JobMissing once it is gone."""
        return self._on_the_loop(self._job.record)

    def cancel(self, reason: str = "") -> Cancellation:
        """End it now if it waits; if it runs, its worker is told at once."""
        return self._on_the_loop(lambda: self._job.cancel(reason))

    def signal(self, name: str, payload: Any = None) -> Delivery:
        """Send it a signal; raises as `Job.signal` does."""
        return self._on_the_loop(lambda: self._job.signal(name, payload))

    def _on_the_loop(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self._front.run(lambda _: call())


class _Line(Generic[B]):
    """The thread, its loop, and the application on it."""

    def __init__(self, pen: B) -> None:
        self._pen = pen
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bullpen-sync", daemon=True)
        self._thread.start()
        atexit.register(self._close_at_exit)

    def run(self, action: Callable[[B], Awaitable[T]]) -> T:
        async def act() -> T:
            return await action(self._pen)

        future = asyncio.run_coroutine_threadsafe(act(), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C: nobody waits any more
            raise

    def close(self) -> None:
        atexit.unregister(self._close_at_exit)
        try:
            asyncio.run_coroutine_threadsafe(self._pen.close(), self._loop).result(_CLOSE_S)
        finally:
            asyncio.run_coroutine_threadsafe(_end_tasks(), self._loop).result(_CLOSE_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CLOSE_S)
            self._loop.close()

    def leave_to_the_parent(self) -> None:
        """In a forked child: keep this for ever, also past the end of Python.

        Both processes have one and the same selector. A connection that is thrown away here takes
        itself off it, and no answer would reach the parent any more.
        """
        import ctypes

        atexit.unregister(self._close_at_exit)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def _close_at_exit(self) -> None:
        try:
            self.close()
        except BufferLost as lost:
            print(f"bullpen: {lost}", file=sys.stderr)  # noqa: T201
        except Exception as error:  # noqa: BLE001 - the process ends; what was answered is kept anyway
            logger.debug("closing at exit: %s", error)


async def _end_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _has_loop() -> bool:
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        return True
    return False


_all: "weakref.WeakSet[Sync[Any]]" = weakref.WeakSet()


def _forget_all() -> None:
    for front in list(_all):
        front._forget()  # noqa: SLF001 - the same room


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
