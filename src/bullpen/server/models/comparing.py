"""Two runs beside each other, as they are shown."""

from bullpen.server.models.base import Shown
from bullpen.server.models.runs import ResultShown
from bullpen.server.models.steps import TaskStepShown


class SideShown(Shown):
    run_id: str
    task_id: str
    state: str
    prompt: str
    model: str
    steps: int
    """Calls of models and tools on record."""
    spent: int
    """Micro-credits."""
    forked_from: str | None
    """The task whose first steps it has."""
    result: ResultShown | None


class StepPairShown(Shown):
    place: int
    differs: list[str]
    """Empty where both are the same; `missing` where only one has a step."""
    one: TaskStepShown | None
    other: TaskStepShown | None


class ComparisonShown(Shown):
    one: SideShown
    other: SideShown
    differs: list[str]
    """Of what they were asked: prompt, model, system, tools."""
    parts_at: int | None
    """The first place where they differ; null if nowhere."""
    differing: int
    """Of all places."""
    items: list[StepPairShown]
    next_place: int | None
    """The `start` of the next page; null at the end."""
