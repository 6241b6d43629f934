"""What a remote worker and the server say to each other: JSON, one call for each verb.

    claim ──▶ jobs with leases ──▶ heartbeat, progress, log, steps ──▶ settle

A lease travels as queue, id, token and epoch, so that any replica of the server can take the next
call. What a worker asks is read strictly, what it is answered leniently: a newer server may say more.
"""

from typing import Annotated, Any

import msgspec

from bullpen.job.entries import EntryKind, EntryState, JournalEntry
from bullpen.job.record import ClaimedJob, Failure, JobRecord, JobRef, Lease
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.stores.base import Notice, Renewal, WorkerInfo

LONGEST_WAIT_S = 30
"""How long a call may wait for something to happen."""
DEFAULT_LEASE_MS = 30_000
MAX_AT_ONCE = 1_000
"""Jobs of a claim, leases of a heartbeat, verdicts of a call."""

MOST = 2**53 - 1
"""The largest number that every language reads as it was written; no store keeps one of any size."""
Whole = Annotated[int, msgspec.Meta(ge=0, le=MOST)]

encode = msgspec.json.Encoder().encode


class Ask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A call's body; a field that it does not have is refused, since it may have meant something."""


class HeldLease(Ask, frozen=True):
    """The right to settle one activation of a job."""

    queue: str
    id: str
    token: str
    epoch: Whole

    @property
    def lease(self) -> Lease:
        return Lease(JobRef(self.queue, self.id), self.token, self.epoch)

    @classmethod
    def of(cls, lease: Lease) -> "HeldLease":
        return cls(queue=lease.ref.queue, id=lease.ref.id, token=lease.token, epoch=lease.epoch)


# ── claiming ─────────────────────────────────────────────────────────────────────────────


class ClaimAsk(Ask, frozen=True):
    worker: str
    """Its name among the workers of the same key."""
    queues: dict[str, Whole]
    """How many jobs of each are wanted."""
    request: str
    """A unique text; the same again gets the same jobs."""
    wait_s: float = 0
    """How long to wait if there is nothing to run, 30 at most."""
    again: bool = False
    """The answer to this request was lost: do not wait before looking for what it may have brought."""
    lease_ms: int = DEFAULT_LEASE_MS
    at_most: Whole | None = None
    """Of all queues together; earlier ones first."""


class RemoteJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A claimed job, with all that its worker needs."""

    queue: str
    id: str
    token: str
    epoch: int
    name: str
    data: msgspec.Raw
    attempt: int
    """1 for the first try."""
    deadline_ms: int
    """When the lease ends if there is no heartbeat, by the store's clock."""
    timeout_ms: int | None = None
    """The longest that the attempt may run, where the job says so."""
    tenant: str | None = None
    workspace: str | None = None
    headers: dict[str, str] = {}
    added_ms: int = 0
    crashes: dict[str, int] = {}
    failure: Failure | None = None
    """Of the attempt before."""
    cancelling: str | None = None
    parent: JobRef | None = None
    options: JobSpec = JobSpec()
    """All that was said when it was added."""

    @classmethod
    def of(cls, claimed: ClaimedJob, deadline_ms: int) -> "RemoteJob":
        lease, job = claimed.lease, claimed.job
        return cls(
            queue=job.queue, id=job.id, token=lease.token, epoch=lease.epoch, name=job.name,
            data=msgspec.Raw(job.data), attempt=job.attempts_made + 1, deadline_ms=deadline_ms,
            timeout_ms=job.spec.timeout_ms, tenant=job.tenant, workspace=job.spec.workspace,
            headers=job.spec.headers, added_ms=job.added_ms, crashes=job.crashes, failure=job.failure,
            cancelling=job.cancelling, parent=job.parent, options=job.spec,
        )  # fmt: skip

    def claimed(self) -> ClaimedJob:
        ref = JobRef(self.queue, self.id)
        job = JobRecord(
            ref, self.name, bytes(self.data), State.ACTIVE, self.options, priority=self.options.priority,
            attempts_made=self.attempt - 1, epoch=self.epoch, crashes=self.crashes, added_ms=self.added_ms,
            failure=self.failure, cancelling=self.cancelling, parent=self.parent,
        )  # fmt: skip
        return ClaimedJob(Lease(ref, self.token, self.epoch), job)


