"""What belongs to one job, as it is shown."""

from typing import Any

from pydantic import Field

from bullpen.job.state import State
from bullpen.server.models.base import Shown
from bullpen.server.models.jobs import FailureShown


class LogShown(Shown):
    lines: list[str]
    total: int


class StepShown(Shown):
    place: int
    name: str
    kind: str
    state: str
    value: Any
    failure: FailureShown | None
    until_ms: int | None
    attempts: int
    started_ms: int
    ended_ms: int
    epoch: int


class StepsShown(Shown):
    items: list[StepShown]
    next_place: int | None
    """Where the next page starts; null at the end."""


class ChildShown(Shown):
    queue: str
    id: str
    child_state: str
    state: State | None
    """Null for a job that is gone."""
    name: str | None
    result: Any
    reason: str | None


class ChildrenShown(Shown):
    items: list[ChildShown]
    next_cursor: str | None


class FlowShown(Shown):
    queue: str
    id: str
    name: str | None
    state: State | None
    has_children: bool = False
    children: list["FlowShown"] = Field(default_factory=list)
    next_cursor: str | None = None
    is_cut: bool = False
    """Its children were not looked for, since the tree has too many jobs; of the top: those of some were not."""
