"""What comes again and again: one tick of each schedule is pending, and each is added once."""

from collections.abc import Iterable

import msgspec

from bullpen.errors import ScheduleMissing
from bullpen.job.record import JobRef, Lease
from bullpen.job.schedule import Overlap, Schedule, ScheduleRecord, Tick, tick_of
from bullpen.job.spec import NewJob
from bullpen.job.state import READY, State
from bullpen.stores.base import ScheduleOutcome, TickStart
from bullpen.testing.machine.model.ending import Ending
from bullpen.testing.machine.model.jobs import ModelJob, ModelSchedule


class Scheduling(Ending):
    def put_schedule(
        self, schedule: Schedule, *, next_ms: int | None, seen_ms: int | None, count: int, paused: bool
    ) -> ScheduleOutcome:
        key = schedule.queue, schedule.id
        known = self.schedules.get(key)
        if (None if known is None else known.last_ms) != seen_ms:
            return ScheduleOutcome.CHANGED
        old = None if known is None else self._pending_tick(known)
        tick = "" if next_ms is None else Tick(schedule.id, next_ms).job_id
        taken = self.jobs.get(JobRef(schedule.queue, tick))
        if taken is not None and taken is not old:
            return ScheduleOutcome.TAKEN
        if old is not None:
            self._remove([old], remember_ids=False)
        before = known or ModelSchedule(schedule, 0, "", 0)
        self.queues.add(schedule.queue)
        self.schedules[key] = ModelSchedule(
            schedule,
            next_ms or 0,
            tick,
            count,
            before.ticks + (next_ms is not None) - (old is not None),
            before.skipped,
            paused,
            next_ms is None and not paused,
            before.running,
        )
        if next_ms is not None:
            self._add_tick(schedule, next_ms)
        return ScheduleOutcome.DONE

    def advance_schedule(self, queue: str, schedule_id: str, *, tick_ms: int, next_ms: int | None) -> bool:
        known = self.schedules.get((queue, schedule_id))
        if known is None or known.last_ms != tick_ms or known.paused or known.ended or self._pending_tick(known):
            return False
        if next_ms is None:
            known.ended = True
            return True
        tick = Tick(schedule_id, next_ms).job_id
        if JobRef(queue, tick) in self.jobs:
            return False
        known.last_ms, known.tick = next_ms, tick
        known.count += 1
        known.ticks += 1
        self._add_tick(known.schedule, next_ms)
        return True

    def start_tick(self, lease: Lease) -> TickStart:
        job, tick = self.held(lease), tick_of(lease.ref.id)
        known = None if tick is None else self.schedules.get((lease.ref.queue, tick.schedule))
        if job is None or known is None:
            return TickStart(None)
        if known.schedule.overlap == Overlap.ALLOW:
            return TickStart(self._record(known))
        if known.running != lease.ref.id and self._is_at_work(JobRef(lease.ref.queue, known.running)):
            known.skipped += job.record.attempts_made == 0
            return TickStart(self._record(known), known.running)
        known.running = lease.ref.id
        return TickStart(self._record(known))

    def remove_schedule(self, queue: str, schedule_id: str) -> None:
        known = self.schedules.pop((queue, schedule_id), None)
        if known is None:
            raise ScheduleMissing(schedule_id)
        if (pending := self._pending_tick(known)) is not None:
            self._remove([pending], remember_ids=False)

    def idle_schedules(self, queues: Iterable[str]) -> list[tuple[str, str]]:
        return [
            key
            for key, known in self._in_order()
            if key[0] in queues
            and known.last_ms <= self.now_ms
            and not (known.paused or known.ended or self._pending_tick(known))
        ]

    def all_schedules(self) -> list[ScheduleRecord]:
        return [self._record(known) for _, known in self._in_order()]

    def note_resting(self, records: Iterable[ScheduleRecord]) -> None:
        """A schedule that was put to rest has no newest tick: by which time it is known is the store's choice."""
        for record in records:
            known = self.schedules.get((record.queue, record.id))
            if known is not None and not known.tick and (record.paused or record.ended):
                known.last_ms = record.last_ms

    def _record(self, known: ModelSchedule) -> ScheduleRecord:
        return ScheduleRecord(
            schedule=known.schedule,
            last_ms=known.last_ms,
            pending=self._pending_tick(known) is not None,
            count=known.count,
            ticks=known.ticks,
            skipped=known.skipped,
            paused=known.paused,
            ended=known.ended,
        )

    def _in_order(self) -> list[tuple[tuple[str, str], ModelSchedule]]:
        return sorted(self.schedules.items(), key=lambda item: item[0])

    def _is_at_work(self, ref: JobRef) -> bool:
        job = self.jobs.get(ref)
        return job is not None and job.state == State.ACTIVE and job.lease_until_ms >= self.now_ms

    def _pending_tick(self, known: ModelSchedule) -> ModelJob | None:
        job = self.jobs.get(JobRef(known.schedule.queue, known.tick))
        is_pending = job is not None and job.state in READY | {State.DELAYED} and job.record.started_ms is None
        return job if is_pending else None

    def _add_tick(self, schedule: Schedule, at_ms: int) -> None:
        tick = Tick(schedule.id, at_ms).job_id
        spec = msgspec.structs.replace(schedule.spec, delay_ms=max(0, at_ms - self.now_ms))
        self._create(JobRef(schedule.queue, tick), NewJob(schedule.queue, schedule.name, schedule.data, tick, spec))
