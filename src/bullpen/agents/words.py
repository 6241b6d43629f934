"""What is asked of agents, on what terms, and what came of it."""

from typing import Any

import msgspec

from bullpen.agents.llm.words import Message, Usage
from bullpen.agents.loop.words import Stop
from bullpen.agents.sandbox.asking import SandboxAsked
from bullpen.errors import AgentError, BudgetSpent, BullpenError, CreditsShort, UsageError
from bullpen.records.credits.budget import Budget

MAX_PROMPT = 100_000
"""Characters."""
MOST_TOKENS = 1_000_000_000
"""Of all calls of a task, unless told otherwise: its credits end it before."""


class TaskRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody asks agents to do."""

    prompt: str
    task_type: str = "agent_run"
    workspace: str | None = None
    """A part of the tenant that it belongs to, by which runs and jobs are told apart."""
    model: str | None = None
    """Of the table of models; the usual one if not told."""
    system: str = ""
    """What the agent is told before all else."""
    history: tuple[Message, ...] = ()
    """What was said before the prompt."""
    files: tuple[str, ...] = ()
    """Ids of input files, which it finds in its workspace."""
    tools: tuple[str, ...] | None = None
    """Which it may use; those of its kind if not told."""
    sandbox: SandboxAsked | None = None
    """What its code runs in; as the deployment has it if not told."""
    priority: str | None = None
    """critical, high, normal, low or bulk."""
    temperature: float | None = None
    max_tokens: int | None = None
    """Of one answer of the model; 4,096 if not told, or as many as it can write."""
    max_total_tokens: int | None = None
    """Read and written, of all calls: none is made after it."""
    max_steps: int = 50
    max_tool_calls: int = 100
    """0: it is told of no tool."""
    max_credits: int | None = None
    """Whole credits; twice the estimate if not told."""
    timeout: float | None = None
    """Seconds of work; that of its kind if not told."""
    stream: bool = True
    """Whether the model's words are told as they come."""
    questions: tuple[str, ...] = ()
    """Of wide research: what agents work on side by side; the model makes them if not told."""
    width: int = 5
    """Of wide research: at most so many questions."""
    needs_answers: int | None = None
    """Of wide research: how many questions must be answered; one if not told."""
    metadata: dict[str, str] = {}


class TaskTerms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request with all that was left open decided: what a task is done by, whoever does it."""

    model: str
    workspace: str | None = None
    system: str = ""
    history: tuple[Message, ...] = ()
    files: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = ()
    """None: those of its kind that its worker has."""
    sandbox: SandboxAsked | None = None
    temperature: float | None = None
    reply_tokens: int = 4_096
    steps: int = 50
    tool_calls: int = 100
    tokens: int = MOST_TOKENS
    timeout_s: float
    attempts: int
    priority: int
    stream: bool = True
    questions: tuple[str, ...] = ()
    width: int = 5
    needs_answers: int | None = None
    metadata: dict[str, str] = {}
    estimate: int
    """Micro-credits that are set aside at once."""
    most: int
    """Micro-credits, of all calls together."""
    payer: str
    """The account that pays."""
    above: Budget | None = None
    """Of the task that pays, where one does."""
    forked_from: str | None = None
    """The task whose first steps it has."""
    is_dry: bool = False
    """Whether its tools only answer what they answered that task."""


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """What whoever asked is told at once."""

    run_id: str
    task_id: str
    state: str
    estimated_wait_s: float | None
    """By what was measured lately; None where nothing was."""
    note: str | None = None
    """Of a fork: what it lacks of the run that it was forked from."""


class TaskProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a task did not come to an answer."""

    code: str
    """E001 to E014, or E999."""
    message: str
    """For operators; the stack is in the job."""
    retryable: bool
    user_facing_message: str
    """Names nothing that is nobody's business."""


class TokensUsed(msgspec.Struct, frozen=True, kw_only=True):
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    by_model: dict[str, Usage] = {}


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a task made."""

    id: str
    type: str
    """file, image, document, slide_deck or code."""
    name: str
    url: str
    """Its bytes, at the server."""
    size_bytes: int
    mime_type: str
    metadata: dict[str, Any] = {}


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a task, however it ended."""

    job_id: str = ""
    """Of the queue: the task's own."""
    run_id: str
    task_id: str
    status: str
    """completed, failed, cancelled or timeout."""
    exit_code: int
    """0 unless it failed, took too long (124) or was cancelled (130)."""
    stop_reason: str
    """`answer` if it came to one; `max_steps` and its like if it did all that it may without."""
    output: str
    """The model's last words; `messages` of agents and server have all that was said."""
    artifacts: tuple[Artifact, ...] = ()
    """What it made, as it came: at most 500, the run's list has all."""
    error: TaskProblem | None
    tokens_used: TokensUsed
    credits_charged: int
    """Micro-credits."""
    credits_refunded: int
    """What went back to whoever pays, of all that was set aside for it."""
    started_ms: int | None
    completed_ms: int
    duration_ms: int
    steps_executed: int
    tool_calls_made: int
    llm_calls_made: int
    final_checkpoint_id: str | None = None
    """The last place of its journal, by which it can be forked."""


_CREDITS = "There are not enough credits to go on."
_STOPPED = {
    Stop.CREDITS: ("E003", _CREDITS),
    Stop.TIMEOUT: ("E011", "The task took longer than it may."),
    Stop.CANCELLED: ("E012", "The task was cancelled."),
}
EXIT_CODES = {Stop.ANSWER: 0, Stop.CANCELLED: 130, Stop.TIMEOUT: 124}


def problem_of(error: BaseException) -> TaskProblem:
    """An error as a run's readers know it."""
    told = str(error) or type(error).__name__
    if isinstance(error, AgentError):
        return TaskProblem(
            code=error.agent_code,
            message=told,
            retryable=error.retryable,
            user_facing_message=error.safe_message,
        )
    if isinstance(error, UsageError):
        return TaskProblem(code="E001", message=told, retryable=False, user_facing_message=told)
    if isinstance(error, BullpenError):
        return TaskProblem(code="E999", message=told, retryable=True, user_facing_message=AgentError.safe_message)
    message = f"{type(error).__name__}: {told}"
    return TaskProblem(code="E999", message=message, retryable=True, user_facing_message=AgentError.safe_message)


def problem_at(stop: Stop, short: CreditsShort | None = None) -> TaskProblem | None:
    """Of a loop that was stopped; None where it only did all that it may. A budget says when it renews."""
    if isinstance(short, BudgetSpent):
        return problem_of(short)
    if stop not in _STOPPED:
        return None
    code, text = _STOPPED[stop]
    return TaskProblem(code=code, message=text, retryable=False, user_facing_message=text)


def to_plain(value: object) -> Any:
    return msgspec.to_builtins(value)
