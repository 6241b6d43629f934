"""Another run from a step of one that was: the same up to there, with what was said or found edited if wanted.

A **dry** one has no side effects: each call of a tool gets the result that the first run recorded for the same call.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.agents.kinds import Route, TaskKind, route, urgency_of
from bullpen.agents.llm.words import Reply, StopReason, ToolCall, ToolResult
from bullpen.agents.loop.steps import StepKind, what_of
from bullpen.agents.submitting import Prepared, check_prompt
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext, replayed
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.agents.words import TaskTerms
from bullpen.errors import BadData, BadOption, ToolError
from bullpen.job.entries import EntryState, JournalEntry
from bullpen.records.credits.credits import purse
from bullpen.records.files.on import FilesOn
from bullpen.records.journal import JournalOn, SqlJournal, read_all
from bullpen.records.records import Records
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import NewProgress, ProgressKind, Task

_EDITABLE = {StepKind.LLM, StepKind.TOOL}
_NO_WORKSPACE = "begins with an empty workspace: the files of this step are no longer kept"
_encode = msgspec.json.Encoder().encode
_decode_reply = msgspec.json.Decoder(Reply).decode
_decode_result = msgspec.json.Decoder(ToolResult).decode


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another text in place of what a model said, or a tool answered, at a step."""

    place: int
    text: str


def kept(entries: Iterable[JournalEntry], at: int, edits: Sequence[Edit]) -> list[JournalEntry]:
    """What a fork at this place begins with. BadOption for a place that is not there, or an edit beyond it."""
    steps = [entry for entry in entries if entry.state is EntryState.DONE and what_of(entry) is not StepKind.END]
    end = max((entry.place for entry in steps), default=-1) + 1
    if not 0 <= at <= end:
        raise BadOption(f"at: a place from 0 to {end}, not {at}")
    before = {entry.place: entry for entry in steps if entry.place < at}
    for n, edit in enumerate(edits):
        entry = before.get(edit.place)
        if entry is None or what_of(entry) not in _EDITABLE or entry.value is None:
            raise BadOption(f"edits[{n}].place: a step of a model or a tool before {at}, not {edit.place}")
        before[edit.place] = msgspec.structs.replace(entry, value=_edited(entry, edit.text))
    return [before[place] for place in sorted(before)]


def _edited(entry: JournalEntry, text: str) -> bytes:
    assert entry.value is not None
    if what_of(entry) is StepKind.LLM:
        reply = _decode_reply(entry.value)
        # Whatever ended the model's own words, these are whole.
        stop = StopReason.TOOL_CALLS if reply.calls else StopReason.ANSWER
        return _encode(msgspec.structs.replace(reply, text=text, stop=stop))
    return _encode(msgspec.structs.replace(_decode_result(entry.value), text=text, is_error=False))


async def prepare_fork(
    records: Records,
    task: Task,
    *,
    at: int,
    prompt: str | None,
    edits: Sequence[Edit],
    is_dry: bool,
    priority: str | None,
) -> tuple[Prepared, list[JournalEntry]]:
    """The new task, and the steps that it begins with. BadOption names what cannot be."""
    if prompt is not None and at != 0:
        raise BadOption(f"at: another prompt begins at place 0, not at {at}")
    entries = kept(await read_all(SqlJournal(records.database), task.id), at, edits)
    terms = msgspec.json.decode(task.terms, type=TaskTerms)
    way = _way(task, terms, priority)
    prepared = Prepared(
        kind=TaskKind(task.kind),
        prompt=task.prompt if prompt is None else check_prompt(prompt),
        route=way,
        terms=msgspec.structs.replace(
            terms,
            forked_from=task.id,
            is_dry=is_dry,
            payer=purse(task.tenant),
            above=None,
            priority=way.priority,
            attempts=way.attempts,
        ),
    )
    return prepared, entries


def _way(task: Task, terms: TaskTerms, priority: str | None) -> Route:
    """That of the first task, unless it is to be less or more urgent."""
    if priority is not None and (urgency := urgency_of(priority)).priority != terms.priority:
        return msgspec.structs.replace(route(TaskKind(task.kind), urgency), timeout_s=terms.timeout_s)
    return Route(queue=task.queue, priority=terms.priority, timeout_s=terms.timeout_s, attempts=terms.attempts)


async def plant(
    connection: AsyncConnection, records: Records, task: Task, new_id: str, entries: Sequence[JournalEntry], *, at: int
) -> str | None:
    """Give a new task these steps of another, as if it had done them, and the workspace that they left.

    What whoever asked is to know: that there were files, and that they are gone. Its run is told too.
    """
    journal = JournalOn(connection, records.database)
    await journal.open(new_id)
    await journal.begin(new_id, 0)
    await journal.append(new_id, [msgspec.structs.replace(entry, epoch=0) for entry in entries], epoch=0)
    files = FilesOn(connection, records.database, records.files.blobs)
    if await files.copy_checkpoint(task.id, new_id, before=at):
        return None
    runs = RunsOn(connection, records.database)
    told = NewProgress(ProgressKind.JOB_PROGRESS, {"message": _NO_WORKSPACE})
    await runs.tell((await runs.task(new_id)).run, new_id, [told])
    return _NO_WORKSPACE


# ── dry ──────────────────────────────────────────────────────────────────────────────────


def recorded_tools(tools: Toolbox, entries: Sequence[JournalEntry]) -> Toolbox:
    """The same tools, which answer what is on record and do nothing."""
    answers = _answers(entries)
    return Toolbox(_recorded(tool, answers) for tool in tools)


Asked = tuple[str, bytes]
"""A tool's name, and its arguments in one spelling."""


def _answers(entries: Sequence[JournalEntry]) -> Mapping[Asked, deque[ToolResult]]:
    """By call, in the order in which they were made."""
    calls: dict[str, ToolCall] = {}
    answers: dict[Asked, deque[ToolResult]] = defaultdict(deque)
    for entry in entries:
        if entry.value is None or entry.state is not EntryState.DONE:
            continue
        what = what_of(entry)
        if what is StepKind.LLM:
            calls |= {call.id: call for call in _decode_reply(entry.value).calls}
        elif what is StepKind.TOOL:
            result = _decode_result(entry.value)
            call = calls.get(result.call_id)
            if call is not None and (arguments := _arguments(call)) is not None:
                answers[_spelt(call.name, arguments)].append(result)
    return answers


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    """None where they are no JSON: such a call was refused, and is refused again without its answer."""
    try:
        return call.parsed()
    except BadData:
        return None


def _recorded(tool: Tool, answers: Mapping[Asked, deque[ToolResult]]) -> Tool:
    async def answer(_: ToolContext, arguments: Mapping[str, Any]) -> str:
        waiting = answers.get(_spelt(tool.name, arguments))
        if not waiting:
            raise ToolError(f"{tool.name}: no such call is on record, and a dry run makes none")
        # The last one answers as often as it is asked.
        result = waiting.popleft() if len(waiting) > 1 else waiting[0]
        if result.is_error:
            raise ToolError(result.text)
        return result.text

    return replayed(tool, answer, policy=Policy.READ_ONLY)


def _spelt(name: str, arguments: Mapping[str, Any]) -> Asked:
    return name, msgspec.json.encode(arguments, order="deterministic")
