"""How jobs come to be: by an add, or in place of another."""

from collections.abc import Iterable

from bullpen.job.record import JobRecord, JobRef
from bullpen.job.spec import Dedup, NewJob
from bullpen.job.state import State
from bullpen.stores.base import Added, AddOutcome
from bullpen.testing.machine.model.jobs import Jobs, ModelJob, Subject


class Adding(Jobs):
    def add(self, jobs: Iterable[NewJob]) -> list[Added]:
        return [self._add(new) for new in jobs]

    def _add(self, new: NewJob) -> Added:
        self.queues.add(new.queue)
        ref = JobRef(new.queue, new.id or self.given_ids.get(new.name, f"?{new.name}"))
        if new.id is not None and (ref in self.jobs or self.remembered.get(ref, 0) > self.now_ms):
            return Added(new.id, AddOutcome.DUPLICATE)
        if new.spec.dedup is not None:
            return self._deduplicate(ref, new, new.spec.dedup)
        self._create(ref, new)
        return Added(ref.id, AddOutcome.ADDED)

    def _create(self, ref: JobRef, new: NewJob) -> ModelJob:
        assert ref not in self.jobs, f"the id of {ref} was given twice"
        record = JobRecord(ref, new.name, new.data, State.WAITING, new.spec, new.spec.priority, added_ms=self.now_ms)
        job = self.jobs[ref] = ModelJob(record, start_by_ms=new.spec.start_by_ms)
        if new.spec.delay_ms:
            self._delay(job, new.spec.delay_ms)
        else:
            self._to_line(job, head=new.spec.lifo)
        return job

    def _deduplicate(self, ref: JobRef, new: NewJob, dedup: Dedup) -> Added:
        until_ms = None if dedup.ttl_ms is None else self.now_ms + dedup.ttl_ms
        subject = self.subjects.get((ref.queue, dedup.id))
        if subject is None or (subject.until_ms is not None and subject.until_ms <= self.now_ms):
            self.subjects[ref.queue, dedup.id] = Subject(self._create(ref, new), until_ms)
            return Added(ref.id, AddOutcome.ADDED)
        owner = subject.owner
        if dedup.extend:
            subject.until_ms = until_ms
        state = owner.state if self.jobs.get(owner.ref) is owner else None
        if state == State.DELAYED and owner.record.parked is not None:
            state = State.ACTIVE  # it is in the middle of its work
        if dedup.replace and state == State.DELAYED:
            self._forget([owner], remember_ids=True)
            subject.owner = self._create(ref, new)
            return Added(ref.id, AddOutcome.REPLACED)
        if dedup.keep_last_if_active and state == State.ACTIVE:
            subject.kept = new
            return Added(owner.ref.id, AddOutcome.KEPT_LAST)
        return Added(owner.ref.id, AddOutcome.DEDUPLICATED)

    def _free_subject(self, job: ModelJob, *, removed: bool) -> None:
        """The job ended or was removed: whoever was kept for this moment is added."""
        if job.record.spec.dedup is None:
            return
        key = job.ref.queue, job.record.spec.dedup.id
        subject = self.subjects.get(key)
        if subject is None or subject.owner is not job or (subject.until_ms is not None and not removed):
            return
        del self.subjects[key]
        if subject.kept is not None:
            self._add(subject.kept)
