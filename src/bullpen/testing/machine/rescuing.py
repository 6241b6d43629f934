"""Rules of time, of the end of processes, and of the rescuer that comes after."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from bullpen.job.record import CrashKind, CrashLimits
from bullpen.testing.machine import drawing
from bullpen.testing.machine.checks import Checks


class Rescuing(Checks):
    @rule(ms=st.sampled_from([drawing.TICK_MS, 400_000, 400_000, 2_400_000, 12_400_000, 12_400_000, 90_000_000]))
    def let_time_pass(self, ms: int) -> None:
        self._run(self._harness.advance(ms))
        self._look()

    @rule(killed=st.booleans())
    def end_and_start_anew(self, killed: bool) -> None:
        if killed:
            self._crash()
        else:
            self._run(self._store.close())
            self._open()
        self._look()

    @precondition(lambda self: self._model.jobs)
    @rule(queues=st.lists(drawing.queues, min_size=1, unique=True), limits=drawing.limits)
    def rescue(self, queues: list[str], limits: CrashLimits) -> None:
        self._tick()
        rescued = self._run(self._store.rescue(queues, limits=limits))
        self._look()
        assert (set(rescued.recovered), set(rescued.failed)) == self._model.rescue(queues, limits=limits)

    @precondition(lambda self: self._leases)
    @rule(worker=drawing.workers, kind=drawing.crash_kinds, limits=drawing.limits)
    def report_crash(self, worker: str, kind: CrashKind, limits: CrashLimits) -> None:
        self._tick()
        rescued = self._run(self._store.report_crash(worker, kind, limits=limits))
        self._look()
        expected = self._model.report_crash(worker, kind, limits=limits)
        assert (set(rescued.recovered), set(rescued.failed)) == expected
