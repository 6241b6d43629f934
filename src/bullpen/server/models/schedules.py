"""Schedules as they are shown."""

from typing import Any, Self

from bullpen.job.schedule import ScheduleRecord
from bullpen.queue.payload import Codec
from bullpen.scheduling.timing import following_ms
from bullpen.server.models.base import Shown
from bullpen.server.models.jobs import shown_payload

_RUNS = 5


class ScheduleShown(Shown):
    queue: str
    id: str
    name: str
    data: Any
    tenant: str | None
    priority: int
    cron: str | None
    every_ms: int | None
    tz: str | None
    start_ms: int | None
    end_ms: int | None
    limit: int | None
    overlap: str
    next_ms: int | None
    next_runs: list[int]
    paused: bool
    ended: bool
    ticks: int
    skipped: int

    @classmethod
    def of(cls, record: ScheduleRecord, now_ms: int, codec: Codec | None) -> Self:
        schedule, timing = record.schedule, record.schedule.timing
        return cls(
            queue=record.queue,
            id=record.id,
            name=schedule.name,
            data=shown_payload(schedule.data, codec),
            tenant=schedule.spec.tenant,
            priority=schedule.spec.priority,
            cron=timing.cron,
            every_ms=timing.every_ms,
            tz=timing.tz,
            start_ms=timing.start_ms,
            end_ms=timing.end_ms,
            limit=timing.limit,
            overlap=schedule.overlap,
            next_ms=record.next_ms,
            next_runs=_next_runs(record, now_ms),
            paused=record.paused,
            ended=record.ended,
            ticks=record.ticks,
            skipped=record.skipped,
        )


class SchedulesShown(Shown):
    items: list[ScheduleShown]
    next_cursor: str | None = None


def _next_runs(record: ScheduleRecord, now_ms: int) -> list[int]:
    """The next few, if nothing is changed; none of one that is paused or has ended."""
    if record.paused or record.ended:
        return []
    timing, count, at_ms = record.schedule.timing, record.count, record.last_ms
    runs = [at_ms] if record.pending else []
    while len(runs) < _RUNS:
        following = following_ms(timing, at_ms, max(now_ms, at_ms) if timing.cron else now_ms, count=count)
        if following is None:
            break
        at_ms, count = following, count + 1
        runs.append(at_ms)
    return runs
