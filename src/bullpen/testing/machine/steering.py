"""Rules of people who steer one job, or a queue."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from bullpen.job.record import JobRef
from bullpen.job.state import State
from bullpen.testing.machine import drawing
from bullpen.testing.machine.checks import Checks


class Steering(Checks):
    @precondition(lambda self: self._model.jobs)
    @rule(data=st.data(), step=drawing.steps_of_a_job)
    def steer_a_job(self, data: st.DataObject, step: tuple[str, dict[str, Any]]) -> None:
        self._tick()
        verb, options = step
        jobs = self._model.jobs
        apt = [ref for ref, job in jobs.items() if job.state in drawing.APT.get(verb, State)]
        ref = data.draw(st.sampled_from([*apt * 4, *jobs, JobRef("a", "nobody")]), "ref")
        self._both(verb, ref, **options)

    @rule(queue=drawing.queues, step=drawing.steps_of_groups)
    def limit(self, queue: str, step: tuple[str, dict[str, Any]]) -> None:
        verb, options = step
        self._both(verb, queue, **options)

    @precondition(lambda self: self._model.jobs)
    @rule(queue=drawing.queues, step=drawing.steps_of_a_queue)
    def steer_a_queue(self, queue: str, step: tuple[str, dict[str, Any]]) -> None:
        verb, options = step
        self._both(verb, queue, **options)
        if verb == "obliterate" and queue not in self._model.queues:
            self._cursors[queue] = self._starts[queue] = self._end_of_log(queue)
            self._told[queue] = []
