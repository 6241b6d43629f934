"""How a task ends: its result, its state, its credits and the last line of its log become true together."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.agents.loop.booking import Cost, settle_all
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.loop.tally import Tally, tally
from bullpen.agents.loop.words import Stop
from bullpen.agents.words import EXIT_CODES, Artifact, TaskProblem, TaskResult, TaskTerms, TokensUsed, to_plain
from bullpen.errors import WrongState
from bullpen.observing import TaskEnd
from bullpen.records.credits.budget import Budget
from bullpen.records.credits.ledger import Ledger
from bullpen.records.database import Database
from bullpen.records.files.on import artifacts_of
from bullpen.records.journal import JournalOn, read_all
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import NewProgress, ProgressKind, Task, TaskState

_encode = msgspec.json.Encoder().encode
_STATES = {
    Stop.CANCELLED: TaskState.CANCELLED,
    Stop.TIMEOUT: TaskState.TIMEOUT,
    Stop.ERROR: TaskState.FAILED,
    Stop.CREDITS: TaskState.FAILED,
}
_TOLD = {TaskState.COMPLETED: ProgressKind.JOB_COMPLETED, TaskState.CANCELLED: ProgressKind.JOB_CANCELLED}
_MOST_TOLD = 500
"""Artifacts in a result."""

Redact = Callable[[Any], Any]
"""A value without the secrets in it."""


class Ending(msgspec.Struct, frozen=True):
    """Why a task ends, and what is said of it."""

    stop: Stop
    problem: TaskProblem | None = None

    @property
    def state(self) -> TaskState:
        return _STATES.get(self.stop, TaskState.COMPLETED)


def without_secrets(problem: TaskProblem, redact: Redact) -> TaskProblem:
    """As it may be kept and told: what an error says may have anything in it."""
    return msgspec.convert(redact(to_plain(problem)), TaskProblem)


class ChildrenGoOn(Exception):
    """Tasks that this one made are not over, and spend its credits: they end first. Nothing was changed."""

    def __init__(self, children: Sequence[Task]) -> None:
        super().__init__(f"{len(children)} tasks that it made go on")
        self.children = children


def budget_of(task: Task, terms: TaskTerms) -> Budget:
    return Budget(task=task.id, tenant=task.tenant, payer=terms.payer, most=terms.most, above=terms.above)


async def end_activation(
    recorder: Recorder, database: Database, task: Task, ending: Ending, *, redact: Redact
) -> TaskResult:
    """By the worker that has it. LeaseLost if another has it, or it has ended; ChildrenGoOn."""
    used = tally(recorder.entries)
    async with database.reading(brief=True) as connection:
        made = await _made_by(connection, task)
    place = max((entry.place for entry in recorder.entries), default=-1) + 1
    now_ms = database.clock.now_ms()

    async def check(connection: AsyncConnection) -> None:
        await _check_children(connection, database, task)

    async def move(connection: AsyncConnection, result: bytes) -> None:
        await _move(connection, database, task, ending, result, redact)

    ended = await recorder.end(
        lambda cost: _encode(_result(task, ending, used, cost, place, now_ms, made, redact)), move, first=check
    )  # fmt: skip
    return msgspec.json.decode(ended, type=TaskResult)


async def end_from_outside(database: Database, task_id: str, ending: Ending, *, redact: Redact) -> TaskResult:
    """By somebody else, whoever works on it: that one finds that it is over with its next step.

    WrongState if it is; ChildrenGoOn.
    """
    async with database.writing(brief=True) as connection:
        journal = JournalOn(connection, database)
        await journal.open(task_id)
        # Whoever works on it ends it by its journal too: one of the two is the first, and the other sees it.
        if await journal.has_ended(task_id):
            raise WrongState(f"task {task_id!r} is over")
        task = await RunsOn(connection, database).task(task_id)
        terms = msgspec.json.decode(task.terms, type=TaskTerms)
        await _check_children(connection, database, task)
        await journal.stop(task.id)
        entries = await read_all(journal, task.id)
        cost = await settle_all(Ledger(connection, database), task.id, budget_of(task, terms))
        place = max((entry.place for entry in entries), default=-1) + 1
        made = await _made_by(connection, task)
        result = _result(task, ending, tally(entries), cost, place, database.clock.now_ms(), made, redact)
        await _move(connection, database, task, ending, _encode(result), redact)
    return result


def end_of(task: Task, result: TaskResult) -> TaskEnd:
    """As it is counted."""
    return TaskEnd(
        task.kind,
        result.status,
        is_run=task.parent is None,
        micro_credits=result.credits_charged,
        refunded=result.credits_refunded,
        estimate=msgspec.json.decode(task.terms, type=TaskTerms).estimate,
    )


async def _check_children(connection: AsyncConnection, database: Database, task: Task) -> None:
    """Before its credits are looked at: what it made and is over has changed them for the last time."""
    if children := await RunsOn(connection, database).children_going(task):
        raise ChildrenGoOn(children)


async def _made_by(connection: AsyncConnection, task: Task) -> tuple[Artifact, ...]:
    return tuple(
        Artifact(
            id=one.id,
            type=one.type,
            name=one.name,
            url=f"/v1/files/{one.id}/content",
            size_bytes=one.size,
            mime_type=one.mime,
            metadata=one.metadata,
        )
        for one in await artifacts_of(connection, task.id, limit=_MOST_TOLD)
    )


async def _move(
    connection: AsyncConnection, database: Database, task: Task, ending: Ending, result: bytes, redact: Redact
) -> None:
    """Its output is kept as it is for whoever asked; the log, which more people read, has it without secrets."""
    told = redact(to_plain(msgspec.json.decode(result, type=TaskResult)))
    line = NewProgress(_TOLD.get(ending.state, ProgressKind.JOB_FAILED), {"result": told})
    # Without secrets here too: what is searched can be guessed letter by letter.
    problem = "{code} {message}".format_map(told["error"]) if told["error"] else ""
    await RunsOn(connection, database).move(task.id, ending.state, line, outcome=result, problem=problem)


def _result(
    task: Task,
    ending: Ending,
    used: Tally,
    cost: Cost,
    place: int,
    now_ms: int,
    made: tuple[Artifact, ...],
    redact: Redact,
) -> TaskResult:
    tokens = list(used.usage.values())
    return TaskResult(
        job_id=task.id,
        run_id=task.run,
        task_id=task.id,
        status=ending.state,
        exit_code=EXIT_CODES.get(ending.stop, 1 if ending.problem else 0),
        stop_reason=ending.stop,
        output=used.text,
        artifacts=made,
        error=None if ending.problem is None else without_secrets(ending.problem, redact),
        tokens_used=TokensUsed(
            input_tokens=sum(one.input_tokens for one in tokens),
            output_tokens=sum(one.output_tokens for one in tokens),
            total_tokens=sum(one.total_tokens for one in tokens),
            by_model=used.usage,
        ),
        credits_charged=cost.charged,
        credits_refunded=cost.refunded,
        started_ms=task.started_ms,
        completed_ms=now_ms,
        duration_ms=0 if task.started_ms is None else now_ms - task.started_ms,
        steps_executed=used.steps,
        tool_calls_made=used.tool_calls,
        llm_calls_made=used.steps,
        final_checkpoint_id=f"{task.id}@{place}" if place else None,
    )
