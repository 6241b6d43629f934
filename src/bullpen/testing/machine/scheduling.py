"""Rules of schedules: made, changed, paused, ticking, removed."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from bullpen.job.schedule import Overlap, Schedule, Timing
from bullpen.job.spec import JobSpec
from bullpen.testing.machine import drawing
from bullpen.testing.machine.checks import Checks
from bullpen.testing.machine.model.jobs import ModelSchedule

_ids = st.sampled_from(["hourly", "daily"])


class Scheduling(Checks):
    @rule(
        data=st.data(),
        queue=drawing.queues,
        schedule_id=_ids,
        overlap=st.sampled_from(Overlap),
        priority=st.integers(0, 1),
        rests=drawing.seldom,
        paused=st.booleans(),
        blind=drawing.seldom,
    )
    def put_schedule(
        self,
        data: st.DataObject,
        queue: str,
        schedule_id: str,
        overlap: Overlap,
        priority: int,
        rests: bool,
        paused: bool,
        blind: bool,
    ) -> None:
        completed, failed = drawing.KEPT[queue]
        schedule = Schedule(
            queue=queue,
            id=schedule_id,
            name=self._fresh("tick"),
            spec=JobSpec(priority=priority, attempts=2, keep_completed=completed, keep_failed=failed),
            timing=Timing(every_ms=60_000),
            overlap=overlap,
        )
        known = self._model.schedules.get((queue, schedule_id))
        seen_ms = None if known is None or blind else known.last_ms
        next_ms = None if rests else self._draw_time(data, known)
        self._tick()
        self._both(
            "put_schedule",
            schedule,
            next_ms=next_ms,
            seen_ms=seen_ms,
            count=data.draw(st.integers(1, 3)),
            paused=rests and paused,
        )

    @precondition(lambda self: self._model.schedules)
    @rule(data=st.data(), ends=drawing.seldom, blind=drawing.seldom)
    def advance_schedule(self, data: st.DataObject, ends: bool, blind: bool) -> None:
        (queue, schedule_id), known = data.draw(st.sampled_from(list(self._model.schedules.items())), "schedule")
        next_ms = None if ends else self._draw_time(data, known)
        self._both("advance_schedule", queue, schedule_id, tick_ms=known.last_ms + blind, next_ms=next_ms)

    @precondition(lambda self: self._leases)
    @rule(data=st.data())
    def start_tick(self, data: st.DataObject) -> None:
        ticks = [lease for lease in self._leases if self._model.held(lease) and lease.ref.id.startswith("repeat:")]
        self._both("start_tick", data.draw(st.sampled_from([*ticks * 4, *self._leases]), "lease"))

    @rule(queue=drawing.queues, schedule_id=_ids)
    def remove_schedule(self, queue: str, schedule_id: str) -> None:
        self._both("remove_schedule", queue, schedule_id)

    @rule(queues=st.lists(drawing.queues, unique=True))
    def look_for_idle_schedules(self, queues: list[str]) -> None:
        found = self._run(self._store.idle_schedules(queues))
        assert sorted((record.queue, record.id) for record in found) == self._model.idle_schedules(queues)

    def _draw_time(self, data: st.DataObject, known: ModelSchedule | None) -> int:
        """Later, more often than a time that had its tick."""
        later = self._model.now_ms + drawing.TICK_MS + data.draw(drawing.delays_ms, "delay")
        return data.draw(st.sampled_from([later, later, later, later if known is None else known.last_ms]), "time")
