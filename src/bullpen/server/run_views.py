"""Runs, tasks and their steps put together for those who look at them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bullpen.agents.comparing import Comparison, Side, StepPair
from bullpen.agents.llm.words import Message, Reply, ToolResult, Usage
from bullpen.agents.loop.steps import StepKind, what_of
from bullpen.agents.loop.words import Answer
from bullpen.agents.words import MOST_TOKENS, TaskResult, TaskTerms
from bullpen.job.entries import JournalEntry
from bullpen.records.credits.budget import account_of
from bullpen.records.credits.words import Account
from bullpen.records.runs.words import Run, Task, TaskState
from bullpen.server.models.comparing import ComparisonShown, SideShown, StepPairShown
from bullpen.server.models.runs import BudgetShown, RunRow, RunShown, TaskShown, shown_result
from bullpen.server.models.steps import CallResultShown, CallShown, MessageShown, TaskStepShown, UsageShown
from bullpen.server.site import Site

_BEGINNING = 200
_decode = msgspec.json.decode


async def shown_runs(site: Site, runs: Sequence[Run]) -> list[RunRow]:
    """With the beginning of what was asked, and its cost; a few questions for all of them."""
    suspended = [run.id for run in runs if run.state is TaskState.SUSPENDED]
    asking = await site.records.runs.asking(suspended) if suspended else set[str]()
    firsts = await site.records.runs.first_tasks([run.id for run in runs])
    budgets = await site.records.credits.budgets([account_of(first.id) for first in firsts.values()])
    return [_row(run, firsts.get(run.id), budgets, is_asking=run.id in asking) for run in runs]


def _row(run: Run, first: Task | None, budgets: Mapping[str, Account], *, is_asking: bool) -> RunRow:
    account = budgets.get(account_of(first.id)) if first else None
    return RunRow(
        **_head(run),
        is_asking=is_asking,
        task_id=first.id if first else None,
        task_type=first.kind if first else None,
        model=_terms(first).model if first else None,
        prompt=first.prompt[:_BEGINNING] if first else "",
        started_ms=first.started_ms if first else None,
        spent=account.spent if account else 0,
    )


async def shown_run(site: Site, run: Run) -> RunShown:
    tasks = await site.records.runs.tasks(run.id)
    return RunShown(**_head(run), tasks=await shown_tasks(site, tasks))


def _head(run: Run) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "tenant": run.tenant,
        "workspace": run.workspace,
        "created_by": run.created_by,
        "state": run.state,
        "last_event": run.told,
        "created_ms": run.created_ms,
        "finished_ms": run.finished_ms,
    }


async def shown_tasks(site: Site, tasks: Sequence[Task]) -> list[TaskShown]:
    budgets = await site.records.credits.budgets([account_of(task.id) for task in tasks])
    retries = await site.records.runs.retries(tasks)
    return [_task(task, budgets.get(account_of(task.id)), retries.get(task.id, 0)) for task in tasks]


def _task(task: Task, account: Account | None, retries: int) -> TaskShown:
    terms = _terms(task)
    result = None if task.outcome is None else shown_result(_decode(task.outcome, type=TaskResult))
    budget = BudgetShown(
        estimate=terms.estimate,
        most=terms.most,
        available=account.available if account else 0,
        held=account.held if account else 0,
        spent=account.spent if account else 0,
    )
    return TaskShown(
        task_id=task.id,
        run_id=task.run,
        tenant=task.tenant,
        parent=task.parent,
        task_type=task.kind,
        state=task.state,
        queue=task.queue,
        prompt=task.prompt,
        model=terms.model,
        system=terms.system,
        tools=None if terms.tools is None else list(terms.tools),
        files=list(terms.files),
        history_messages=len(terms.history),
        sandbox=None if terms.sandbox is None else msgspec.to_builtins(terms.sandbox),
        temperature=terms.temperature,
        stream=terms.stream,
        max_tokens=terms.reply_tokens,
        max_total_tokens=None if terms.tokens == MOST_TOKENS else terms.tokens,
        max_steps=terms.steps,
        max_tool_calls=terms.tool_calls,
        timeout_s=terms.timeout_s,
        max_retries=terms.attempts - 1,
        retries=retries,
        questions=list(terms.questions),
        width=terms.width,
        needs_answers=terms.needs_answers,
        priority=terms.priority,
        metadata=terms.metadata,
        forked_from=terms.forked_from,
        is_dry=terms.is_dry,
        question=task.question,
        result=result,
        budget=budget,
        created_ms=task.created_ms,
        started_ms=task.started_ms,
        finished_ms=task.finished_ms,
    )


def _terms(task: Task) -> TaskTerms:
    return _decode(task.terms, type=TaskTerms)


# ── steps ────────────────────────────────────────────────────────────────────────────────


def shown_step(site: Site, entry: JournalEntry) -> TaskStepShown:
    """Without the secrets that may have got into it."""
    what = what_of(entry)
    shown = TaskStepShown(
        place=entry.place,
        what=what,
        name=entry.name,
        state=entry.state,
        attempts=entry.attempts,
        started_ms=entry.started_ms,
        ended_ms=entry.ended_ms,
    )
    if entry.value is None:
        return shown
    return shown.model_copy(update=_words_of(site, what, entry.value))


def _words_of(site: Site, what: StepKind, value: bytes) -> dict[str, object]:
    clean = site.redactor.text
    match what:
        case StepKind.LLM:
            reply = _decode(value, type=Reply)
            calls = [CallShown(id=one.id, name=one.name, arguments=clean(one.arguments)) for one in reply.calls]
            usage = UsageShown.model_validate(reply.usage or Usage())
            return {"text": clean(reply.text), "model": reply.model, "calls": calls, "usage": usage}
        case StepKind.TOOL:
            result = _decode(value, type=ToolResult)
            return {"call_id": result.call_id, "text": clean(result.text), "is_error": result.is_error}
        case StepKind.ANSWER:
            answer = _decode(value, type=Answer)
            return {"text": None if answer.result is None else clean(answer.result), "is_error": answer.is_error}
        case StepKind.FAN_OUT:
            return {"text": "\n".join(_decode(value, type=list[str]))}
        case StepKind.END:
            return {"text": clean(_decode(value, type=TaskResult).output)}


def shown_message(site: Site, message: Message) -> MessageShown:
    """Without secrets too."""
    clean = site.redactor.text
    return MessageShown(
        role=message.role,
        text=clean(message.text),
        calls=[CallShown(id=one.id, name=one.name, arguments=clean(one.arguments)) for one in message.calls],
        results=[
            CallResultShown(call_id=one.call_id, text=clean(one.text), is_error=one.is_error) for one in message.results
        ],
    )


# ── two runs ─────────────────────────────────────────────────────────────────────────────


def shown_comparison(site: Site, found: Comparison, *, start: int, limit: int) -> ComparisonShown:
    """A page of it, from this place on."""
    rest = [pair for pair in found.pairs if pair.place >= start]
    return ComparisonShown(
        one=_shown_side(found.one),
        other=_shown_side(found.other),
        differs=list(found.differs),
        parts_at=found.parts_at,
        differing=sum(bool(pair.differs) for pair in found.pairs),
        items=[_shown_pair(site, pair) for pair in rest[:limit]],
        next_place=rest[limit].place if len(rest) > limit else None,
    )


def _shown_side(side: Side) -> SideShown:
    return SideShown.model_validate(msgspec.to_builtins(side))


def _shown_pair(site: Site, pair: StepPair) -> StepPairShown:
    one, other = (None if entry is None else shown_step(site, entry) for entry in (pair.one, pair.other))
    return StepPairShown(place=pair.place, differs=list(pair.differs), one=one, other=other)
