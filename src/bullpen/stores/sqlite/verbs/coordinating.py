"""Limits, groups and schedules."""

from collections.abc import Sequence

from bullpen.job.limits import GroupInfo, GroupLimits, GroupPage, QueueLimits, QueueStanding
from bullpen.job.record import Lease
from bullpen.job.schedule import Schedule, ScheduleRecord, tick_of
from bullpen.stores.base import ScheduleOutcome, TickStart
from bullpen.stores.sqlite import limiting, looking, scheduling
from bullpen.stores.sqlite.opened import OpenFile


class Coordinating(OpenFile):
    async def set_limits(self, queue: str, limits: QueueLimits) -> None:
        await self._write(lambda tx: limiting.set_limits(tx, queue, limits))

    async def limits(self, queue: str) -> QueueStanding:
        now_ms = self._clock.now_ms()
        return await self._file.read(lambda db: limiting.standing(db, looking.existing_queue(db, queue), now_ms))

    async def close_for(self, queue: str, delay_ms: int) -> None:
        await self._write(lambda tx: limiting.close_for(tx, tx.queue(queue), None, delay_ms))

    async def set_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        await self._write(lambda tx: limiting.set_group(tx, queue, group, limits))

    async def set_group_default(self, queue: str, limits: GroupLimits) -> None:
        await self._write(lambda tx: limiting.set_group_default(tx, queue, limits))

    async def pause_group(self, queue: str, group: str) -> None:
        await self._write(lambda tx: limiting.pause_group(tx, queue, group))

    async def resume_group(self, queue: str, group: str) -> None:
        await self._write(lambda tx: limiting.resume_group(tx, queue, group))

    async def group(self, queue: str, group: str) -> GroupInfo:
        now_ms = self._clock.now_ms()
        return await self._file.read(lambda db: limiting.group(db, looking.existing_queue(db, queue), group, now_ms))

    async def groups(self, queue: str, *, limit: int, cursor: str | None = None) -> GroupPage:
        now_ms = self._clock.now_ms()
        return await self._file.read(
            lambda db: limiting.groups(db, looking.existing_queue(db, queue), limit, cursor, now_ms)
        )

    async def put_schedule(
        self, schedule: Schedule, *, next_ms: int | None, seen_ms: int | None, count: int = 1, paused: bool = False
    ) -> ScheduleOutcome:
        return await self._write(lambda tx: scheduling.put(tx, schedule, next_ms, seen_ms, count=count, paused=paused))

    async def start_tick(self, lease: Lease) -> TickStart:
        return await self._write(lambda tx: scheduling.start_tick(tx, lease, tick_of(lease.ref.id)))

    async def advance_schedule(self, queue: str, schedule_id: str, *, tick_ms: int, next_ms: int | None) -> bool:
        return await self._write(lambda tx: scheduling.advance(tx, queue, schedule_id, tick_ms, next_ms))

    async def remove_schedule(self, queue: str, schedule_id: str) -> None:
        await self._write(lambda tx: scheduling.remove(tx, queue, schedule_id))

    async def schedule(self, queue: str, schedule_id: str) -> ScheduleRecord:
        return await self._file.read(lambda db: scheduling.one(db, queue, schedule_id))

    async def schedules(self, queue: str) -> Sequence[ScheduleRecord]:
        return await self._file.read(lambda db: scheduling.all_of(db, queue))

    async def idle_schedules(self, queues: Sequence[str]) -> Sequence[ScheduleRecord]:
        return await self._file.read(lambda db: scheduling.idle(db, queues, self._clock.now_ms()))
