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


# Not for the garbage collector to look at: it refers to nothing that could refer back, and there are many.
class Event(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
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
    recorded_ms: int | None = None
    """Of `added`, `active` and `completed`: the time as the job's record has it. Set only if the event tells all that a
    list shows of the change, so that nobody must look at the job: an `added` one has no tags and no workspace, and no
    attempt of the others was made before."""
    priority: int = 0
    """Of an event with `recorded_ms`."""
    is_gone: bool = False
    """Of `completed`: the job was not kept."""
