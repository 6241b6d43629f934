"""What is asked of agents: the bodies of requests about tasks. Amounts are micro-credits unless told otherwise."""

from typing import Annotated

import msgspec
from pydantic import Field

from bullpen.agents.llm.words import Message, Role
from bullpen.agents.words import TaskRequest
from bullpen.server.models.base import Body
from bullpen.server.models.records import Label

_WORDS = 1_000
ShortText = Annotated[str, Field(max_length=_WORDS, pattern=r"^[^\x00]*$")]


class CallBody(Body):
    id: Label
    name: Label
    arguments: str = "{}"


class CallResultBody(Body):
    call_id: Label
    text: str
    is_error: bool = False


class MessageBody(Body):
    """Something that was said before."""

    role: Annotated[Role, Field(strict=False)]
    text: str = ""
    calls: list[CallBody] = Field(default_factory=list, max_length=_WORDS)
    results: list[CallResultBody] = Field(default_factory=list, max_length=_WORDS)

    def message(self) -> Message:
        return msgspec.convert(self.model_dump(mode="json"), Message)


class SandboxBody(Body):
    """What the task's code runs in; what is not told is as the deployment has it."""

    type: ShortText | None = None
    memory_mb: int | None = None
    cpus: float | None = None
    disk_mb: int | None = None
    timeout: float | None = None
    network: bool | None = None
    packages: list[ShortText] | None = Field(default=None, max_length=_WORDS)


class TaskBody(Body):
    """What is asked of agents. What is left open is decided by the kind of task, and told with the task."""

    prompt: str
    task_type: ShortText = "agent_run"
    tenant: Label | None = None
    """Who pays: the caller's own, or for callers without one any; `default` if not told."""
    workspace: Label | None = None
    """A part of the tenant."""
    model: Label | None = None
    system: str = ""
    history: list[MessageBody] = Field(default_factory=list, max_length=_WORDS)
    files: list[Label] = Field(default_factory=list, max_length=_WORDS)
    tools: list[Label] | None = Field(default=None, max_length=_WORDS)
    sandbox: SandboxBody | None = None
    priority: ShortText | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    """Of one answer."""
    max_total_tokens: int | None = None
    """Of all calls."""
    max_steps: int = 50
    max_tool_calls: int = 100
    max_credits: int | None = None
    """Whole credits; twice the estimate if not told."""
    timeout: float | None = None
    """Seconds of work."""
    stream: bool = True
    questions: list[str] = Field(default_factory=list, max_length=_WORDS)
    """Of wide research, with the next two."""
    width: int = 5
    needs_answers: int | None = None
    metadata: dict[str, str] = Field(default_factory=dict)

    def request(self) -> TaskRequest:
        plain = self.model_dump(exclude={"tenant", "history"}, exclude_unset=True)
        history = tuple(one.message() for one in self.history)
        return msgspec.structs.replace(msgspec.convert(plain, TaskRequest), history=history)


class CancelBody(Body):
    reason: ShortText = ""


class AnswerBody(Body):
    """Either a result, or again."""

    result: str | None = Field(default=None, max_length=100_000)
    """The call was made, and this came of it."""
    again: bool = False
    """It was not made: make it."""
    is_error: bool = False


class EditBody(Body):
    place: int = Field(ge=0, le=1_000_000_000)
    text: str


class ForkBody(Body):
    at: int = Field(ge=0, le=1_000_000_000)
    """The place of its journal from which it goes another way."""
    prompt: str | None = None
    """Another one; begins at place 0."""
    edits: list[EditBody] = Field(default_factory=list, max_length=_WORDS)
    """Other texts in place of what was said or found before."""
    dry: bool = False
    """No tool is called: each answers what it answered the task."""
