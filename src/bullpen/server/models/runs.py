"""Tasks and runs of agents: bodies and answers. Amounts are micro-credits unless told otherwise."""

from typing import Annotated, Any

import msgspec
from pydantic import Field

from bullpen.agents.llm.words import Message, Role
from bullpen.agents.words import TaskRequest, TaskResult
from bullpen.records.runs.words import ProgressEvent, TaskState
from bullpen.server.models.base import Body, Shown
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


class SubmittedShown(Shown):
    task_id: str
    run_id: str
    status: str
    estimated_wait_seconds: float | None
    """By what was measured lately; null where nothing was."""


class ForkedShown(SubmittedShown):
    note: str | None
    """What it lacks of the run that it was forked from, as files that are gone; null if it has all."""


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


class ProblemShown(Shown):
    code: str
    message: str
    retryable: bool
    user_facing_message: str


class TokensShown(Shown):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    by_model: dict[str, dict[str, int]]


class ArtifactShown(Shown):
    id: str
    type: str
    name: str
    url: str
    size_bytes: int
    mime_type: str
    metadata: dict[str, Any]


class ResultShown(Shown):
    job_id: str
    run_id: str
    task_id: str
    status: str
    exit_code: int
    stop_reason: str
    output: str
    artifacts: list[ArtifactShown]
    error: ProblemShown | None
    tokens_used: TokensShown
    credits_charged: int
    credits_refunded: int
    started_ms: int | None
    completed_ms: int
    duration_ms: int
    steps_executed: int
    tool_calls_made: int
    llm_calls_made: int
    final_checkpoint_id: str | None = None


class CancelShown(Shown):
    run_id: str
    state: TaskState
    results: list[ResultShown]


class BudgetShown(Shown):
    estimate: int
    """Set aside when it was asked for."""
    most: int
    """All that it may spend."""
    available: int
    held: int
    spent: int


class TaskShown(Shown):
    task_id: str
    run_id: str
    tenant: str
    parent: str | None
    task_type: str
    state: TaskState
    queue: str
    prompt: str
    model: str
    system: str
    tools: list[str] | None
    """Null: those of its kind that its worker has."""
    files: list[str]
    """Ids of its input files."""
    history_messages: int
    """How many were said before the prompt; its `messages` begin with them."""
    sandbox: dict[str, Any] | None
    """What it asked for; null: as its worker has it."""
    temperature: float | None
    """Null: as its provider has it."""
    stream: bool
    max_tokens: int
    max_total_tokens: int | None
    """Null: as many as its credits pay."""
    max_steps: int
    max_tool_calls: int
    timeout_s: float
    max_retries: int
    retries: int
    """How often it was put back to be gone on with, by its run's log."""
    questions: list[str]
    width: int
    needs_answers: int | None
    priority: int
    metadata: dict[str, str]
    forked_from: str | None
    is_dry: bool
    """It calls no tool: each answers what it answered the task that this one is forked from."""
    question: dict[str, Any] | None
    """What a person is asked, while it waits for that."""
    result: ResultShown | None
    budget: BudgetShown
    created_ms: int
    started_ms: int | None
    finished_ms: int | None


class RunHead(Shown):
    run_id: str
    tenant: str
    workspace: str | None
    created_by: str
    state: TaskState
    last_event: int
    created_ms: int
    finished_ms: int | None


class RunRow(RunHead):
    is_asking: bool
    """A person is to answer one of its tasks; what else is suspended waits for other agents."""
    task_id: str | None
    task_type: str | None
    model: str | None
    prompt: str
    """Its beginning."""
    started_ms: int | None
    spent: int
    """By the task that it began with, so far."""


class RunShown(RunHead):
    tasks: list[TaskShown]


class RunEventShown(Shown):
    number: int
    run_id: str
    task_id: str
    kind: str
    at_ms: int
    data: dict[str, Any]


class RunEvents(Shown):
    items: list[RunEventShown]
    cursor: int
    """Where to go on: give it as `after`."""
    state: TaskState
    is_over: bool
    """Nothing comes after these."""


def shown_event(event: ProgressEvent) -> dict[str, Any]:
    """The same in lists, streams and sockets."""
    return {
        "number": event.number,
        "run_id": event.run,
        "task_id": event.task,
        "kind": event.kind,
        "at_ms": event.at_ms,
        "data": event.data,
    }


def shown_result(result: TaskResult) -> ResultShown:
    return ResultShown.model_validate(msgspec.to_builtins(result))
