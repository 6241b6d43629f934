"""Limits, groups and schedules."""

from collections.abc import Sequence

from bullpen.job.limits import GroupInfo, GroupLimits, GroupPage, QueueLimits, QueueStanding
from bullpen.job.record import Lease
from bullpen.job.schedule import Schedule, ScheduleRecord
from bullpen.stores.base import ScheduleOutcome, TickStart
from bullpen.stores.redis import limiting, scheduling
from bullpen.stores.redis.opened import OpenSite


class Coordinating(OpenSite):
    async def set_limits(self, queue: str, limits: QueueLimits) -> None:
        await limiting.set_limits(self._site, queue, limits)

    async def limits(self, queue: str) -> QueueStanding:
        return await limiting.limits(self._site, queue)

    async def close_for(self, queue: str, delay_ms: int) -> None:
        await limiting.close_for(self._site, queue, delay_ms)

    async def set_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        await limiting.set_group(self._site, queue, group, limits)

    async def set_group_default(self, queue: str, limits: GroupLimits) -> None:
        await limiting.set_group_default(self._site, queue, limits)

    async def pause_group(self, queue: str, group: str) -> None:
        await limiting.pause_group(self._site, queue, group, paused=True)

    async def resume_group(self, queue: str, group: str) -> None:
        await limiting.pause_group(self._site, queue, group, paused=False)

    async def group(self, queue: str, group: str) -> GroupInfo:
        return await limiting.group(self._site, queue, group)

    async def groups(self, queue: str, *, limit: int, cursor: str | None = None) -> GroupPage:
        return await limiting.groups(self._site, queue, limit, cursor)

    async def put_schedule(
        self, schedule: Schedule, *, next_ms: int | None, seen_ms: int | None, count: int = 1, paused: bool = False
    ) -> ScheduleOutcome:
        return await scheduling.put(self._site, schedule, next_ms, seen_ms, count=count, paused=paused)

    async def start_tick(self, lease: Lease) -> TickStart:
        return await scheduling.start_tick(self._site, lease)

    async def advance_schedule(self, queue: str, schedule_id: str, *, tick_ms: int, next_ms: int | None) -> bool:
        return await scheduling.advance(self._site, queue, schedule_id, tick_ms, next_ms)

    async def remove_schedule(self, queue: str, schedule_id: str) -> None:
        await scheduling.remove(self._site, queue, schedule_id)

    async def schedule(self, queue: str, schedule_id: str) -> ScheduleRecord:
        return await scheduling.one(self._site, queue, schedule_id)

    async def schedules(self, queue: str) -> Sequence[ScheduleRecord]:
        return await scheduling.all_of(self._site, queue)

    async def idle_schedules(self, queues: Sequence[str]) -> Sequence[ScheduleRecord]:
        return await scheduling.idle(self._site, queues)
