"""A job as a store tells of it, and the lease under which a worker holds it."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from bullpen.job.names import TICK
from bullpen.job.schedule import Tick, tick_of
from bullpen.job.spec import JobSpec
from bullpen.job.state import State


# Here and below `gc=False`: made by the thousand, of values that cannot refer back, so no cycle goes through them.
class JobRef(msgspec.Struct, frozen=True, order=True, gc=False):
    """The name of one job: its queue and its id there."""

    queue: str
    id: str

    def __str__(self) -> str:
        return f"{self.queue}/{self.id}"


class FailureKind(StrEnum):
    """Why it failed, in a word that programs can match on."""

    ERROR = "error"
    UNRECOVERABLE = "unrecoverable"
    TIMEOUT = "timeout"
    STALLED = "stalled"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    CHILD_FAILED = "child-failed"


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an attempt, or the job, failed."""

    message: str
    kind: FailureKind = FailureKind.ERROR
    type: str = ""
    """The exception's class, for grouping."""
    stack: str = ""


class CrashKind(StrEnum):
    """How a job lost its worker. Crashes are counted apart from attempts."""

    KILLED = "killed"
    OUT_OF_MEMORY = "out-of-memory"
    LOST_HEARTBEAT = "lost-heartbeat"
    DEPLOY = "deploy"
    """Handed back by a worker that was told to stop: recorded, never held against the job."""


class CrashLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many crashes of each kind a job may have before it fails; a deploy never counts."""

    killed: int = 2
    out_of_memory: int = 2
    lost_heartbeat: int = 2
    total: int = 2

    def exceeded_by(self, crashes: Mapping[str, int]) -> bool:
        return (
            crashes.get(CrashKind.KILLED, 0) > self.killed
            or crashes.get(CrashKind.OUT_OF_MEMORY, 0) > self.out_of_memory
            or crashes.get(CrashKind.LOST_HEARTBEAT, 0) > self.lost_heartbeat
            or stalls_in(crashes) > self.total
        )


def stalls_in(crashes: Mapping[str, int]) -> int:
    """How many of these count against a job: all but deploys."""
    return sum(count for kind, count in crashes.items() if kind != CrashKind.DEPLOY)


class Lease(msgspec.Struct, frozen=True, gc=False):
    """The right to settle one activation of a job.

    The token fences inside the store; the epoch, which grows at each activation, fences
    outside it: whoever is called on behalf of a job refuses a smaller epoch than it has seen.
    """

    ref: JobRef
    token: str
    epoch: int


class JobRecord(msgspec.Struct, frozen=True, gc=False):
    """All that a store knows of a job, at one moment."""

    ref: JobRef
    name: str
    data: bytes
    state: State
    spec: JobSpec
    priority: int = 0
    attempts_made: int = 0
    epoch: int = 0
    crashes: dict[str, int] = {}
    """By CrashKind."""
    added_ms: int = 0
    run_at_ms: int | None = None
    started_ms: int | None = None
    finished_ms: int | None = None
    progress: bytes | None = None
    result: bytes | None = None
    failure: Failure | None = None
    """Of the last failed attempt."""
    stacks: tuple[str, ...] = ()
    worker: str | None = None
    cancelling: str | None = None
    """The reason, once someone asked a running job to stop."""
    note: str | None = None
    """Why the job is delayed, where its worker said so."""
    parked: tuple[str, ...] | None = None
    """Of a parked job: the signals that it waits for; None if it is not parked."""
    doomed: Failure | None = None
    """Set when the store already knows that the job must fail: a claimant fails it without running it."""
    parent: JobRef | None = None
    """The job that waits for this one, or did."""

    @property
    def queue(self) -> str:
        return self.ref.queue

    @property
    def id(self) -> str:
        return self.ref.id

    @property
    def tenant(self) -> str | None:
        return self.spec.tenant

    @property
    def is_tick(self) -> bool:
        """Whether a schedule added it."""
        return self.ref.id.startswith(TICK) and self.tick is not None

    @property
    def tick(self) -> Tick | None:
        """Of which schedule it is a tick; None for a job that somebody added."""
        return tick_of(self.ref.id)

    @property
    def stalls(self) -> int:
        """How often the job lost its worker, deploys not counted."""
        return stalls_in(self.crashes)


class ClaimedJob(msgspec.Struct, frozen=True, gc=False):
    lease: Lease
    job: JobRecord
