"""Bullpen runs long AI-agent work reliably."""

from bullpen.app import Bullpen
from bullpen.deadletters.filter import DeadFilter
from bullpen.deadletters.letters import DeadGroup, DeadLetters
from bullpen.errors import (
    BadData,
    BadHandler,
    BadId,
    BadName,
    BadOption,
    BadStep,
    BufferFull,
    BufferLost,
    BullpenError,
    CodecMissing,
    GroupFull,
    IdempotencyConflict,
    JobCancelled,
    JobError,
    JobFailed,
    JobMissing,
    JournalFull,
    LeaseLost,
    MailboxFull,
    MoveRefused,
    PayloadTooLarge,
    Postpone,
    QueueMissing,
    RateLimited,
    RecordMissing,
    RecordsError,
    RecordsTooNew,
    RecordsUnavailable,
    RecordTaken,
    ResultTimeout,
    SagaFailed,
    ScheduleMissing,
    Signal,
    StepFailed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreNotOpen,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
    TenantRefused,
    Unrecoverable,
    UsageError,
    WaitTimeout,
    WrongState,
)
from bullpen.flows.producer import FlowNode, FlowProducer, FlowView
from bullpen.flows.shapes import chain, group
from bullpen.job.entries import EntryKind, EntryState, JournalEntry
from bullpen.job.events import Event, EventKind
from bullpen.job.limits import GroupInfo, GroupLimits, GroupPage, QueueLimits, QueueStanding, Rate
from bullpen.job.options import JobOptions, custom, debounce, dedup, exponential, fixed, keep, rate
from bullpen.job.record import CrashKind, CrashLimits, Failure, FailureKind, JobRecord, JobRef
from bullpen.job.schedule import Overlap, ScheduleRecord
from bullpen.job.spec import NewJob, OnFailure
from bullpen.job.state import State
from bullpen.jobtypes.batches import Call
from bullpen.jobtypes.hooks import Alert, Hooks, Severity
from bullpen.jobtypes.jobtype import JobType
from bullpen.journal.retries import StepRetry
from bullpen.journal.saga import Saga
from bullpen.observing import Observer
from bullpen.queue.events import FROM_START, Gap, QueueEvents
from bullpen.queue.groups import Groups
from bullpen.queue.job import Job
from bullpen.queue.payload import Codec
from bullpen.queue.queue import Queue, add_all
from bullpen.queue.schedules import Schedules
from bullpen.scheduling.options import ScheduleOptions
from bullpen.stores.base import Child, ChildState, Counts, Delivery, Store
from bullpen.stores.sqlite import SqliteStore
from bullpen.sync import Sync, SyncJob
from bullpen.worker.context import Context
from bullpen.worker.family import ChildOutcome
from bullpen.worker.handlers import in_process
from bullpen.worker.options import RetryPolicy, WorkerOptions
from bullpen.worker.supervised import Ended
from bullpen.worker.supervisor import Supervisor
from bullpen.worker.worker import Worker

__all__ = [
    "FROM_START",
    "Alert",
    "BadData",
    "BadHandler",
    "BadId",
    "BadName",
    "BadOption",
    "BadStep",
    "BufferFull",
    "BufferLost",
    "Bullpen",
    "BullpenError",
    "Call",
    "Child",
    "ChildOutcome",
    "ChildState",
    "Codec",
    "CodecMissing",
    "Context",
    "Counts",
    "CrashKind",
    "CrashLimits",
    "DeadFilter",
    "DeadGroup",
    "DeadLetters",
    "Delivery",
    "Ended",
    "EntryKind",
    "EntryState",
    "Event",
    "EventKind",
    "Failure",
    "FailureKind",
    "FlowNode",
    "FlowProducer",
    "FlowView",
    "Gap",
    "GroupFull",
    "GroupInfo",
    "GroupLimits",
    "GroupPage",
    "Groups",
    "Hooks",
    "IdempotencyConflict",
    "Job",
    "JobCancelled",
    "JobError",
    "JobFailed",
    "JobMissing",
    "JobOptions",
    "JobRecord",
    "JobRef",
    "JobType",
    "JournalEntry",
    "JournalFull",
    "LeaseLost",
    "MailboxFull",
    "MoveRefused",
    "NewJob",
    "Observer",
    "OnFailure",
    "Overlap",
    "PayloadTooLarge",
    "Postpone",
    "Queue",
    "QueueEvents",
    "QueueLimits",
    "QueueMissing",
    "QueueStanding",
    "Rate",
    "RateLimited",
    "RecordMissing",
    "RecordTaken",
    "RecordsError",
    "RecordsTooNew",
    "RecordsUnavailable",
    "ResultTimeout",
    "RetryPolicy",
    "Saga",
    "SagaFailed",
    "ScheduleMissing",
    "ScheduleOptions",
    "ScheduleRecord",
    "Schedules",
    "Severity",
    "Signal",
    "SqliteStore",
    "State",
    "StepFailed",
    "StepRetry",
    "Store",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreNotOpen",
    "StoreReadOnly",
    "StoreTooNew",
    "StoreUnavailable",
    "Supervisor",
    "Sync",
    "SyncJob",
    "TenantRefused",
    "Unrecoverable",
    "UsageError",
    "WaitTimeout",
    "Worker",
    "WorkerOptions",
    "WrongState",
    "add_all",
    "chain",
    "custom",
    "debounce",
    "dedup",
    "exponential",
    "fixed",
    "group",
    "in_process",
    "keep",
    "rate",
]
