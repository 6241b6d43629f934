"""One activation of a job on this worker, from claim to verdict."""

import asyncio
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from bullpen.job.record import ClaimedJob, JobRecord, Lease
from bullpen.job.verdicts import Verdict
from bullpen.worker.context import Context
from bullpen.worker.desk import JobDesk
from bullpen.worker.handlers import Handler, Mode
from bullpen.worker.unanswered import Unanswered


class StopCause(StrEnum):
    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"
    SHUTDOWN = "worker stops"
    LEASE_LOST = "lease lost"


class Stop(msgspec.Struct, frozen=True):
    cause: StopCause
    reason: str = ""


class Cancel(msgspec.Struct, frozen=True):
    """That somebody asked for, as the lease thread heard of it."""

    reason: str
    heard_ms: int
    """Monotonic."""


class Run:
    """Owned by the worker's event loop; the lease thread reads it and may set `over` and `cancel`."""

    __slots__ = (
        "cancel",
        "claimed",
        "context",
        "deadline_ms",
        "desk",
        "handler",
        "has_ended",
        "over",
        "stop",
        "task",
        "timeout_ms",
        "verdict",
    )

    def __init__(
        self,
        claimed: ClaimedJob,
        handler: Handler,
        context: Context,
        desk: JobDesk,
        timeout_ms: int,
    ) -> None:
        self.claimed = claimed
        self.handler = handler
        self.context = context
        self.desk = desk
        self.timeout_ms = timeout_ms
        self.deadline_ms = 0
        """Monotonic; set by whoever watches over it."""
        self.task: asyncio.Task[None] | None = None
        self.stop: Stop | None = None
        """The first reason to stop; later ones change nothing."""
        self.cancel: Cancel | None = None
        """A loop that is blocked knows nothing of it."""
        self.has_ended = False
        """The handler is through; only its verdict is on its way, which nothing may interrupt."""
        self.verdict: Verdict | None = None
        """With those who carry it to the store."""
        self.over = False
        """The job was settled without waiting for its handler: whatever that still does is void."""

    @property
    def job(self) -> JobRecord:
        return self.claimed.job

    @property
    def lease(self) -> Lease:
        return self.claimed.lease

    @property
    def ignores_stop(self) -> bool:
        """It was told to stop, and its handler goes on."""
        return self.stop is not None and self.task is not None and not self.task.done()

    @property
    def ended_by(self) -> BaseException | None:
        """The error that its task ended by; None as long as it goes on, or where it came to its end."""
        if self.task is None or not self.task.done():
            return None
        return asyncio.CancelledError() if self.task.cancelled() else self.task.exception()

    def ask_to_stop(self, stop: Stop) -> None:
        """Tell the handler; code at an await and processes are interrupted, threads must look."""
        if self.stop is not None or self.has_ended:
            return
        self.stop = stop
        self.context.mark_cancelled(stop.reason or stop.cause, is_asked=stop.cause is StopCause.CANCELLED)
        if self.handler.mode != Mode.THREAD and self.task is not None:
            self.task.cancel()


class LeaseBook:
    """The leases that this worker holds: kept by the event loop, read by the lease thread."""

    def __init__(self, unanswered: Unanswered) -> None:
        self.unanswered = unanswered
        """Claims that it may hold."""
        self._runs: dict[str, Run] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def enter(self, run: Run) -> None:
        self._runs[run.claimed.lease.token] = run

    def strike(self, token: str) -> None:
        self._runs.pop(token, None)

    def find(self, token: str) -> Run | None:
        return self._runs.get(token)

    def runs(self) -> Iterable[Run]:
        return tuple(self._runs.values())
