"""The journal of a task, as it is shown."""

from bullpen.agents.llm.words import Role
from bullpen.agents.loop.steps import StepKind
from bullpen.server.models.base import Shown


class CallShown(Shown):
    """A model asked for a tool."""

    id: str
    name: str
    arguments: str
    """JSON, as the model wrote it."""


class UsageShown(Shown):
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


class TaskStepShown(Shown):
    place: int
    what: StepKind
    name: str
    state: str
    attempts: int
    started_ms: int
    ended_ms: int
    text: str | None = None
    """Of a model, a tool or a person; of a fan-out the ids of its tasks, one a line. Null while it is open."""
    model: str | None = None
    calls: list[CallShown] | None = None
    """What a model asked for."""
    usage: UsageShown | None = None
    call_id: str | None = None
    """The call that a tool was used for."""
    is_error: bool | None = None


class CallResultShown(Shown):
    call_id: str
    text: str
    is_error: bool


class MessageShown(Shown):
    """Something that was said; of the shape in which `history` of a task takes it."""

    role: Role
    text: str
    calls: list[CallShown]
    results: list[CallResultShown]


class TaskMessages(Shown):
    items: list[MessageShown]
    next_start: int | None
    """The `start` of the next page; null at the end."""


class TaskSteps(Shown):
    items: list[TaskStepShown]
    next_place: int | None
    """The `start` of the next page; null at the end."""
