"""What happened, on an ordered log per queue."""

from enum import StrEnum

import msgspec

from bullpen.job.record import Failure


class EventKind(StrEnum):
    """What happened: the reference says when each is told, and with which fields."""

    ADDED = "added"
    WAITING = "waiting"
    DELAYED = "delayed"
    WAITING_CHILDREN = "waiting-children"
    ACTIVE = "active"
    PROGRESS = "progress"
    COMPLETED = "completed"
    FAILED = "failed"
    RETRIES_EXHAUSTED = "retries-exhausted"
    STALLED = "stalled"
    CANCELLING = "cancelling"
    DUPLICATED = "duplicated"
    DEDUPLICATED = "deduplicated"
    REMOVED = "removed"
    DRAINED = "drained"
    CLEANED = "cleaned"
    PAUSED = "paused"
    RESUMED = "resumed"


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the log. Which of the fields are set depends on the kind: see the reference."""

    kind: EventKind
    job_id: str | None = None
    at_ms: int = 0
    """By the clock of the log."""
    tenant: str | None = None
    prev: str | None = None
    """The state that the job left."""
    name: str | None = None
    run_at_ms: int | None = None
    value: bytes | None = None
    """JSON: the result of `completed`, the progress of `progress`."""
    failure: Failure | None = None
    other_job_id: str | None = None
    """Of `deduplicated`: the job that was dropped, in favour of this one."""
    count: int | None = None
    cursor: str = ""
    """Where to go on reading after this event."""
