"""The jobs of the model: where each one is, and how it comes to another place."""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bullpen.clock import Clock
from bullpen.errors import JobMissing, QueueMissing, WrongState
from bullpen.job.entries import JournalEntry
from bullpen.job.names import is_generated_id
from bullpen.job.record import JobRecord, JobRef, Lease
from bullpen.job.schedule import Schedule
from bullpen.job.spec import NewJob
from bullpen.job.state import FINISHED, READY, State
from bullpen.stores.base import FOREVER_MS, ID_MEMORY_MS, Counts
from bullpen.testing.machine.model.limits import ModelLimits, ModelRing


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
    journal: dict[int, JournalEntry] = dataclasses.field(default_factory=dict)
    mailbox: list[tuple[str, bytes]] = dataclasses.field(default_factory=list)
    delay_ms: int = 0
    """Of one that waits for its children: how long it is to wait after them."""

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


@dataclasses.dataclass
class ModelSchedule:
    schedule: Schedule
    last_ms: int
    """While it rests, the store's own choice: told by the machine."""
    tick: str
    """The id of its newest tick; empty while it was put to rest."""
    count: int
    ticks: int = 0
    skipped: int = 0
    paused: bool = False
    ended: bool = False
    running: str = ""


class Jobs:
    def __init__(self, clock: Clock, *, detects_dead_processes: bool) -> None:
        self.jobs: dict[JobRef, ModelJob] = {}
        self.queues: set[str] = set()
        self.paused: set[str] = set()
        self.subjects: dict[tuple[str, str], Subject] = {}
        self.remembered: dict[JobRef, int] = {}
        self.schedules: dict[tuple[str, str], ModelSchedule] = {}
        self.process = 0
        self.dead: set[int] = set()
        self.given_ids: dict[str, str] = {}
        """Told by the machine: the ids that the store gave, by the names of the jobs, which are unique."""
        self.seen: Mapping[JobRef, int] = {}
        """Told by the machine: the jobs that the store has after the verb, numbered in its own order."""
        self.limits: dict[str, ModelLimits] = {}
        self.rings: dict[str, ModelRing] = {}
        self._clock = clock
        self._detects_dead_processes = detects_dead_processes
        self._last_place = 0
        self._placed: dict[str, list[ModelJob]] = {}

    @property
    def now_ms(self) -> int:
        return self._clock.now_ms()

    # ── looking ──────────────────────────────────────────────────────────────────────────

    def line(self, queue: str | None, *states: State) -> list[ModelJob]:
        """The jobs in these states in the order in which they will run, or did end."""
        return sorted(
            (job for job in self.jobs.values() if job.state in states and queue in (None, job.ref.queue)), key=_order
        )

    def ring(self, queue: str) -> ModelRing:
        return self.rings.setdefault(queue, ModelRing())

    def counts(self, queue: str) -> Counts:
        self._check_queue(queue)
        numbers = {state.replace("-", "_"): len(self.line(queue, state)) for state in State}
        return Counts(**numbers, paused=queue in self.paused)

    def oldest_waiting_ms(self, queue: str) -> int | None:
        return next((job.since_ms for job in self.line(queue, *READY)), None)

    def held(self, lease: Lease) -> ModelJob | None:
        job = self.jobs.get(lease.ref)
        return job if job is not None and job.lease == lease else None

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

    def _is_next_tick(self, job: ModelJob) -> bool:
        """Whether a schedule would stop without this job."""
        names = {known.tick for (queue, _), known in self.schedules.items() if queue == job.ref.queue}
        return job.state not in FINISHED and job.ref.id in names

    def _is_late(self, job: ModelJob) -> bool:
        return job.start_by_ms is not None and job.start_by_ms < self.now_ms

    # ── moving ───────────────────────────────────────────────────────────────────────────

    def _move(self, job: ModelJob, state: State, **fields: Any) -> None:
        job.change(**{"state": state, "cancelling": None, "note": None, "parked": None, "run_at_ms": None, **fields})
        job.lease = None
        job.since_ms = self.now_ms

    def _to_line(self, job: ModelJob, *, head: bool = False) -> None:
        if job.state in FINISHED:
            job.change(started_ms=None)
        self._move(job, ready_state(job.record.priority))
        job.place = -self._next_place() if head else self._next_place()
        self._placed.setdefault("head" if head else "end", []).append(job)

    def _delay(self, job: ModelJob, delay_ms: int, note: str = "") -> None:
        self._move(job, State.DELAYED, run_at_ms=self.now_ms + delay_ms, note=note or None)
        job.place = self._next_place()
        self._placed.setdefault("delayed", []).append(job)

    @contextlib.contextmanager
    def _in_the_store_s_order(self) -> Iterator[None]:
        """Many jobs are moved at once: those that came to one place stand there as the store has put them."""
        self._placed.clear()
        yield
        for jobs in self._placed.values():
            there = {job for job in jobs if job.state in (*READY, State.DELAYED) and job.ref in self.seen}
            places = sorted(job.place for job in there)
            for job, place in zip(sorted(there, key=lambda job: self.seen[job.ref]), places, strict=True):
                job.place = place

    def _forget(self, jobs: Sequence[ModelJob], *, remember_ids: bool) -> None:
        for job in jobs:
            del self.jobs[job.ref]
            if remember_ids and not is_generated_id(job.ref.id) and job.record.tick is None:
                self.remembered[job.ref] = job.record.added_ms + ID_MEMORY_MS

    def _next_place(self) -> int:
        self._last_place += 1
        return self._last_place


def ready_state(priority: int) -> State:
    return State.PRIORITIZED if priority else State.WAITING


def due_ms(job: ModelJob) -> int:
    """What only a signal wakes stands behind all others."""
    return FOREVER_MS if job.record.run_at_ms is None else job.record.run_at_ms


def _order(job: ModelJob) -> tuple[int, ...]:
    if job.state in FINISHED:
        return job.since_ms, job.ended
    if job.state == State.DELAYED:
        return due_ms(job), job.place
    if job.state == State.WAITING_CHILDREN:
        return job.since_ms, 0
    return job.record.spec.group is not None, job.record.priority, job.place
