"""The contract of a store: every verb, with its promise.

A store speaks in life-cycle verbs and typed values; no key, SQL, tuple or code crosses it.
`bullpen.testing.conformance` has a test for each promise, and runs on any store.

**Batches.** Hot verbs take many and answer one by one, in the order asked. A batch is atomic
as a unit: after a crash either all of it happened or nothing. A settlement that is refused
(its lease is lost) does not hinder the others.

**Requests.** A lost answer is normal: the caller cannot know whether its call took effect.
Every mutating hot verb carries a `request`, any unique text. The same text again within the
lease time (a minute at least) does nothing and gets the first answer again, with those of its
jobs that are still held under it.

**Leases.** A claim gives a lease with a token and an epoch. The store refuses whoever does
not hold the current token. A lease that is not renewed in time stands until `rescue` takes the
job away.

**Time** is the store's: its `clock`, in wall milliseconds.

**Data**, results and progress are JSON in UTF-8, as bytes.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from bullpen.clock import Clock
from bullpen.job.entries import JournalEntry, JournalPage
from bullpen.job.events import Event
from bullpen.job.limits import GroupInfo, GroupLimits, GroupPage, QueueLimits, QueueStanding
from bullpen.job.record import ClaimedJob, CrashKind, CrashLimits, JobRecord, JobRef, Lease
from bullpen.job.schedule import Schedule, ScheduleRecord
from bullpen.job.spec import NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Settlement
from bullpen.stores.moving import Cargo, MemoryPage, Move, SavedJob

ID_MEMORY_MS = 86_400_000
"""How long an explicit id is remembered after its add, though its job was pruned."""
REQUEST_MEMORY_MS = 60_000
"""How long the answer to a request is remembered at least."""
FROM_START = ""
"""The cursor before the oldest event that is kept."""
MAX_EVENTS = 10_000
"""How many events a queue's log keeps by default."""
MAX_SIGNALS = 100
"""How many signals may wait for one job."""
FOREVER_MS = 2**41 - 1
"""The due time of a parked job that has none: it stands behind all that have one."""


class StoreFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between stores and may be known above them."""

    name: str
    exchanges_in_flight: int
    """How many exchanges a worker should have under way at once."""
    atomic_across_queues: bool = True
    detects_dead_processes: bool = False
    """Whether a killed process is noticed before its leases run out."""


class AddOutcome(StrEnum):
    ADDED = "added"
    DUPLICATE = "duplicate"
    """The explicit id is taken, or remembered: nothing changed."""
    DEDUPLICATED = "deduplicated"
    """Another job stands for the same subject: nothing was added."""
    REPLACED = "replaced"
    """The job took the place of a delayed one."""
    KEPT_LAST = "kept-last"
    """The job will be added when the running one ends."""
    BUFFERED = "buffered"
    """Not a store's answer: the store is away and the job waits in the producer's buffer."""


class Added(msgspec.Struct, frozen=True):
    id: str
    """Of the new job, or of the one that stands for it."""
    outcome: AddOutcome
    children: tuple["Added", ...] = ()
    """The same of each child, in their order; none if the job itself is a duplicate."""


class SettleOutcome(StrEnum):
    SETTLED = "settled"
    LEASE_LOST = "lease-lost"
    """Nothing changed: another holds the job, or it is gone."""
    PENDING_CHILDREN = "pending-children"
    """It could not complete, since it has children that are not done: it waits for them and runs again."""


class ChildState(StrEnum):
    """What a parent knows of one child."""

    PENDING = "pending"
    """The parent waits for it."""
    COMPLETED = "completed"
    IGNORED = "ignored"
    """It failed, and the parent goes on all the same."""
    FAILED = "failed"
    """It failed, and the parent with it."""


class Child(msgspec.Struct, frozen=True):
    """One child of a job, as the parent knows it."""

    ref: JobRef
    state: ChildState
    result: bytes | None = None
    """Of one that completed."""
    reason: str | None = None
    """Why it failed, of one that is ignored."""


class ChildPage(msgspec.Struct, frozen=True):
    children: tuple[Child, ...]
    next_cursor: str | None
    """Give it back for the next page; None at the end."""


class Claimed(msgspec.Struct, frozen=True):
    jobs: tuple[ClaimedJob, ...] = ()
    next_due_ms: int | None = None
    """Wall time at which to look again though nobody woke us: a delayed job is due, or a limit ends."""


class Exchanged(msgspec.Struct, frozen=True):
    settled: tuple[SettleOutcome, ...] = ()
    claimed: Claimed = Claimed()
    failed: tuple[JobRef, ...] = ()
    """Jobs that this trip failed for good by itself: past their start-by time, or handed back once too often."""


class Renewal(StrEnum):
    HELD = "held"
    LOST = "lost"
    CANCELLING = "cancelling"
    """Held, but someone asked for the job to stop."""


class Cancellation(StrEnum):
    CANCELLED = "cancelled"
    """It was waiting and has ended."""
    CANCELLING = "cancelling"
    """It runs; its worker has been told."""


class Delivery(StrEnum):
    """What became of a signal."""

    WOKEN = "woken"
    """The job waited for this signal and is runnable."""
    KEPT = "kept"
    """It lies in the job's mailbox until the job asks for it."""


