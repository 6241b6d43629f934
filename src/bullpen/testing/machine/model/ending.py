"""How jobs end, which of them are kept, and how they are removed."""

from collections.abc import Sequence

from bullpen.job.record import Failure, FailureKind
from bullpen.job.spec import NewJob
from bullpen.job.state import FINISHED, State
from bullpen.testing.machine.model.adding import Adding
from bullpen.testing.machine.model.jobs import ModelJob


class Ending(Adding):
    def _finish(self, job: ModelJob, state: State, then: Sequence[NewJob] = ()) -> None:
        self._move(job, state, finished_ms=self.now_ms, doomed=None)
        job.start_by_ms = None
        job.delay_ms = 0
        job.ended = self.seen.get(job.ref, -1)
        self._free_subject(job, removed=False)
        self._child_ended(job)
        self._add_all(then, None)
        self._retain(job)

    def _fail(self, job: ModelJob, failure: Failure) -> None:
        job.change(failure=failure)
        self._finish(job, State.FAILED)

    def _expire(self, job: ModelJob) -> None:
        self._fail(job, Failure("", FailureKind.EXPIRED))

    def _retain(self, job: ModelJob) -> None:
        spec = job.record.spec
        keep = spec.keep_completed if job.state == State.COMPLETED else spec.keep_failed
        if keep.count == 0:
            self._remove([job], remember_ids=True)
            return
        kept = self.line(job.ref.queue, job.state)
        if keep.age_ms is not None:
            self._remove([old for old in kept if old.since_ms <= self.now_ms - keep.age_ms], remember_ids=True)
        if keep.count is not None:
            kept = self.line(job.ref.queue, job.state)
            self._remove(kept[: max(0, len(kept) - keep.count)], remember_ids=True)

    def _remove(self, jobs: Sequence[ModelJob], *, remember_ids: bool) -> None:
        self._forget(jobs, remember_ids=remember_ids)
        for job in jobs:
            self.bonds.pop(job, None)
        for job in jobs:
            if job.state not in FINISHED:
                self._free_subject(job, removed=True)
            self._child_gone(job)
