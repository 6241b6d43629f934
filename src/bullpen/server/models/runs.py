"""Tasks and runs of agents as they are shown. Amounts are micro-credits."""

from typing import Any

import msgspec

from bullpen.agents.words import TaskResult
from bullpen.records.runs.words import ProgressEvent, TaskState
from bullpen.server.models.base import Shown


class SubmittedShown(Shown):
    task_id: str
    run_id: str
    status: str
    estimated_wait_seconds: float | None
    """By what was measured lately; null where nothing was."""


class ForkedShown(SubmittedShown):
    note: str | None
    """What it lacks of the run that it was forked from, as files that are gone; null if it has all."""


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
