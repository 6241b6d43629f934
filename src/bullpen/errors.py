"""Every error that Bullpen raises, as one tree.

    BullpenError
    ├── UsageError          the caller's mistake: nothing was changed
    │   ├── BadName         ├── BadId          ├── BadOption
    │   ├── BadData         ├── PayloadTooLarge ├── BadHandler
    │   └── BadStep
    ├── JobError            about one job or queue
    │   ├── JobMissing      ├── QueueMissing   ├── WrongState
    │   ├── JobFailed       ├── ResultTimeout  ├── CodecMissing
    │   ├── MoveRefused     ├── ScheduleMissing
    │   ├── GroupFull       ├── TenantRefused
    │   ├── LeaseLost       ├── JournalFull    ├── MailboxFull
    │   └── StepFailed      ── SagaFailed      ── WaitTimeout     (what a durable step came to)
    ├── StoreError          about the place where jobs are kept
    │   ├── StoreUnavailable (try again)        ├── StoreFull (make room, try again)
    │   │   └── StoreNotOpen
    │   ├── StoreReadOnly   ├── StoreCorrupt   ├── StoreTooNew
    │   └── BufferFull      ── BufferLost      (the producer's own, while the store is away)
    ├── RecordsError        about the database that the server keeps its records in
    │   ├── RecordsUnavailable (try again)      ├── RecordsTooNew
    │   ├── RecordMissing   ├── RecordTaken    └── IdempotencyConflict
    └── Signal              raised by a handler to steer its job
        ├── Unrecoverable   ├── Postpone       ├── RateLimited
        └── JobCancelled

Each class has a stable ``code``; `docs/reference/errors.md` has a line for each.
"""

from typing import ClassVar


class BullpenError(Exception):
    """The root: catch this to catch all that Bullpen raises."""

    code: ClassVar[str] = "bullpen-error"


class UsageError(BullpenError, ValueError):
    """The caller asked for something that cannot be; nothing was changed."""

    code = "usage"
    retryable: ClassVar[bool] = False
    """Raised in a handler it fails the job at once: the same call would be as wrong again."""


class BadName(UsageError):
    """A queue, job or schedule name has characters that are not allowed."""

    code = "bad-name"


class BadId(UsageError):
    """A job id could collide with a generated id or with the store's own keys."""

    code = "bad-id"


class BadOption(UsageError):
    """An option is unknown, out of range or does not fit another."""

    code = "bad-option"


class BadData(UsageError):
    """Data cannot be written as JSON, or is not what its reader expects."""

    code = "bad-data"


class PayloadTooLarge(UsageError):
    """The payload is over the queue's size limit; store it elsewhere and send its id."""

    code = "payload-too-large"


class BadHandler(UsageError):
    """A handler is not callable, or cannot run in the way asked for."""

    code = "bad-handler"


class BadStep(UsageError):
    """A durable step was asked for where or how it cannot be."""

    code = "bad-step"


class JobError(BullpenError):
    """About one job, or one queue of jobs."""

    code = "job"


class JobMissing(JobError):
    """No job with this id: never added, removed, or pruned by retention."""

    code = "job-missing"


class QueueMissing(JobError):
    """Nothing was ever added to a queue of this name."""

    code = "queue-missing"


class ScheduleMissing(JobError):
    """No schedule of this name in the queue: never made, or removed."""

    code = "schedule-missing"


class WrongState(JobError):
    """The job or queue is not in a state that allows this."""

    code = "wrong-state"


class JobFailed(JobError):
    """The awaited job ended in the failed state; ``failure`` says how."""

    code = "job-failed"

    def __init__(self, message: str, failure: object = None) -> None:
        super().__init__(message)
        self.failure = failure


class ResultTimeout(JobError, TimeoutError):
    """The awaited job did not end in time; it goes on."""

    code = "result-timeout"


class CodecMissing(JobError):
    """The payload was written with a codec that this process was not given."""

    code = "codec-missing"


class MoveRefused(JobError):
    """The queue cannot be moved there, or no further; no job was lost by that."""

    code = "move-refused"


class GroupFull(JobError):
    """As many jobs wait in the group as may; nothing of the batch was added."""

    code = "group-full"


