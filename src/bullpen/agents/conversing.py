"""What was said in a task, from its first words to its last: read off its journal, as everything about a task is."""

from collections.abc import Iterable

import msgspec

from bullpen.agents.llm.words import Message, Reply, ToolResult, results, system, user
from bullpen.agents.loop.steps import StepKind, what_of
from bullpen.agents.words import TaskTerms
from bullpen.job.entries import EntryState, JournalEntry
from bullpen.records.database import Database
from bullpen.records.journal import SqlJournal, read_all
from bullpen.records.runs.words import Task

_decode_reply = msgspec.json.Decoder(Reply).decode
_decode_result = msgspec.json.Decoder(ToolResult).decode


async def conversation(database: Database, task: Task) -> list[Message]:
    """Of a task that goes on: what is on record so far."""
    terms = msgspec.json.decode(task.terms, type=TaskTerms)
    return [*first_words(task, terms), *_said(await read_all(SqlJournal(database), task.id))]


def first_words(task: Task, terms: TaskTerms) -> list[Message]:
    """What a task begins with, before its model says anything."""
    before = [system(terms.system)] if terms.system else []
    return [*before, *terms.history, user(task.prompt)]


def _said(entries: Iterable[JournalEntry]) -> list[Message]:
    said: list[Message] = []
    for entry in entries:
        if entry.state is not EntryState.DONE or entry.value is None:
            continue
        what = what_of(entry)
        if what is StepKind.LLM:
            said.append(_decode_reply(entry.value).message())
        elif what is StepKind.TOOL:
            result = _decode_result(entry.value)
            # Calls side by side are answered in one message.
            together = said.pop().results if said and said[-1].results else ()
            said.append(results(*together, result))
    return said
