"""Two runs beside each other: where their journals part, and what each did from there on.

Steps stand beside each other by their place. Up to where the runs part these are the same steps; behind it they are
those that each run happened to have there. Ids of calls and tasks, and times, are each run's own:
they make no difference.
"""

from typing import Any

import msgspec

from bullpen.agents.llm.words import Reply, ToolResult
from bullpen.agents.loop.steps import StepKind, what_of
from bullpen.agents.loop.words import Answer
from bullpen.agents.words import TaskResult, TaskTerms
from bullpen.errors import BadOption, RecordMissing
from bullpen.job.entries import JournalEntry
from bullpen.records.credits.budget import account_of
from bullpen.records.journal import SqlJournal, read_all
from bullpen.records.records import Records
from bullpen.records.runs.words import Task

_decode = msgspec.json.decode
MISSING = "missing"
"""What differs where only one of them has a step."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two."""

    run_id: str
    task_id: str
    state: str
    prompt: str
    model: str
    steps: int
    """Calls of models and tools on record."""
    spent: int
    """Micro-credits. A fork does not pay for the steps that it was given."""
    forked_from: str | None
    """The task whose first steps it has."""
    result: TaskResult | None
    """None: it is not over."""


class StepPair(msgspec.Struct, frozen=True, kw_only=True):
    """What both have at a place."""

    place: int
    one: JournalEntry | None
    other: JournalEntry | None
    differs: tuple[str, ...]
    """name, state, text, calls, is_error, status, stop_reason or error; `missing` where only one has a step."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    one: Side
    other: Side
    differs: tuple[str, ...]
    """Of what they were asked: prompt, model, system, tools."""
    parts_at: int | None
    """The first place where they differ; None if nowhere."""
    pairs: tuple[StepPair, ...]
    """By place."""


async def compare(records: Records, run_id: str, other_id: str, *, tenant: str | None = None) -> Comparison:
    """RecordMissing, also for another tenant's; BadOption for two runs of different tenants."""
    one, other = await _first_tasks(records, run_id, other_id, tenant)
    entries = [await read_all(SqlJournal(records.database), task.id) for task in (one, other)]
    budgets = await records.credits.budgets([account_of(one.id), account_of(other.id)])
    spent = {name: account.spent for name, account in budgets.items()}
    pairs = _paired(*entries)
    return Comparison(
        one=_side(one, entries[0], spent.get(account_of(one.id), 0)),
        other=_side(other, entries[1], spent.get(account_of(other.id), 0)),
        differs=_asked_otherwise(one, other),
        parts_at=next((pair.place for pair in pairs if pair.differs), None),
        pairs=pairs,
    )


async def _first_tasks(records: Records, run_id: str, other_id: str, tenant: str | None) -> tuple[Task, Task]:
    runs = [await records.runs.get(name, tenant=tenant) for name in (run_id, other_id)]
    if runs[0].tenant != runs[1].tenant:
        raise BadOption("with: a run of the same tenant")
    firsts = await records.runs.first_tasks([run_id, other_id])
    for name in (run_id, other_id):
        if name not in firsts:
            raise RecordMissing(f"run {name!r} has no task")
    return firsts[run_id], firsts[other_id]


def _side(task: Task, entries: list[JournalEntry], spent: int) -> Side:
    terms = _decode(task.terms, type=TaskTerms)
    return Side(
        run_id=task.run,
        task_id=task.id,
        state=task.state,
        prompt=task.prompt,
        model=terms.model,
        steps=sum(what_of(entry) in {StepKind.LLM, StepKind.TOOL} for entry in entries),
        spent=spent,
        forked_from=terms.forked_from,
        result=None if task.outcome is None else _decode(task.outcome, type=TaskResult),
    )


def _asked_otherwise(one: Task, other: Task) -> tuple[str, ...]:
    said, instead = ({"prompt": task.prompt} | _terms(task) for task in (one, other))
    return tuple(name for name in said if said[name] != instead[name])


def _terms(task: Task) -> dict[str, Any]:
    terms = _decode(task.terms, type=TaskTerms)
    return {"model": terms.model, "system": terms.system, "tools": terms.tools}


def _paired(entries: list[JournalEntry], others: list[JournalEntry]) -> tuple[StepPair, ...]:
    mine = {entry.place: entry for entry in entries}
    theirs = {entry.place: entry for entry in others}
    return tuple(_pair(place, mine.get(place), theirs.get(place)) for place in sorted(mine | theirs))


def _pair(place: int, one: JournalEntry | None, other: JournalEntry | None) -> StepPair:
    if one is None or other is None:
        return StepPair(place=place, one=one, other=other, differs=(MISSING,))
    said, instead = _said(one), _said(other)
    differs = [name for name in said | instead if said.get(name) != instead.get(name)]
    return StepPair(place=place, one=one, other=other, differs=tuple(differs))


def _said(entry: JournalEntry) -> dict[str, object]:
    """What makes a step what it is, without what is each run's own."""
    said: dict[str, object] = {"name": entry.name, "state": entry.state}
    return said if entry.value is None else said | _words(what_of(entry), entry.value)


def _words(what: StepKind, value: bytes) -> dict[str, object]:
    match what:
        case StepKind.LLM:
            reply = _decode(value, type=Reply)
            return {"text": reply.text, "calls": [(call.name, _spelt(call.arguments)) for call in reply.calls]}
        case StepKind.TOOL:
            result = _decode(value, type=ToolResult)
            return {"text": result.text, "is_error": result.is_error}
        case StepKind.ANSWER:
            answer = _decode(value, type=Answer)
            return {"text": answer.result, "is_error": answer.is_error}
        case StepKind.FAN_OUT:
            return {"text": f"{len(_decode(value, type=list[str]))} agents"}
        case StepKind.END:
            ended = _decode(value, type=TaskResult)
            error = ended.error.code if ended.error else None
            return {"text": ended.output, "status": ended.status, "stop_reason": ended.stop_reason, "error": error}


def _spelt(arguments: str) -> object:
    """Arguments in one spelling: spaces and order make no difference; what is no JSON is as it is."""
    try:
        return _decode(arguments or "{}")
    except msgspec.DecodeError:
        return arguments
