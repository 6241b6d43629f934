"""Bullpen runs long AI-agent work reliably."""

from bullpen.errors import (
    BadData,
    BadHandler,
    BadId,
    BadName,
    BadOption,
    BullpenError,
    CodecMissing,
    JobCancelled,
    JobError,
    JobFailed,
    JobMissing,
    PayloadTooLarge,
    Postpone,
    QueueMissing,
    ResultTimeout,
    Signal,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
    Unrecoverable,
    UsageError,
    WrongState,
)
from bullpen.job.events import Event, EventKind
from bullpen.job.options import JobOptions, custom, debounce, dedup, exponential, fixed, keep
from bullpen.job.record import CrashKind, CrashLimits, Failure, FailureKind, JobRecord, JobRef
from bullpen.job.spec import NewJob
from bullpen.job.state import State
from bullpen.queue.events import FROM_START, Gap, QueueEvents
from bullpen.queue.job import Job
from bullpen.queue.payload import Codec
from bullpen.queue.queue import Queue, add_all
from bullpen.stores.base import Counts, Store
from bullpen.stores.sqlite import SqliteStore
from bullpen.worker.context import Context
from bullpen.worker.handlers import in_process
from bullpen.worker.options import RetryPolicy, WorkerOptions
from bullpen.worker.supervisor import Supervisor
from bullpen.worker.worker import Ended, Worker

__all__ = [
    "FROM_START",
    "BadData",
    "BadHandler",
    "BadId",
    "BadName",
    "BadOption",
    "BullpenError",
    "Codec",
    "CodecMissing",
    "Context",
    "Counts",
    "CrashKind",
    "CrashLimits",
    "Ended",
    "Event",
    "EventKind",
    "Failure",
    "FailureKind",
    "Gap",
    "Job",
    "JobCancelled",
    "JobError",
    "JobFailed",
    "JobMissing",
    "JobOptions",
    "JobRecord",
    "JobRef",
    "NewJob",
    "PayloadTooLarge",
    "Postpone",
    "Queue",
    "QueueEvents",
    "QueueMissing",
    "ResultTimeout",
    "RetryPolicy",
    "Signal",
    "SqliteStore",
    "State",
    "Store",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreTooNew",
    "StoreUnavailable",
    "Supervisor",
    "Unrecoverable",
    "UsageError",
    "Worker",
    "WorkerOptions",
    "WrongState",
    "add_all",
    "custom",
    "debounce",
    "dedup",
    "exponential",
    "fixed",
    "in_process",
    "keep",
]
