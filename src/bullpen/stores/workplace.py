"""What a worker asks of the place that it works at: a store, or a server that stands before one."""

from collections.abc import Sequence
from typing import Protocol, TypeGuard

from bullpen.clock import Clock
from bullpen.job.limits import QueueLimits, QueueStanding
from bullpen.job.record import JobRecord, JobRef, Lease
from bullpen.job.schedule import ScheduleRecord
from bullpen.stores.answers import ChildPage, StoreFacts, TickStart
from bullpen.stores.base import Store
from bullpen.stores.verbs.journaling import Journaling
from bullpen.stores.verbs.working import Working


class Workplace(Working, Journaling, Protocol):
    """The part of the contract of a store by which jobs are run; `verbs/` has the promises."""

    @property
    def facts(self) -> StoreFacts: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def place(self) -> str: ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def another(self) -> "Workplace": ...

    # ── words about a job ────────────────────────────────────────────────────────────────

    async def set_progress(self, ref: JobRef, progress: bytes) -> None: ...

    async def add_log(self, ref: JobRef, lines: Sequence[str]) -> int: ...

    async def job(self, ref: JobRef) -> JobRecord: ...

    async def children(self, ref: JobRef, *, limit: int = 1_000, cursor: str | None = None) -> ChildPage: ...

    # ── schedules and limits of the queues that are served ───────────────────────────────

    async def start_tick(self, lease: Lease) -> TickStart: ...

    async def advance_schedule(self, queue: str, schedule_id: str, *, tick_ms: int, next_ms: int | None) -> bool: ...

    async def idle_schedules(self, queues: Sequence[str]) -> Sequence[ScheduleRecord]: ...

    async def limits(self, queue: str) -> QueueStanding: ...

    async def set_limits(self, queue: str, limits: QueueLimits) -> None: ...


def is_store(workplace: Workplace) -> TypeGuard[Store]:
    """Whether it has all verbs of a store, to look at and to steer what is there."""
    return not workplace.facts.only_works
