"""The life of a job as it is shown: moments, and the activations that they belong to."""

from enum import StrEnum

from bullpen.server.models.base import Shown


class ActivationOutcome(StrEnum):
    """How an activation ended."""

    RUNNING = "running"
    """It has not."""
    COMPLETED = "completed"
    FAILED = "failed"
    """For good."""
    RETRIED = "retried"
    """It failed, and another attempt was to follow."""
    LOST = "lost"
    """The job lost its worker; no attempt used."""
    SET_ASIDE = "set-aside"
    """Postponed, parked, or handed back; no attempt used."""
    WAITING_CHILDREN = "waiting-children"
    UNKNOWN = "unknown"
    """It ended, and nothing that is kept tells how."""


class Activation(Shown):
    """One time that the job was claimed."""

    number: int
    """The epoch: 1 for the first."""
    started_ms: int
    ended_ms: int | None = None
    """Null while it runs, and where nothing tells."""
    outcome: ActivationOutcome
    error: str | None = None
    error_kind: str | None = None
    stack: str | None = None
    """Null too where it cannot be told which of the job's stacks is its own."""
    crash: str | None = None
    """How the worker was lost."""
    worker: str | None = None
    """Of the newest alone: of those before it nothing is kept."""
    next_ms: int | None = None
    """When the job was to run again."""


class Moment(Shown):
    at_ms: int
    kind: str
    """An event's kind; `retried` for a retry by hand, `due` for when a delayed job runs."""
    detail: str | None = None
    activation: int | None = None
    """The number of the one that began or ended here."""
