"""What people ask for: of one job, and of a queue."""

from collections.abc import Sequence

from bullpen.errors import WrongState
from bullpen.job.record import Failure, FailureKind, JobRef
from bullpen.job.state import FINISHED, READY, State
from bullpen.stores.base import Cancellation
from bullpen.testing.machine.model.ending import Ending
from bullpen.testing.machine.model.jobs import ModelJob, ready_state


class Steering(Ending):
    # ── one job ──────────────────────────────────────────────────────────────────────────

    def cancel(self, ref: JobRef, *, reason: str) -> Cancellation:
        job = self._job(ref, not_in=FINISHED)
        if job.state == State.ACTIVE:
            job.change(cancelling=reason)
            return Cancellation.CANCELLING
        self._fail(job, Failure(reason, FailureKind.CANCELLED))
        return Cancellation.CANCELLED

    def retry(self, ref: JobRef) -> None:
        self._retry(self._job(ref, only_in=FINISHED))

    def _retry(self, job: ModelJob) -> None:
        job.change(attempts_made=0, crashes={}, finished_ms=None, result=None, failure=None, progress=None)
        if self._has_pending(job):
            job.change(started_ms=None)
            self._move(job, State.WAITING_CHILDREN)
        else:
            self._to_line(job)
        self._child_back(job)
        self._log(job, 1)

    def promote(self, ref: JobRef) -> None:
        self._to_line(self._job(ref, only_in={State.DELAYED}))

    def change_delay(self, ref: JobRef, delay_ms: int) -> None:
        job = self._job(ref, only_in={State.DELAYED})
        job.change(run_at_ms=self.now_ms + delay_ms)
        job.place = self._next_place()

    def change_priority(self, ref: JobRef, priority: int) -> None:
        job = self._job(ref, not_in=FINISHED)
        job.change(priority=priority)
        if job.state in READY:
            job.place = self._next_place()
            job.change(state=ready_state(priority))

    def remove(self, ref: JobRef) -> None:
        job = self._job(ref, not_in={State.ACTIVE})
        if self._is_next_tick(job):
            raise WrongState(ref)
        family = self._family(job)
        if any(job.state == State.ACTIVE for job in family):
            raise WrongState(ref)
        with self._in_the_store_s_order():
            self._remove(family, remember_ids=False)

    def update_data(self, ref: JobRef, data: bytes) -> None:
        self._job(ref).change(data=data)

    def set_progress(self, ref: JobRef, progress: bytes) -> None:
        self._job(ref).change(progress=progress)

    def add_log(self, ref: JobRef, lines: Sequence[str]) -> int:
        return self._log(self._job(ref), len(lines))

    def _log(self, job: ModelJob, lines: int) -> int:
        job.log_lines = min(job.log_lines + lines, job.record.spec.keep_logs)
        return job.log_lines

    # ── a queue ──────────────────────────────────────────────────────────────────────────

    def pause(self, queue: str) -> None:
        self.queues.add(queue)
        self.paused.add(queue)

    def resume(self, queue: str) -> None:
        self._check_queue(queue)
        self.paused.discard(queue)

    def retry_all(self, queue: str, state: State, *, limit: int) -> int:
        self._check_queue(queue)
        if state not in FINISHED:
            raise WrongState(state)
        jobs = self.line(queue, state)[:limit]
        for job in jobs:
            self._retry(job)
        return len(jobs)

    def drain(self, queue: str, *, delayed: bool) -> int:
        self._check_queue(queue)
        line = self.line(queue, *READY, *([State.DELAYED] if delayed else []))
        jobs = [job for job in line if not self._is_next_tick(job)]
        with self._in_the_store_s_order():
            self._remove(jobs, remember_ids=True)
        return len(jobs)

    def clean(self, queue: str, state: State, *, older_than_ms: int, limit: int) -> int:
        self._check_queue(queue)
        if state == State.ACTIVE:
            raise WrongState(state)
        line = [job for job in self.line(queue, state) if not self._is_next_tick(job)]
        old = [job for job in line if job.since_ms <= self.now_ms - older_than_ms]
        # Which of them go is the store's choice, the first in line or the oldest: those that it no longer has.
        old.sort(key=lambda job: (job.ref in self.seen, job.since_ms))
        with self._in_the_store_s_order():
            self._remove(old[:limit], remember_ids=True)
        return len(old[:limit])

    def obliterate(self, queue: str, *, force: bool) -> None:
        self._check_queue(queue)
        if self.line(queue, State.ACTIVE) and not force:
            raise WrongState(queue)
        with self._in_the_store_s_order():
            for job in self.line(queue, *State):
                self._child_gone(job, not_in=queue)
        self.bonds = {parent: known for parent, known in self.bonds.items() if parent.ref.queue != queue}
        self.queues.discard(queue)
        self.paused.discard(queue)
        self.limits.pop(queue, None)
        self.rings.pop(queue, None)
        self.jobs = {ref: job for ref, job in self.jobs.items() if ref.queue != queue}
        self.subjects = {key: subject for key, subject in self.subjects.items() if key[0] != queue}
        self.schedules = {key: known for key, known in self.schedules.items() if key[0] != queue}
        self.remembered = {ref: until for ref, until in self.remembered.items() if ref.queue != queue}
