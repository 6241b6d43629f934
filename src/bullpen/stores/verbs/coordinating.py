"""Limits, groups and schedules."""

from collections.abc import Sequence
from typing import Protocol

from bullpen.job.limits import GroupInfo, GroupLimits, GroupPage, QueueLimits, QueueStanding
from bullpen.job.record import Lease
from bullpen.job.schedule import Schedule, ScheduleRecord
from bullpen.stores.answers import ScheduleOutcome, TickStart


class Coordinating(Protocol):
    # ── limits and groups: may be said before the first job; reading asks for a queue (QueueMissing) ──

    async def set_limits(self, queue: str, limits: QueueLimits) -> None:
        """Limit the queue as a whole, on all workers, from now on; what runs goes on. A new window begins."""

    async def limits(self, queue: str) -> QueueStanding: ...

    async def close_for(self, queue: str, delay_ms: int) -> None:
        """Start nothing of the queue for that long, on any worker; what runs goes on. The longest closing stands."""

    async def set_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        """Give a group limits of its own, in place of those it had; None is as all others."""

    async def set_group_default(self, queue: str, limits: GroupLimits) -> None:
        """The limits of each group, where its own say nothing."""

    async def pause_group(self, queue: str, group: str) -> None:
        """Give out no more jobs of the group; running ones go on, adds are taken."""

    async def resume_group(self, queue: str, group: str) -> None:
        """QueueMissing if there is no such queue; a group that is not paused stays as it is."""

    async def group(self, queue: str, group: str) -> GroupInfo:
        """One group as it stands; one that nobody spoke of is empty. Costs the same however many there are."""
        ...

    async def groups(self, queue: str, *, limit: int, cursor: str | None = None) -> GroupPage:
        """The groups that have jobs waiting or active, limits of their own, or a pause; by name."""

    # ── schedules: a tick is a job whose id names its schedule and its time ───────────────

    async def put_schedule(
        self, schedule: Schedule, *, next_ms: int | None, seen_ms: int | None, count: int = 1, paused: bool = False
    ) -> ScheduleOutcome:
        """Make the schedule, or put this one in place of what was seen, with one tick pending: for `next_ms`.

        `seen_ms` is its newest tick as it was seen, None if there was no such schedule. A tick that
        is pending is removed first; one that runs goes on. None as the next: nothing is pending, since
        the schedule is paused, or else has ended. `count` is the number of that tick, for the limit.
        """

    async def start_tick(self, lease: Lease) -> TickStart:
        """Tell the claimant of a tick how its schedule stands, and whether it may run.

        Where ticks must not overlap, the first to ask runs; the others learn which one does, and are
        counted as skipped. A lost lease learns nothing.
        """

    async def advance_schedule(self, queue: str, schedule_id: str, *, tick_ms: int, next_ms: int | None) -> bool:
        """Add the tick after the one for `tick_ms`, or with None let the schedule end; whether that was done.

        Only if that is its newest tick, is no longer pending, and the schedule is not paused: however
        often and by whomever this is asked, each tick is added once.
        """

    async def remove_schedule(self, queue: str, schedule_id: str) -> None:
        """Forget the schedule and its pending tick; one that runs goes on. Else ScheduleMissing."""

    async def schedule(self, queue: str, schedule_id: str) -> ScheduleRecord:
        """The schedule, or ScheduleMissing."""

    async def schedules(self, queue: str) -> Sequence[ScheduleRecord]:
        """All schedules of the queue, by id; none for a queue that is not there."""

    async def idle_schedules(self, queues: Sequence[str]) -> Sequence[ScheduleRecord]:
        """Those whose newest tick is due and no longer pending, and that are neither paused nor ended: advance them.

        Some at a time, if there are many. Who claimed such a tick died before adding the next, or is about to.
        """