class TenantRefused(JobError):
    """A job's tenant is not one that the worker may work for; the job fails for good."""

    code = "tenant-refused"
    retryable: ClassVar[bool] = False


class LeaseLost(JobError):
    """Another activation of this job has begun, or it ended: what this one does no longer counts."""

    code = "lease-lost"


class JournalFull(JobError):
    """The job has recorded as many steps, or as much, as it may; split it into several jobs."""

    code = "journal-full"
    retryable: ClassVar[bool] = False


class MailboxFull(JobError):
    """As many signals wait for this job as it may have; it does not take them."""

    code = "mailbox-full"


class StepFailed(JobError):
    """A step failed as often as it may; ``step`` is its name, ``failure`` says how.

    It is on record: the same step fails in the same way when the program runs again.
    """

    code = "step-failed"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, step: str = "", failure: object = None) -> None:
        super().__init__(message)
        self.step = step
        self.failure = failure


class SagaFailed(StepFailed):
    """A saga failed and everything that it did was undone; ``failure`` says what it failed of."""

    code = "saga-failed"


class WaitTimeout(JobError, TimeoutError):
    """The awaited signal did not come in time."""

    code = "wait-timeout"
    retryable: ClassVar[bool] = False


class StoreError(BullpenError):
    """About the place where jobs are kept."""

    code = "store"


class StoreUnavailable(StoreError):
    """The store cannot be reached or does not answer; the same call may succeed later."""

    code = "store-unavailable"


class StoreNotOpen(StoreUnavailable):
    """It was not opened, or was closed."""

    code = "store-not-open"


class StoreFull(StoreError):
    """The store has no room; nothing was written. Make room, then try again."""

    code = "store-full"


class BufferFull(StoreError):
    """The store is away and the producer's buffer holds all it may; nothing was kept."""

    code = "buffer-full"


class BufferLost(StoreError):
    """The producer ended before what its buffer held could be added."""

    code = "buffer-lost"


class StoreReadOnly(StoreError):
    """The store's file or server does not accept writes from us."""

    code = "store-read-only"


class StoreCorrupt(StoreError):
    """The store's file is damaged, or is not a Bullpen file."""

    code = "store-corrupt"


class StoreTooNew(StoreError):
    """The store was written by a newer Bullpen; upgrade this one."""

    code = "store-too-new"


class RecordsError(BullpenError):
    """About the database of records: keys, plans, audit log, outbox, read model."""

    code = "records"


class RecordsUnavailable(RecordsError):
    """The database of records cannot be reached or does not answer; the same call may succeed later."""

    code = "records-unavailable"


class RecordsTooNew(RecordsError):
    """The database of records was migrated by a newer Bullpen; upgrade this one."""

    code = "records-too-new"


class RecordMissing(RecordsError):
    """There is no such key, user, tenant, view or alert."""

    code = "record-missing"


class RecordTaken(RecordsError):
    """There is one of this name already; nothing was changed."""

    code = "record-taken"


class IdempotencyConflict(RecordsError):
    """The idempotency key was used for another request, or that one is not answered yet."""

    code = "idempotency-conflict"


class Signal(BullpenError):
    """Raised by a handler to steer its job."""

    code = "signal"


class Unrecoverable(Signal):
    """Trying again cannot help: the job fails at once, whatever attempts remain."""

    code = "unrecoverable"


class Postpone(Signal):
    """Not now: the job runs again after ``delay`` seconds; no attempt is used."""

    code = "postpone"

    def __init__(self, delay: float, note: str = "") -> None:
        super().__init__(note or f"postponed for {delay} s")
        self.delay = delay
        self.note = note


class RateLimited(Signal):
    """Someone else has enough, as HTTP 429 says: no job of the group, or queue, starts for ``delay`` seconds.

    Holds on all workers. This job then runs again, and no attempt is used.
    """

    code = "rate-limited"

    def __init__(self, delay: float, *, whole_queue: bool = False) -> None:
        super().__init__(f"limited for {delay:g} s")
        self.delay = delay
        self.whole_queue = whole_queue


class JobCancelled(Signal):
    """Raised inside a handler whose job was cancelled."""

    code = "job-cancelled"
