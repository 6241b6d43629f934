"""Bodies that do something to jobs and queues, and what comes of it."""

from typing import Annotated, Any

from pydantic import Field

from bullpen.job.state import State
from bullpen.server.bulk_actions import Action
from bullpen.server.models.adding import Seconds, Word
from bullpen.server.models.base import Body, Shown

StateWord = Annotated[State, Field(strict=False)]
_MANY = 1_000_000_000


class RefBody(Body):
    queue: Word
    id: Word


class ActionsBody(Body):
    action: Annotated[Action, Field(strict=False)]
    jobs: list[RefBody] = Field(min_length=1, max_length=500)


class Outcome(Shown):
    queue: str
    id: str
    outcome: str
    """`done`, or the code of what went wrong."""


class Outcomes(Shown):
    items: list[Outcome]
    done: int


class CancelBody(Body):
    reason: str = Field(default="", max_length=1_000)
    children: bool = False


class Cancelled(Shown):
    outcome: str


class SignalBody(Body):
    name: Word
    payload: Any = None


class Delivered(Shown):
    outcome: str


class ChangeBody(Body):
    data: Any = None
    delay: Seconds | None = None
    priority: int | None = Field(default=None, ge=0, le=2_097_151)


class DrainBody(Body):
    delayed: bool = False


class CleanBody(Body):
    state: StateWord
    older_than: Seconds = 0
    limit: int = Field(default=_MANY, ge=1, le=_MANY)


class ObliterateBody(Body):
    force: bool = False


class RetryAllBody(Body):
    state: StateWord = State.FAILED
    limit: int = Field(default=_MANY, ge=1, le=_MANY)


class PromoteAllBody(Body):
    limit: int = Field(default=10_000, ge=1, le=1_000_000)
    cursor: str | None = Field(default=None, max_length=2_000)
    """Of the answer before: goes on where that ended, with what was delayed when the first call began."""


class Promoted(Shown):
    count: int
    next_cursor: str | None = None
    """There are more than the limit: with this cursor the next call goes on."""


class FailedFilter(Body):
    """Failed jobs for which all of this is true; what is not given is not asked."""

    queue: Word | None = None
    tenant: Word | None = None
    workspace: Word | None = None
    name: Word | None = None
    tag: Word | None = None
    fingerprint: Word | None = None
    error_kind: Word | None = None
    since_ms: int | None = Field(default=None, ge=0, lt=2**53)
    until_ms: int | None = Field(default=None, ge=0, lt=2**53)
    q: Word | None = None


class DeadLettersBody(Body):
    """By a filter, or by name."""

    filter: FailedFilter | None = None
    jobs: list[RefBody] | None = Field(default=None, min_length=1, max_length=500)
    limit: int = Field(default=10_000, ge=1, le=10_000)
    cursor: str | None = Field(default=None, max_length=2_000)
    """Of the answer before: the filter goes on where that ended."""


class DeadLettersDone(Shown):
    done: int
    """How many were retried or removed."""
    passed_over: int
    """How many somebody else was quicker with, or that are in use."""
    next_cursor: str | None = None
    """There are more than the limit: with this cursor the next call goes on."""
