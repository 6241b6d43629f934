"""What a store promises, as a small model: dictionaries, one job at a time, no index, no disk.

It has the verbs of `Store` without `async` and without requests; `machine.py` puts the same
questions to both. Some things are a store's own choice, and the model is told of them before
it is asked: the ids that the store gives, and how it orders jobs that ended in the same
millisecond.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, assert_never

import msgspec

from bullpen.clock import Clock
from bullpen.errors import JobMissing, QueueMissing, WrongState
from bullpen.job.names import is_generated_id
from bullpen.job.record import CrashKind, CrashLimits, Failure, FailureKind, JobRecord, JobRef, Lease
from bullpen.job.spec import Dedup, NewJob
from bullpen.job.state import FINISHED, READY, State
from bullpen.job.verdicts import Cancelled, Completed, Failed, Postponed, Released, Retry, Settlement, Verdict
from bullpen.stores.base import ID_MEMORY_MS, Added, AddOutcome, Cancellation, Counts, Renewal, SettleOutcome


@dataclasses.dataclass(eq=False)
class ModelJob:
    record: JobRecord
    place: int = 0
    """In its line: the smaller, the sooner."""
    since_ms: int = 0
    """When it entered its state."""
    start_by_ms: int | None = None
    ended: int = 0
    """How the store orders jobs that ended in the same millisecond."""
    lease: Lease | None = None
    lease_until_ms: int = 0
    process: int = 0
    """Which process claimed it last."""
    log_lines: int = 0

    @property
    def ref(self) -> JobRef:
        return self.record.ref

    @property
    def state(self) -> State:
        return self.record.state

    def change(self, **fields: Any) -> None:
        self.record = msgspec.structs.replace(self.record, **fields)


@dataclasses.dataclass
class Subject:
    """What a deduplication id stands for."""

    owner: ModelJob
    until_ms: int | None
    kept: NewJob | None = None


class Model:
    def __init__(self, clock: Clock, *, detects_dead_processes: bool) -> None:
        self.jobs: dict[JobRef, ModelJob] = {}
        self.queues: set[str] = set()
        self.paused: set[str] = set()
        self.subjects: dict[tuple[str, str], Subject] = {}
        self.remembered: dict[JobRef, int] = {}
        self.process = 0
        self.dead: set[int] = set()
        self.given_ids: dict[str, str] = {}
        """Told by the machine: the ids that the store gave, by the names of the jobs, which are unique."""
        self.seen: Mapping[JobRef, int] = {}
        """Told by the machine: the jobs that the store has after the verb, numbered in its own order."""
        self._clock = clock
        self._detects_dead_processes = detects_dead_processes
        self._last_place = 0

    @property
    def now_ms(self) -> int:
        return self._clock.now_ms()

    # ── adding ───────────────────────────────────────────────────────────────────────────

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

    # ── working ──────────────────────────────────────────────────────────────────────────

    def claim(self, wants: Mapping[str, int], *, worker: str, lease_ms: int) -> tuple[list[ModelJob], int | None]:
        """The jobs in the order in which they are given out, and when the next delayed one is due."""
        taken: list[ModelJob] = []
        due: list[int] = []
        for queue, slots in wants.items():
            for job in self.line(queue, State.DELAYED):
                if _due_ms(job) <= self.now_ms:
                    self._to_line(job)
            due += [_due_ms(job) for job in self.line(queue, State.DELAYED)]
            if queue not in self.paused:
                taken += self._take(queue, slots, worker, lease_ms)
        return taken, min(due, default=None)

    def _take(self, queue: str, slots: int, worker: str, lease_ms: int) -> list[ModelJob]:
        taken: list[ModelJob] = []
        while len(taken) < slots and (line := self.line(queue, State.WAITING, State.PRIORITIZED)):
            job = line[0]
            if self._is_late(job):
                self._expire(job)
                continue
            job.change(state=State.ACTIVE, epoch=job.record.epoch + 1, started_ms=self.now_ms, worker=worker)
            job.lease_until_ms = self.now_ms + lease_ms
            job.start_by_ms = None
            job.process = self.process
            taken.append(job)
        return taken

    def settle(self, settlements: Iterable[Settlement]) -> list[SettleOutcome]:
        outcomes = []
        for settlement in settlements:
            if (job := self.held(settlement.lease)) is None:
                outcomes.append(SettleOutcome.LEASE_LOST)
            else:
                self._carry_out(job, settlement.verdict)
                outcomes.append(SettleOutcome.SETTLED)
        return outcomes

    def held(self, lease: Lease) -> ModelJob | None:
        job = self.jobs.get(lease.ref)
        return job if job is not None and job.lease == lease else None

    def _carry_out(self, job: ModelJob, verdict: Verdict) -> None:
        if isinstance(verdict, Released) and verdict.crash is not None:
            self._count_crash(job, verdict.crash)
        if isinstance(verdict, Retry | Postponed | Released) and job.record.cancelling is not None:
            self._fail(job, Failure(job.record.cancelling, FailureKind.CANCELLED))
            return
        if not isinstance(verdict, Postponed | Released):
            job.change(attempts_made=job.record.attempts_made + 1)
        match verdict:
            case Completed(result, then):
                job.change(result=result)
                self._finish(job, State.COMPLETED, then)
            case Retry(failure, delay_ms):
                job.change(failure=failure)
                if delay_ms:
                    self._delay(job, delay_ms)
                else:
                    self._to_line(job, head=job.record.spec.lifo)
            case Failed(failure):
                self._fail(job, failure)
            case Cancelled(reason):
                self._fail(job, Failure(reason, FailureKind.CANCELLED))
            case Postponed(delay_ms, note):
                self._delay(job, delay_ms, note)
            case Released():
                self._to_line(job, head=True)
            case unknown:
                assert_never(unknown)

    def renew(self, leases: Iterable[Lease], *, lease_ms: int) -> list[Renewal]:
        answers = []
        for lease in leases:
            if (job := self.held(lease)) is None:
                answers.append(Renewal.LOST)
                continue
            job.lease_until_ms = self.now_ms + lease_ms
            answers.append(Renewal.HELD if job.record.cancelling is None else Renewal.CANCELLING)
        return answers

    def abandon(self, leases: Sequence[Lease]) -> int:
        held = [job for lease in leases if (job := self.held(lease)) is not None]
        for job in reversed(held):
            self._carry_out(job, Released())
        return len(held)

    def notices(self, worker: str) -> set[tuple[Lease | None, str]]:
        return {
            (job.lease, job.record.cancelling)
            for job in self.jobs.values()
            if job.record.cancelling is not None and job.record.worker == worker
        }

    def is_runnable(self, queue: str) -> bool:
        due = any(_due_ms(job) <= self.now_ms for job in self.line(queue, State.DELAYED))
        return queue not in self.paused and (due or bool(self.line(queue, *READY)))

    # ── rescuing ─────────────────────────────────────────────────────────────────────────

    def rescue(self, queues: Sequence[str], *, limits: CrashLimits) -> tuple[set[JobRef], set[JobRef]]:
        """The recovered and the failed."""
        crashed: list[tuple[ModelJob, CrashKind]] = []
        for job in self.line(None, State.ACTIVE):
            if self._detects_dead_processes and job.process in self.dead:
                crashed.append((job, CrashKind.KILLED))
            elif job.ref.queue in queues and job.lease_until_ms < self.now_ms:
                crashed.append((job, CrashKind.LOST_HEARTBEAT))
        answer = self._take_back(crashed, limits)
        for job in [job for queue in queues for job in self.line(queue, *READY, State.DELAYED)]:
            if self._is_late(job):
                self._expire(job)
        return answer

    def report_crash(self, worker: str, kind: CrashKind, *, limits: CrashLimits) -> tuple[set[JobRef], set[JobRef]]:
        held = [job for job in self.line(None, State.ACTIVE) if job.record.worker == worker]
        return self._take_back([(job, kind) for job in held], limits)

    def _take_back(
        self, crashed: list[tuple[ModelJob, CrashKind]], limits: CrashLimits
    ) -> tuple[set[JobRef], set[JobRef]]:
        """All go to the heads of their lines; in which order they stand there is the store's choice."""
        recovered: set[JobRef] = set()
        failed: set[JobRef] = set()
        for job, kind in sorted(crashed, key=lambda each: self.seen.get(each[0].ref, -1), reverse=True):
            self._carry_out(job, Released(kind))
            if job.state in READY and limits.exceeded_by(job.record.crashes):
                self._fail(job, Failure("", FailureKind.STALLED))
            (recovered if job.state in READY else failed).add(job.ref)
        return recovered, failed

    def _count_crash(self, job: ModelJob, kind: CrashKind) -> None:
        job.change(crashes={**job.record.crashes, kind: job.record.crashes.get(kind, 0) + 1})

    # ── steering one job ─────────────────────────────────────────────────────────────────

    def cancel(self, ref: JobRef, *, reason: str) -> Cancellation:
        job = self._job(ref, not_in=FINISHED)
        if job.state == State.ACTIVE:
            job.change(cancelling=reason)
            return Cancellation.CANCELLING
        self._fail(job, Failure(reason, FailureKind.CANCELLED))
        return Cancellation.CANCELLED

    def retry(self, ref: JobRef) -> None:
        self._retry(self._job(ref, only_in=FINISHED))

    def retry_all(self, queue: str, state: State, *, limit: int) -> int:
        self._check_queue(queue)
        if state not in FINISHED:
            raise WrongState(state)
        jobs = self.line(queue, state)[:limit]
        for job in jobs:
            self._retry(job)
        return len(jobs)

    def _retry(self, job: ModelJob) -> None:
        job.change(attempts_made=0, crashes={}, finished_ms=None, result=None, failure=None, progress=None)
        self._to_line(job)
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
        job.place = self._next_place()
        if job.state in READY:
            job.change(state=_ready_state(priority))

    def remove(self, ref: JobRef) -> None:
        self._remove([self._job(ref, not_in={State.ACTIVE})], remember_ids=False)

    def update_data(self, ref: JobRef, data: bytes) -> None:
        self._job(ref).change(data=data)

    def set_progress(self, ref: JobRef, progress: bytes) -> None:
        self._job(ref).change(progress=progress)

    def add_log(self, ref: JobRef, lines: Sequence[str]) -> int:
        return self._log(self._job(ref), len(lines))

    def _log(self, job: ModelJob, lines: int) -> int:
        job.log_lines = min(job.log_lines + lines, job.record.spec.keep_logs)
        return job.log_lines

    # ── steering a queue ─────────────────────────────────────────────────────────────────

    def pause(self, queue: str) -> None:
        self.queues.add(queue)
        self.paused.add(queue)

    def resume(self, queue: str) -> None:
        self._check_queue(queue)
        self.paused.discard(queue)

    def drain(self, queue: str, *, delayed: bool) -> int:
        self._check_queue(queue)
        jobs = self.line(queue, *READY, *([State.DELAYED] if delayed else []))
        self._remove(jobs, remember_ids=True)
        return len(jobs)

    def clean(self, queue: str, state: State, *, older_than_ms: int, limit: int) -> int:
        self._check_queue(queue)
        if state == State.ACTIVE:
            raise WrongState(state)
        old = [job for job in self.line(queue, state) if job.since_ms <= self.now_ms - older_than_ms]
        # The oldest go; which of those that are equally old is the store's choice: the ones it no longer has.
        old.sort(key=lambda job: (job.since_ms, job.ref in self.seen))
        self._remove(old[:limit], remember_ids=True)
        return len(old[:limit])

    def obliterate(self, queue: str, *, force: bool) -> None:
        self._check_queue(queue)
        if self.line(queue, State.ACTIVE) and not force:
            raise WrongState(queue)
        self.queues.discard(queue)
        self.paused.discard(queue)
        self.jobs = {ref: job for ref, job in self.jobs.items() if ref.queue != queue}
        self.subjects = {key: subject for key, subject in self.subjects.items() if key[0] != queue}
        self.remembered = {ref: until for ref, until in self.remembered.items() if ref.queue != queue}

    # ── looking ──────────────────────────────────────────────────────────────────────────

    def line(self, queue: str | None, *states: State) -> list[ModelJob]:
        """The jobs in these states in the order in which they will run, or did end."""
        return sorted(
            (job for job in self.jobs.values() if job.state in states and queue in (None, job.ref.queue)), key=_order
        )

    def counts(self, queue: str) -> Counts:
        self._check_queue(queue)
        numbers = {state.replace("-", "_"): len(self.line(queue, state)) for state in State}
        return Counts(**numbers, paused=queue in self.paused)

    def oldest_waiting_ms(self, queue: str) -> int | None:
        return next((job.since_ms for job in self.line(queue, *READY)), None)

    def _check_queue(self, queue: str) -> None:
        if queue not in self.queues:
            raise QueueMissing(queue)

    def _job(self, ref: JobRef, *, only_in: Iterable[State] = tuple(State), not_in: Iterable[State] = ()) -> ModelJob:
        job = self.jobs.get(ref)
        if job is None:
            raise JobMissing(ref)
        if job.state not in only_in or job.state in not_in:
            raise WrongState(ref)
        return job

    # ── moving ───────────────────────────────────────────────────────────────────────────

    def _move(self, job: ModelJob, state: State, **fields: Any) -> None:
        job.change(**{"state": state, "cancelling": None, "note": None, "run_at_ms": None, **fields})
        job.lease = None
        job.since_ms = self.now_ms

    def _to_line(self, job: ModelJob, *, head: bool = False) -> None:
        if job.state in FINISHED:
            job.change(started_ms=None)
        self._move(job, _ready_state(job.record.priority))
        job.place = -self._next_place() if head else self._next_place()

    def _delay(self, job: ModelJob, delay_ms: int, note: str = "") -> None:
        self._move(job, State.DELAYED, run_at_ms=self.now_ms + delay_ms, note=note or None)
        job.place = self._next_place()

    def _is_late(self, job: ModelJob) -> bool:
        return job.start_by_ms is not None and job.start_by_ms < self.now_ms

    def _expire(self, job: ModelJob) -> None:
        self._fail(job, Failure("", FailureKind.EXPIRED))

    def _fail(self, job: ModelJob, failure: Failure) -> None:
        job.change(failure=failure)
        self._finish(job, State.FAILED)

    def _finish(self, job: ModelJob, state: State, then: Sequence[NewJob] = ()) -> None:
        self._move(job, state, finished_ms=self.now_ms)
        job.start_by_ms = None
        job.ended = self.seen.get(job.ref, -1)
        self._free_subject(job, removed=False)
        self.add(then)
        self._retain(job)

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

    def _forget(self, jobs: Sequence[ModelJob], *, remember_ids: bool) -> None:
        for job in jobs:
            del self.jobs[job.ref]
            if remember_ids and not is_generated_id(job.ref.id):
                self.remembered[job.ref] = job.record.added_ms + ID_MEMORY_MS

    def _remove(self, jobs: Sequence[ModelJob], *, remember_ids: bool) -> None:
        self._forget(jobs, remember_ids=remember_ids)
        for job in jobs:
            if job.state not in FINISHED:
                self._free_subject(job, removed=True)

    def _next_place(self) -> int:
        self._last_place += 1
        return self._last_place


def _ready_state(priority: int) -> State:
    return State.PRIORITIZED if priority else State.WAITING


def _due_ms(job: ModelJob) -> int:
    assert job.record.run_at_ms is not None
    return job.record.run_at_ms


def _order(job: ModelJob) -> tuple[int, int]:
    if job.state in FINISHED:
        return job.since_ms, job.ended
    if job.state == State.DELAYED:
        return _due_ms(job), job.place
    return job.record.priority, job.place
