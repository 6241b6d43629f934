"""The words of runs: what a task may be doing, what came of it, and what is told meanwhile."""

from enum import StrEnum
from typing import Any

import msgspec


class TaskState(StrEnum):
    """Where a task, or the run that it began, is."""

    PENDING = "pending"
    """On record, and not for any worker yet."""
    QUEUED = "queued"
    """In its line; also there again, while workers lack what it needs or no provider takes calls."""
    RUNNING = "running"
    RETRYING = "retrying"
    """An activation failed; the next one is due."""
    SUSPENDED = "suspended"
    """It waits for a person, or for other tasks."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"

    @property
    def is_final(self) -> bool:
        return self in FINAL


FINAL = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED, TaskState.TIMEOUT})
BEFORE: dict[TaskState, frozenset[TaskState]] = {
    TaskState.PENDING: frozenset(),
    TaskState.QUEUED: frozenset(TaskState) - FINAL,
    # A worker that died leaves its task running: the next activation finds it so.
    TaskState.RUNNING: frozenset(
        {TaskState.QUEUED, TaskState.RUNNING, TaskState.RETRYING, TaskState.SUSPENDED, TaskState.PENDING}
    ),
    TaskState.RETRYING: frozenset({TaskState.RUNNING, TaskState.SUSPENDED}),
    TaskState.SUSPENDED: frozenset({TaskState.RUNNING, TaskState.SUSPENDED}),
    TaskState.COMPLETED: frozenset({TaskState.RUNNING}),
} | dict.fromkeys(
    (TaskState.FAILED, TaskState.CANCELLED, TaskState.TIMEOUT),
    frozenset(TaskState) - FINAL,
)
"""From where each may be come to."""


class ProgressKind(StrEnum):
    """What a run tells of."""

    JOB_STARTED = "job_started"
    JOB_PROGRESS = "job_progress"
    JOB_COMPLETED = "job_completed"
    JOB_FAILED = "job_failed"
    """Also of a task that ran out of time: its data says which."""
    JOB_CANCELLED = "job_cancelled"
    JOB_RETRYING = "job_retrying"
    JOB_SUSPENDED = "job_suspended"
    STEP_STARTED = "step_started"
    STEP_COMPLETED = "step_completed"
    THINKING = "thinking"
    TOOL_STARTED = "tool_started"
    TOOL_PROGRESS = "tool_progress"
    TOOL_COMPLETED = "tool_completed"
    TOOL_FAILED = "tool_failed"
    LLM_STARTED = "llm_started"
    LLM_STREAMING = "llm_streaming"
    LLM_COMPLETED = "llm_completed"
    ARTIFACT_CREATED = "artifact_created"
    CHECKPOINT_SAVED = "checkpoint_saved"


class NewProgress(msgspec.Struct, frozen=True):
    """What is to be told of a task."""

    kind: ProgressKind
    data: dict[str, Any] = {}


class ProgressEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a run's log."""

    number: int
    """1, 2, 3 … within the run: also the cursor after which the next is read."""
    run: str
    task: str
    kind: ProgressKind
    at_ms: int
    data: dict[str, Any]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asked agents to do."""

    id: str
    tenant: str
    workspace: str | None
    """A part of the tenant, if it was asked for in one."""
    created_by: str
    state: TaskState
    told: int
    """The number of its last event."""
    created_ms: int
    finished_ms: int | None


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a run that one agent does; the job that carries it has its id."""

    id: str
    run: str
    tenant: str
    parent: str | None
    """The task that made it, of one that was fanned out."""
    kind: str
    state: TaskState
    queue: str
    prompt: str
    terms: bytes
    """What else it was asked for with, as its room writes it."""
    question: dict[str, Any] | None
    """What a person is asked, while it waits for that."""
    outcome: bytes | None
    """What came of it, as its room writes it."""
    created_ms: int
    started_ms: int | None
    finished_ms: int | None


class HowFar(msgspec.Struct, frozen=True):
    """Of a run that somebody listens to."""

    told: int
    """The number of its last event."""
    state: TaskState


class RunPage(msgspec.Struct, frozen=True):
    runs: tuple[Run, ...]
    cursor: str | None
    """Where the next page begins."""


class UnderWay(msgspec.Struct, frozen=True):
    """How many there are in a state."""

    runs: int
    tasks: int
