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
    BufferFull,
    BufferLost,
    BullpenError,
    CodecMissing,
    JobCancelled,
    JobError,
    JobFailed,
    JobMissing,
    LeaseLost,
    MoveRefused,
    PayloadTooLarge,
    Postpone,
    QueueMissing,
    ResultTimeout,
    Signal,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreNotOpen,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
    Unrecoverable,
    UsageError,
    WrongState,
)
from bullpen.flows.producer import FlowNode, FlowProducer, FlowView
from bullpen.flows.shapes import chain, group
from bullpen.job.events import Event, EventKind
from bullpen.job.options import JobOptions, custom, debounce, dedup, exponential, fixed, keep
from bullpen.job.record import CrashKind, CrashLimits, Failure, FailureKind, JobRecord, JobRef
from bullpen.job.spec import NewJob, OnFailure
from bullpen.job.state import State
from bullpen.jobtypes.batches import Call
from bullpen.jobtypes.hooks import Alert, Hooks, Severity
from bullpen.jobtypes.jobtype import JobType
from bullpen.queue.events import FROM_START, Gap, QueueEvents
from bullpen.queue.job import Job
from bullpen.queue.payload import Codec
from bullpen.queue.queue import Queue, add_all
from bullpen.stores.base import Child, ChildState, Counts, Store
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
    "Ended",
    "Event",
    "EventKind",
    "Failure",
    "FailureKind",
    "FlowNode",
    "FlowProducer",
    "FlowView",
    "Gap",
    "Hooks",
    "Job",
    "JobCancelled",
    "JobError",
    "JobFailed",
    "JobMissing",
    "JobOptions",
    "JobRecord",
    "JobRef",
    "JobType",
    "LeaseLost",
    "MoveRefused",
    "NewJob",
    "OnFailure",
    "PayloadTooLarge",
    "Postpone",
    "Queue",
    "QueueEvents",
    "QueueMissing",
    "ResultTimeout",
    "RetryPolicy",
    "Severity",
    "Signal",
    "SqliteStore",
    "State",
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
    "Unrecoverable",
    "UsageError",
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
]