class Notice(msgspec.Struct, frozen=True):
    """A running job of this worker is to stop."""

    lease: Lease
    reason: str


class Rescued(msgspec.Struct, frozen=True):
    recovered: tuple[JobRef, ...] = ()
    """Back to waiting."""
    failed: tuple[JobRef, ...] = ()
    """Stalled more often than allowed, asked to stop before, or past their start-by time."""


class ScheduleOutcome(StrEnum):
    DONE = "done"
    CHANGED = "changed"
    """Nothing was done: the schedule is no longer as it was seen. Look again."""
    TAKEN = "taken"
    """Nothing was done: there is a job for that time already. Choose a later one."""


class TickStart(msgspec.Struct, frozen=True):
    """What a claimant learns of the schedule whose tick it holds."""

    record: ScheduleRecord | None
    """The schedule as it stands; None if it is gone."""
    running: str | None = None
    """The tick of the same schedule that runs already: this one is not to run beside it."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs of a queue are in each state, and whether it is paused."""

    waiting: int = 0
    prioritized: int = 0
    delayed: int = 0
    active: int = 0
    waiting_children: int = 0
    completed: int = 0
    failed: int = 0
    paused: bool = False

    @property
    def unfinished(self) -> int:
        return self.waiting + self.prioritized + self.delayed + self.active + self.waiting_children


class JobPage(msgspec.Struct, frozen=True):
    jobs: tuple[JobRecord, ...]
    next_cursor: str | None
    """Give it back for the next page; None at the end."""


class LogPage(msgspec.Struct, frozen=True):
    lines: tuple[str, ...]
    total: int


class EventPage(msgspec.Struct, frozen=True):
    events: tuple[Event, ...]
    cursor: str
    """Where to go on reading."""
    gap: bool = False
    """Events between the asked cursor and the first of these were dropped from the log."""


class WorkerState(StrEnum):
    INITIALIZING = "initializing"
    READY = "ready"
    PROCESSING = "processing"
    DRAINING = "draining"
    STOPPED = "stopped"


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's own words about itself, renewed by its heartbeat."""

    name: str
    state: WorkerState
    queues: dict[str, int]
    """Slots by queue."""
    host: str = ""
    pid: int = 0
    started_ms: int = 0
    beat_ms: int = 0
    """Filled in by the store."""
    running: tuple[JobRef, ...] = ()
    stuck: tuple[JobRef, ...] = ()
    """Jobs in threads that were told to stop and did not: their slots are lost until they do."""
    jobs_done: int = 0