class ClaimAnswer(msgspec.Struct, frozen=True):
    jobs: list[RemoteJob] = []


class WaitAsk(Ask, frozen=True):
    queues: list[str]
    wait_s: float = LONGEST_WAIT_S


class WaitAnswer(msgspec.Struct, frozen=True):
    woken: bool
    """Whether there may be something to run; False: the time is over."""


# ── while a job runs ─────────────────────────────────────────────────────────────────────


class HeartbeatAsk(Ask, frozen=True):
    leases: list[HeldLease] = []
    lease_ms: int = DEFAULT_LEASE_MS
    info: WorkerInfo | None = None
    """What the list of workers is to show of this one."""


class LeaseState(msgspec.Struct, frozen=True, omit_defaults=True):
    state: Renewal
    reason: str | None = None
    """Of one that is to stop: why."""


class HeartbeatAnswer(msgspec.Struct, frozen=True):
    leases: list[LeaseState] = []
    """In the order asked."""
    now_ms: int = 0
    """The store's time, by which a worker may set its clock."""


class NoticesAsk(Ask, frozen=True):
    worker: str
    wait_s: float = LONGEST_WAIT_S


class RemoteNotice(msgspec.Struct, frozen=True):
    lease: HeldLease
    reason: str

    @property
    def notice(self) -> Notice:
        return Notice(self.lease.lease, self.reason)


class NoticesAnswer(msgspec.Struct, frozen=True):
    cancelling: list[RemoteNotice] = []


class ProgressAsk(Ask, frozen=True):
    lease: HeldLease
    value: msgspec.Raw
    lease_ms: int = DEFAULT_LEASE_MS


class LogAsk(Ask, frozen=True):
    lease: HeldLease
    lines: list[str]
    request: str
    lease_ms: int = DEFAULT_LEASE_MS


class LogAnswer(msgspec.Struct, frozen=True):
    kept: int


class Nothing(msgspec.Struct, frozen=True):
    """It was done, and there is nothing to say."""


# ── durable steps ────────────────────────────────────────────────────────────────────────


class Entry(Ask, frozen=True):
    """A place of the journal; its value is JSON as it is."""

    place: Whole
    name: str
    kind: EntryKind = EntryKind.STEP
    state: EntryState = EntryState.DONE
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    failure: Failure | None = None
    until_ms: Whole | None = None
    attempts: Whole = 0
    started_ms: Whole = 0
    ended_ms: Whole = 0
    epoch: Whole = 0

    @classmethod
    def of(cls, entry: JournalEntry) -> "Entry":
        fields = {name: getattr(entry, name) for name in entry.__struct_fields__}
        return cls(**{**fields, "value": msgspec.UNSET if entry.value is None else msgspec.Raw(entry.value)})

    @property
    def entry(self) -> JournalEntry:
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.__struct_fields__}
        return JournalEntry(**{**fields, "value": bytes(self.value) if isinstance(self.value, msgspec.Raw) else None})


class StepAsk(Ask, frozen=True):
    """Record these steps; or take a signal out of the mailbox; or, with neither, read what is recorded."""

    lease: HeldLease
    record: list[Entry] = []
    receive: Entry | None = None
    start: Whole = 0
    limit: Whole = 1_000
    lease_ms: int = DEFAULT_LEASE_MS


class StepAnswer(msgspec.Struct, frozen=True):
    entries: list[Entry] = []
    """As they stand; of a signal that is not there, none."""
    next_place: int | None = None


def raw(json: bytes) -> msgspec.Raw:
    """JSON that is to travel as it is."""
    return msgspec.Raw(json)
