"""How jobs come to be: by an add, or in place of another."""

from collections.abc import Sequence

from bullpen.errors import LeaseLost, WrongState
from bullpen.job.record import JobRecord, JobRef, Lease
from bullpen.job.spec import Dedup, NewJob
from bullpen.job.state import State
from bullpen.stores.base import Added, AddOutcome
from bullpen.testing.machine.model.families import Families
from bullpen.testing.machine.model.jobs import ModelJob, Subject


class Adding(Families):
    def add(self, jobs: Sequence[NewJob]) -> list[Added]:
        if any(job.children for job in jobs):
            for job in jobs:
                self._check_free(job, None, [])
        self._check_sizes(jobs)
        return self._add_all(jobs, None)

    def add_children(self, lease: Lease, jobs: Sequence[NewJob]) -> list[Added]:
        if (parent := self.held(lease)) is None:
            raise LeaseLost(lease.ref)
        for job in jobs:
            self._check_free(job, parent, self._ancestors(parent))
        self._check_sizes(jobs)
        return self._add_all(jobs, parent)

    def _check_sizes(self, jobs: Sequence[NewJob]) -> None:
        """GroupFull if there is no room for all that is new; grouping.py knows."""
        raise NotImplementedError

    def _check_free(
        self, new: NewJob, parent: ModelJob | None, ancestors: list[ModelJob], *, child: bool = False
    ) -> None:
        """A child that is there must be nobody's, or this parent's own, and none of its ancestors."""
        ref = JobRef(new.queue, new.id or "")
        known = self.jobs.get(ref)
        if known is not None:
            belongs_to = self._parent(known)
            if known in ancestors:
                raise WrongState(ref)
            if (child or parent is not None) and belongs_to is not None and (child or belongs_to is not parent):
                raise WrongState(ref)
        elif not self._is_remembered(ref):
            for below in new.children:
                self._check_free(below, parent, ancestors, child=True)

    def _add_all(self, jobs: Sequence[NewJob], parent: ModelJob | None) -> list[Added]:
        parents: list[ModelJob] = []
        answers = [self._add(new, parent, parents) for new in jobs]
        for one in parents:
            self._release_if_ready(one)
        return answers

    def _add(self, new: NewJob, parent: ModelJob | None, parents: list[ModelJob]) -> Added:
        self.queues.add(new.queue)
        ref = JobRef(new.queue, new.id or self.given_ids.get(new.name, f"?{new.name}"))
        if new.id is not None and (ref in self.jobs or self._is_remembered(ref)):
            if parent is not None and ref in self.jobs and self._parent(self.jobs[ref]) is None:
                self._bind(parent, self.jobs[ref], new.spec.on_failure)
            return Added(new.id, AddOutcome.DUPLICATE)
        if new.spec.dedup is not None:
            return self._deduplicate(ref, new, new.spec.dedup)
        job = self._create(ref, new)
        if parent is not None:
            self._bind(parent, job, new.spec.on_failure)
        if new.children:
            parents.append(job)
        return Added(ref.id, AddOutcome.ADDED, tuple(self._add(child, job, parents) for child in new.children))

    def _is_remembered(self, ref: JobRef) -> bool:
        return self.remembered.get(ref, 0) > self.now_ms

    def _create(self, ref: JobRef, new: NewJob) -> ModelJob:
        assert ref not in self.jobs, f"the id of {ref} was given twice"
        record = JobRecord(ref, new.name, new.data, State.WAITING, new.spec, new.spec.priority, added_ms=self.now_ms)
        job = self.jobs[ref] = ModelJob(record, start_by_ms=new.spec.start_by_ms)
        if new.children:
            job.delay_ms = new.spec.delay_ms
            self._move(job, State.WAITING_CHILDREN)
        elif new.spec.delay_ms:
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
            self._add_all([subject.kept], None)