class Store(Protocol):
    """The place where jobs are kept: what every store does, and what it promises."""

    @property
    def facts(self) -> StoreFacts: ...

    @property
    def clock(self) -> Clock:
        """The time that it goes by."""

    @property
    def place(self) -> str:
        """Where it is, fit to be shown: no password. The same for all stores on one place."""

    async def open(self) -> None:
        """Make ready for use; creates what is missing, migrates what is older, refuses what is newer."""

    async def close(self) -> None:
        """Let go of everything; safe to call twice. What was answered stays."""

    def another(self) -> "Store":
        """An unopened store on the same place, for another thread's event loop."""

    # ── producing ────────────────────────────────────────────────────────────────────────

    async def add(self, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        """Add all of these, also across queues, or none of them.

        Each goes to waiting, prioritized or delayed as its spec says. An explicit id that is
        taken, or was taken within a day, changes nothing. Deduplication is applied in order.
        More for a group than may wait there is GroupFull, and nothing was added.

        A job with children goes to waiting-children, and on to the head of its line, its priority or
        its delay once none of them is pending. Nothing below a job that is a duplicate is added. A
        child whose id is taken by a job without a parent becomes that parent's child as it stands;
        one that is another's child is WrongState. BadOption for trees that are too deep, deduplicated
        or have one id twice.
        """

    async def add_children(self, lease: Lease, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        """Add these as children of a running job, all or none; LeaseLost if the lease is.

        The job runs on; AwaitChildren lets it wait for them. A child that it has already stays as it
        is. BadOption, WrongState and GroupFull as for `add`, WrongState also for a child that the job
        itself descends from.
        """

    # ── working ──────────────────────────────────────────────────────────────────────────

    async def claim(
        self,
        wants: Mapping[str, int],
        *,
        worker: str,
        lease_ms: int,
        request: str,
        at_most: int | None = None,
        held_elsewhere: bool = False,
    ) -> Claimed:
        """Take up to that many runnable jobs of each queue: one claimant for a job at a time.

        Order: no priority first, then by priority, each first in, first out. Due delayed jobs
        are made runnable first; a job past its start-by time ends as expired instead, and a parent
        that this releases may come at any place of the claim. A paused queue gives nothing.
        With `at_most`, no more than that of all queues together, earlier ones first.

        Jobs without a group come first. Then the groups take turns, in proportion to their
        weights, each in its own order; one that had nothing to give saves no turns up. No limit
        of the queue or of a group is exceeded, whoever claims.

        With `held_elsewhere` the leases are for someone who reaches the store through this process
        only: whatever becomes of it, they stand until they run out.
        """

    async def settle(self, settlements: Sequence[Settlement], *, request: str) -> Sequence[SettleOutcome]:
        """Carry out each verdict and end its lease; a lost lease changes nothing and is reported.

        A child that ends is told to its parent in the same step: its result, or its failure as its
        `on_failure` says. A job that completes while children are pending does not: it waits for
        them and runs again. One whose child failed with it, while it ran, fails instead.
        """

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        wants: Mapping[str, int],
        *,
        worker: str,
        lease_ms: int,
        request: str,
        at_most: int | None = None,
    ) -> Exchanged:
        """Settle these and claim those, in one atomic trip."""

    async def renew(self, leases: Sequence[Lease], *, lease_ms: int) -> Sequence[Renewal]:
        """Extend each lease from now, and say which are lost and which are to stop."""

    async def abandon(self, request: str) -> int:
        """Hand back what that claim or exchange took and nobody runs; no stall is counted.

        For a caller that lost the answer and will not ask again. Returns how many came back.
        Should the request itself arrive only later, it settles but claims nothing.
        """

    async def wait(self, queues: Sequence[str], *, timeout_ms: int) -> bool:
        """Return as soon as one of the queues may have a runnable job, or at the deadline.

        False means that the time ran out. True may be a false alarm; a job that became
        runnable is never slept through.
        """

    async def notices(self, worker: str, *, timeout_ms: int) -> Sequence[Notice]:
        """The jobs that this worker holds and that are to stop; waits for the first one."""

    async def rescue(self, queues: Sequence[str], *, limits: CrashLimits) -> Rescued:
        """Take back jobs whose lease ran out or whose process is dead.

        Each is counted as a crash and goes to the head of its line with its priority, in the old
        order, or fails once the limits are exceeded. A claim whose answer never arrived is no crash.
        """

    async def report_crash(self, worker: str, kind: CrashKind, *, limits: CrashLimits) -> Rescued:
        """Take back all that a worker held, whose end was seen to be of this kind."""

    # ── steering one job ─────────────────────────────────────────────────────────────────

    async def cancel(self, ref: JobRef, *, reason: str) -> Cancellation:
        """End an unstarted job as cancelled, or ask its worker to stop it. Finished: WrongState.

        A running job that was asked to stop completes or fails by its own verdict; it never runs
        again: a retry, a release or a rescue ends it as cancelled. The children of one that waits for
        them go on.
        """

    async def retry(self, ref: JobRef) -> None:
        """Put a finished job back to run with fresh attempts; noted in its log. Else WrongState.

        It is pending again for its parent; and it waits first if it has pending children itself.
        """

    async def retry_all(self, queue: str, state: State, *, limit: int) -> int:
        """Retry up to that many of the queue's completed or failed jobs, oldest first."""

    async def promote(self, ref: JobRef) -> None:
        """Make a delayed job runnable now. Else WrongState."""

    async def change_delay(self, ref: JobRef, delay_ms: int) -> None:
        """Make a delayed job due that long from now. Else WrongState."""

    async def change_priority(self, ref: JobRef, priority: int) -> None:
        """Give an unfinished job another priority, at the end of that line; a finished one is WrongState."""

    async def remove(self, ref: JobRef) -> None:
        """Forget a job that is not active, and its id with it; and all its children with theirs.

        WrongState if it or one of those is active. A parent does not wait for a child that is removed,
        in whatever way; a result that it has already stays. No other verb removes children with a job.
        """

    async def update_data(self, ref: JobRef, data: bytes) -> None:
        """Replace the data; a running attempt keeps what it has."""

    async def set_progress(self, ref: JobRef, progress: bytes) -> None: ...

    async def add_log(self, ref: JobRef, lines: Sequence[str]) -> int:
        """Append to the job's log, dropping the oldest lines over its limit; the number kept."""

    # ── durable steps ────────────────────────────────────────────────────────────────────

    async def append_journal(
        self, ref: JobRef, entries: Sequence[JournalEntry], *, epoch: int
    ) -> Sequence[JournalEntry]:
        """Record these steps of a running job, all or none; each as it stands afterwards.

        What is done stays as it is: an entry for its place changes nothing and gets what is there, so
        a lost answer is asked for again. What is open or failed gives way. LeaseLost unless the
        job is active in this very activation. The journal goes when its job is forgotten, not before.
        """

    async def read_journal(self, ref: JobRef, *, start: int = 0, limit: int = 1_000) -> JournalPage:
        """The recorded steps from a place on, of that many places at most. JobMissing."""

    async def receive(self, ref: JobRef, entry: JournalEntry, *, epoch: int) -> JournalEntry | None:
        """Take the oldest signal named as the entry is out of the mailbox and into the journal, in one step.

        Its payload becomes the entry's value. The entry as it stands; None if there is no such
        signal. A place that is done keeps what it has, and no signal is taken. LeaseLost as above.
        """

    async def fork_journal(self, ref: JobRef, at: int, to: JobRef) -> int:
        """Copy what was recorded before a place to another job, whose journal is empty; how many entries.

        WrongState if the other is active, finished, or has a journal.
        """

    async def forget_journal(self, ref: JobRef) -> None:
        """Drop the journal and the mailbox of a job that is not active. Active: WrongState."""

    async def signal(self, ref: JobRef, name: str, payload: bytes, *, request: str) -> Delivery:
        """Put a signal into the job's mailbox; if the job is parked and waits for it, it is runnable at once.

        Each is received once, in the order in which they came. JobMissing; finished: WrongState;
        MAX_SIGNALS wait already: MailboxFull.
        """

    # ── steering a queue: all but `pause` refuse one that is not there (QueueMissing) ───────

    async def pause(self, queue: str) -> None:
        """Give out no more jobs of the queue; running ones go on, adds are taken."""

    async def resume(self, queue: str) -> None: ...

    async def drain(self, queue: str, *, delayed: bool) -> int:
        """Remove all runnable jobs, and the delayed ones if asked; explicit ids stay remembered."""

    async def clean(self, queue: str, state: State, *, older_than_ms: int, limit: int) -> int:
        """Remove up to that many jobs that entered the state that long ago. Active: WrongState."""

    async def obliterate(self, queue: str, *, force: bool) -> None:
        """Remove the queue with everything in it. Active jobs: WrongState unless forced."""

    # ── limits and groups: may be said before the first job; reading asks for a queue (QueueMissing) ──

    async def set_limits(self, queue: str, limits: QueueLimits) -> None:
        """Limit the queue as a whole, on all workers, from now on; what runs goes on. A new window begins."""

    async def limits(self, queue: str) -> QueueStanding: ...

    async def set_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        """Give a group limits of its own, in place of those it had; None is as all others."""

    async def set_group_default(self, queue: str, limits: GroupLimits) -> None:
        """The limits of each group, where its own say nothing."""

    async def pause_group(self, queue: str, group: str) -> None:
        """Give out no more jobs of the group; running ones go on, adds are taken."""

    async def resume_group(self, queue: str, group: str) -> None:
        """QueueMissing if there is no such queue; a group that is not paused stays as it is."""

    async def group(self, queue: str, group: str) -> GroupInfo:
        """One group as it stands; one that nobody spoke of is empty. Costs the same however many there are."""
        ...

    async def groups(self, queue: str, *, limit: int, cursor: str | None = None) -> GroupPage:
        """The groups that have jobs waiting or active, limits of their own, or a pause; by name."""

    # ── schedules: a tick is a job whose id names its schedule and its time ───────────────

    async def put_schedule(
        self, schedule: Schedule, *, next_ms: int | None, seen_ms: int | None, count: int = 1, paused: bool = False
    ) -> ScheduleOutcome:
        """Make the schedule, or put this one in place of what was seen, with one tick pending: for `next_ms`.

        `seen_ms` is its newest tick as it was seen, None if there was no such schedule. A tick that
        is pending is removed first; one that runs goes on. None as the next: nothing is pending, since
        the schedule is paused, or else has ended. `count` is the number of that tick, for the limit.
        """

    async def start_tick(self, lease: Lease) -> TickStart:
        """Tell the claimant of a tick how its schedule stands, and whether it may run.

        Where ticks must not overlap, the first to ask runs; the others learn which one does, and are
        counted as skipped. A lost lease learns nothing.
        """

    async def advance_schedule(self, queue: str, schedule_id: str, *, tick_ms: int, next_ms: int | None) -> bool:
        """Add the tick after the one for `tick_ms`, or with None let the schedule end; whether that was done.

        Only if that is its newest tick, is no longer pending, and the schedule is not paused: however
        often and by whomever this is asked, each tick is added once.
        """

    async def remove_schedule(self, queue: str, schedule_id: str) -> None:
        """Forget the schedule and its pending tick; one that runs goes on. Else ScheduleMissing."""

    async def schedule(self, queue: str, schedule_id: str) -> ScheduleRecord:
        """The schedule, or ScheduleMissing."""

    async def schedules(self, queue: str) -> Sequence[ScheduleRecord]:
        """All schedules of the queue, by id; none for a queue that is not there."""

    async def idle_schedules(self, queues: Sequence[str]) -> Sequence[ScheduleRecord]:
        """Those whose newest tick is due and no longer pending, and that are neither paused nor ended: advance them.

        Some at a time, if there are many. Who claimed such a tick died before adding the next, or is about to.
        """

    # ── looking ──────────────────────────────────────────────────────────────────────────

    async def job(self, ref: JobRef) -> JobRecord:
        """The job, or JobMissing."""

    async def look(self, queue: str, ids: Sequence[str]) -> Sequence[JobRecord | None]:
        """The jobs of these ids in one trip, each as `job` tells it; None for one that is not there.

        Costs the same however many jobs wait. For whoever keeps a picture of many jobs up to date.
        """

    async def jobs(
        self, queue: str, state: State, *, limit: int, cursor: str | None = None, newest_first: bool = False
    ) -> JobPage:
        """Jobs of one state, in the order in which they will run or did finish.

        Those that wait in groups come after the others, by priority and first in, first out,
        whatever their group: whose turn it will be is not foretold.
        """

    async def logs(self, ref: JobRef, *, start: int = 0, limit: int = 1_000) -> LogPage: ...

    async def children(self, ref: JobRef, *, limit: int = 1_000, cursor: str | None = None) -> ChildPage:
        """The job's children and what became of each, also of those that are gone; in no special order.

        A page may have some more than asked. A child that ends between two pages may be told twice.
        """

    async def counts(self, queue: str) -> Counts:
        """How many jobs are in each state; QueueMissing if there never was such a queue."""

    async def queues(self) -> Sequence[str]:
        """The names of all queues, sorted. May be slow on a large server: not for polling."""

    async def oldest_waiting_ms(self, queue: str) -> int | None:
        """Since when the next runnable job could have run; None if nothing is runnable."""

    async def events(self, queue: str, *, after: str | None, limit: int, timeout_ms: int) -> EventPage:
        """The events after a cursor, in order, waiting for the first one.

        None starts at the end of the log, FROM_START at its oldest event. Says Gap when events
        after the cursor were dropped. A cursor that no event gave is BadOption.
        """

    # ── workers ──────────────────────────────────────────────────────────────────────────

    async def beat(self, info: WorkerInfo, *, ttl_ms: int) -> None:
        """Register the worker, or renew what is known of it; forgotten after that time without a beat."""

    async def workers(self) -> Sequence[WorkerInfo]:
        """The workers that beat lately, by name."""

    # ── moving to another store; `stores/moving.py` has the steps ────────────────────────────

    async def export_jobs(self, queue: str, state: State, *, limit: int) -> Sequence[SavedJob]:
        """The first jobs of that state in its order, with all that belongs to them. Active: WrongState.

        What this store knows of a job and cannot put into words is MoveRefused.
        """

    async def export_memory(self, queue: str, *, limit: int, cursor: str | None = None) -> MemoryPage:
        """What the queue knows beside its jobs, about so many at a time. May be slow on a large server."""

    async def depart(self, queue: str, ids: Sequence[str]) -> Sequence[str]:
        """Let go of jobs that are on another store by now; all of these that are not here any more.

        Active ones stay. Explicit ids stay remembered, and so do subjects with a time of their own.
        Nothing is added that was kept for when they end: it went with them.
        """

    async def begin_move(self, queue: str, move: Move) -> None:
        """Make the queue ready to take in another's jobs: paused or not as it was there, its ids out of reach.

        The same origin again goes on where it was, also though the queue has jobs by now. Any
        other queue with jobs in it is MoveRefused.
        """

    async def restore(self, queue: str, cargo: Cargo, *, run: str) -> int:
        """Take in all of these or none; how many of the jobs were new here.

        Each goes to the end of where it stood, its ids, counts, times and words as they were. A
        job that came with this move before is passed over, whatever became of it here, and so is
        one whose explicit id is taken or remembered. MoveRefused if another run began, or if the
        store's own id belongs to another job here.
        """
