"""The schedules of one queue, as an operator and an application hold them."""

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from bullpen.errors import BadOption, ScheduleMissing, StoreUnavailable
from bullpen.job.names import check_schedule_id
from bullpen.job.schedule import Overlap, Schedule, ScheduleRecord, Timing
from bullpen.job.spec import NewJob
from bullpen.queue.job import Job
from bullpen.scheduling.options import ScheduleFields, ScheduleOptions
from bullpen.scheduling.timing import first_ms, following_ms, in_step, is_same, next_of, resumed_ms
from bullpen.stores.base import ScheduleOutcome, Store

if TYPE_CHECKING:
    from bullpen.queue.queue import Queue

_TRIES = 100
SCHEDULE_HEADER = "schedule"
"""On a job that `run_now` added: of which schedule."""


class _Plan(msgspec.Struct):
    timing: Timing
    next_ms: int | None
    count: int
    paused: bool = False


_Planner = Callable[[ScheduleRecord | None], _Plan]


class Schedules:
    """`queue.schedules`: jobs that are added again and again, by cron or by interval."""

    def __init__(self, queue: "Queue") -> None:
        self._queue = queue

    @property
    def _store(self) -> Store:
        return self._queue.store

    async def upsert(
        self, schedule_id: str, job: NewJob | str, data: Any = None, **when: Unpack[ScheduleFields]
    ) -> ScheduleRecord:
        """Make the schedule, or change it to this. The same again changes nothing: its next tick keeps its time.

        `job` is the name of its jobs, or a prepared job for more options. A paused schedule stays
        paused. BadOption names what is wrong.
        """
        check_schedule_id(schedule_id)
        options = ScheduleOptions(**when)
        new = self._queue.prepare(job, data) if isinstance(job, str) else job
        schedule = self._schedule(schedule_id, new, options)

        def plan(known: ScheduleRecord | None) -> _Plan:
            if known is not None and is_same(known.schedule.timing, schedule.timing):
                return self._go_on(known)
            return self._begin(schedule.timing, known, immediately=options.immediately)

        return await self._put(schedule_id, plan, schedule)

    async def get(self, schedule_id: str) -> ScheduleRecord:
        """The schedule with its next run, or ScheduleMissing."""
        return await self._store.schedule(self._queue.name, schedule_id)

    async def list(self) -> list[ScheduleRecord]:
        """All of this queue, by name."""
        return [*await self._store.schedules(self._queue.name)]

    async def pause(self, schedule_id: str) -> ScheduleRecord:
        """No more ticks until it is resumed; one that runs goes on."""
        known = await self.get(schedule_id)
        return known if known.paused else await self._put(schedule_id, self._pause)

    async def resume(self, schedule_id: str) -> ScheduleRecord:
        """Tick again; what was missed meanwhile is not made up for."""
        return await self._put(schedule_id, self._resume)

    async def run_now(self, schedule_id: str) -> Job[Any]:
        """Add one job of the schedule now, apart from its ticks: their times and their number stay as they are."""
        schedule = (await self.get(schedule_id)).schedule
        spec = msgspec.structs.replace(schedule.spec, headers={**schedule.spec.headers, SCHEDULE_HEADER: schedule.id})
        new = NewJob(self._queue.name, schedule.name, schedule.data, None, spec)
        (added,) = await self._store.add([new], request=uuid.uuid4().hex)
        return Job(self._queue, added.id, added.outcome)

    async def remove(self, schedule_id: str) -> None:
        """Forget it with its next tick; one that runs goes on. Else ScheduleMissing."""
        await self._store.remove_schedule(self._queue.name, schedule_id)

    # ── planning ─────────────────────────────────────────────────────────────────────────

    def _schedule(self, schedule_id: str, new: NewJob, options: ScheduleOptions) -> Schedule:
        if new.queue != self._queue.name:
            raise BadOption(f"job: is for queue {new.queue!r}, not {self._queue.name!r}")
        spec = new.spec
        refused = {"id": new.id, "delay": spec.delay_ms, "start_by": spec.start_by_ms, "dedup": spec.dedup}
        for option, value in refused.items():
            if value:
                raise BadOption(f"{option}: goes not with a schedule, whose ticks have their own times and ids")
        return Schedule(
            queue=new.queue,
            id=schedule_id,
            name=new.name,
            data=new.data,
            spec=spec,
            timing=options.to_timing(),
            overlap=Overlap(options.overlap),
        )

    def _go_on(self, known: ScheduleRecord) -> _Plan:
        """The same times as before: what is pending stays, and so does what is over."""
        timing = known.schedule.timing
        if known.paused or known.ended:
            return _Plan(timing, None, known.count, known.paused)
        if known.pending:
            return _Plan(timing, known.last_ms, known.count)
        return _Plan(timing, next_of(known, self._now_ms), known.count + 1)

    def _begin(self, timing: Timing, known: ScheduleRecord | None, *, immediately: bool) -> _Plan:
        if known is not None and known.paused:
            return _Plan(timing, None, 0, paused=True)  # counted anew, once it is resumed
        first = first_ms(timing, self._now_ms, immediately=immediately)
        if first is None:
            raise BadOption("end: no tick comes before it")
        return _Plan(in_step(timing, first), first, 1)

    @staticmethod
    def _pause(known: ScheduleRecord | None) -> _Plan:
        record = _known(known)
        # A tick that is taken away does not count.
        return _Plan(record.schedule.timing, None, record.count - record.pending, paused=True)

    def _resume(self, known: ScheduleRecord | None) -> _Plan:
        record = _known(known)
        timing = record.schedule.timing
        if not record.paused:
            return self._go_on(record)
        is_over = timing.limit is not None and record.count >= timing.limit
        next_ms = None if is_over else resumed_ms(timing, self._now_ms)
        return _Plan(in_step(timing, next_ms), next_ms, record.count + (next_ms is not None))

    async def _put(self, schedule_id: str, plan_for: _Planner, schedule: Schedule | None = None) -> ScheduleRecord:
        """Look, plan, put; again if somebody else changed it in between, or its tick ran."""
        taken_ms: int | None = None
        for _ in range(_TRIES):
            known = await self._find(schedule_id)
            if schedule is None and known is None:
                raise ScheduleMissing(f"no schedule {schedule_id!r} in queue {self._queue.name!r}")
            plan = plan_for(known)
            base = schedule or _known(known).schedule
            if taken_ms is not None and plan.next_ms is not None:
                plan.next_ms = following_ms(plan.timing, max(taken_ms, plan.next_ms), self._now_ms, count=0)
            outcome = await self._store.put_schedule(
                msgspec.structs.replace(base, timing=plan.timing),
                next_ms=plan.next_ms,
                seen_ms=None if known is None else known.last_ms,
                count=plan.count,
                paused=plan.paused,
            )
            if outcome == ScheduleOutcome.DONE:
                return await self.get(schedule_id)
            taken_ms = plan.next_ms if outcome == ScheduleOutcome.TAKEN else None
        raise StoreUnavailable(f"schedule {schedule_id!r} changes faster than it can be written; try again")

    async def _find(self, schedule_id: str) -> ScheduleRecord | None:
        try:
            return await self.get(schedule_id)
        except ScheduleMissing:
            return None

    @property
    def _now_ms(self) -> int:
        return self._store.clock.now_ms()


def _known(record: ScheduleRecord | None) -> ScheduleRecord:
    assert record is not None
    return record
