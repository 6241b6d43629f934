"""Kinds of tasks: which queue carries each, how long it may take, how often it is tried, and what it may use."""

import math
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction

import msgspec

from bullpen.errors import BadOption
from bullpen.job.options import exponential, fixed
from bullpen.job.spec import Backoff

_MINUTE, _HOUR = 60, 3_600
_LONGEST_PAUSE_S = 300
_JITTER = 0.2


class TaskKind(StrEnum):
    """What is asked for."""

    AGENT_RUN = "agent_run"
    TOOL_EXECUTION = "tool_execution"
    WIDE_RESEARCH = "wide_research"
    SLIDE_GENERATION = "slide_generation"
    DOCUMENT_GENERATION = "document_generation"
    DATA_ANALYSIS = "data_analysis"


class Urgency(StrEnum):
    """How soon; a smaller number in the queue runs first."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"
    BULK = "bulk"

    @property
    def priority(self) -> int:
        return _PRIORITIES[self]


_PRIORITIES = {Urgency.CRITICAL: 1, Urgency.HIGH: 3, Urgency.NORMAL: 5, Urgency.LOW: 10, Urgency.BULK: 20}


class QueueRules(msgspec.Struct, frozen=True, kw_only=True):
    """A queue that carries tasks."""

    concurrency: int
    """At once, of all workers together."""
    retries: int
    backoff: Backoff
    timeout_s: int


def _growing(seconds: float) -> Backoff:
    return exponential(seconds, jitter=_JITTER, max_delay=_LONGEST_PAUSE_S)


QUEUES = {
    "agent-critical": QueueRules(concurrency=10, retries=5, backoff=_growing(1), timeout_s=2 * _HOUR),
    "agent-standard": QueueRules(concurrency=50, retries=3, backoff=_growing(5), timeout_s=2 * _HOUR),
    "tools-fast": QueueRules(concurrency=100, retries=3, backoff=fixed(1), timeout_s=5 * _MINUTE),
    "research-wide": QueueRules(concurrency=20, retries=2, backoff=_growing(10), timeout_s=4 * _HOUR),
    "generation-slides": QueueRules(concurrency=20, retries=2, backoff=_growing(5), timeout_s=30 * _MINUTE),
    "bulk-operations": QueueRules(concurrency=10, retries=5, backoff=_growing(30), timeout_s=24 * _HOUR),
}
"""In the order in which a worker should serve them."""


class KindRules(msgspec.Struct, frozen=True, kw_only=True):
    queue: str
    urgency: Urgency = Urgency.NORMAL
    timeout_s: int
    credits: int
    """What it is expected to cost, before its prompt is looked at."""
    tools: tuple[str, ...] | None
    """Those of the built-in ones that it may use; None: all that there are."""


KINDS = {
    TaskKind.AGENT_RUN: KindRules(queue="agent-standard", timeout_s=2 * _HOUR, credits=10, tools=None),
    TaskKind.TOOL_EXECUTION: KindRules(
        queue="tools-fast", urgency=Urgency.HIGH, timeout_s=5 * _MINUTE, credits=2, tools=None
    ),
    TaskKind.WIDE_RESEARCH: KindRules(
        queue="research-wide",
        timeout_s=4 * _HOUR,
        credits=50,
        tools=("web_search", "browser_action", "file_write", "generate_document"),
    ),
    TaskKind.SLIDE_GENERATION: KindRules(
        queue="generation-slides",
        timeout_s=30 * _MINUTE,
        credits=20,
        tools=("generate_slides", "generate_image", "file_write"),
    ),
    TaskKind.DOCUMENT_GENERATION: KindRules(
        queue="generation-slides",
        timeout_s=30 * _MINUTE,
        credits=15,
        tools=("generate_document", "file_write", "web_search"),
    ),
    TaskKind.DATA_ANALYSIS: KindRules(
        queue="agent-standard",
        timeout_s=_HOUR,
        credits=25,
        tools=("code_execute", "file_read", "file_write", "generate_image"),
    ),
}


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Where a task goes, and on what terms."""

    queue: str
    priority: int
    timeout_s: float
    attempts: int


def route(kind: TaskKind, urgency: Urgency | None = None) -> Route:
    """Critical and bulk ones have queues of their own, whatever they are."""
    rules = KINDS[kind]
    urgency = urgency or rules.urgency
    queue, timeout_s = rules.queue, rules.timeout_s
    if urgency in (Urgency.CRITICAL, Urgency.BULK):
        queue = "agent-critical" if urgency is Urgency.CRITICAL else "bulk-operations"
        timeout_s = QUEUES[queue].timeout_s
    return Route(
        queue=queue, priority=urgency.priority, timeout_s=timeout_s, attempts=1 + QUEUES[queue].retries
    )  # fmt: skip


def urgency_at(priority: int) -> Urgency:
    """The one that has this priority in the queue; the next less urgent one, or the last, if none has."""
    return next((one for one in Urgency if one.priority >= priority), Urgency.BULK)


def estimate(kind: TaskKind, prompt: str) -> int:
    """Whole credits that the task is expected to cost: a longer prompt costs more."""
    return math.ceil(KINDS[kind].credits * (1 + Fraction(len(prompt), 10_000)))


def usual_tools(kind: TaskKind, there: Sequence[str]) -> tuple[str, ...]:
    """Those that it may use unless told otherwise, of those that there are."""
    usual = KINDS[kind].tools
    return tuple(there) if usual is None else tuple(name for name in usual if name in there)


def kind_of(word: str) -> TaskKind:
    """BadOption names those that there are."""
    try:
        return TaskKind(word)
    except ValueError:
        raise BadOption(f"task_type: one of {', '.join(TaskKind)}, not {word!r}") from None


def urgency_of(word: str) -> Urgency:
    try:
        return Urgency(word)
    except ValueError:
        raise BadOption(f"priority: one of {', '.join(Urgency)}, not {word!r}") from None
