"""What a store answers to its verbs, and the figures that every store keeps to."""

from enum import StrEnum

import msgspec

from bullpen.job.events import Event
from bullpen.job.record import ClaimedJob, JobRecord, JobRef, Lease
from bullpen.job.schedule import ScheduleRecord

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
    only_works: bool = False
    """It has the verbs by which jobs are run and no others: a server stands before the store."""


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
    is_full: bool = False
    """As many were read as asked for, those that were passed over too: there may be more."""


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
