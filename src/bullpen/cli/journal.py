"""The durable steps of a job, for `bullpen job`."""

from typing import Any

from bullpen.cli.records import error_words, failure_json, payload
from bullpen.cli.showing import Show
from bullpen.cli.tables import Cell, Column, Row, Style
from bullpen.cli.times import span, stamp
from bullpen.job.entries import EntryKind, EntryState, JournalEntry
from bullpen.job.state import State

_COLUMNS = (
    Column("step", right=True),
    Column("kind"),
    Column("name", shrinks=True),
    Column("state"),
    Column("tries", right=True),
    Column("took", right=True),
    Column("what", shrinks=True),
)
_STYLE: dict[str, Style] = {"done": "green", "failed": "red"}


def entry_json(entry: JournalEntry) -> dict[str, Any]:
    return {
        "place": entry.place,
        "kind": entry.kind.value,
        "name": entry.name,
        "state": entry.state.value,
        "value": payload(entry.value),
        "failure": failure_json(entry.failure),
        "attempts": entry.attempts,
        "started_ms": entry.started_ms,
        "ended_ms": entry.ended_ms,
        "until_ms": entry.until_ms,
    }


def show_journal(show: Show, entries: list[JournalEntry], state: State, now_ms: int) -> None:
    """A line for each step, and in which direction a saga runs."""
    show.raw("\n" + show.paint("steps", "dim") + "\n")
    show.table(_COLUMNS, [_row(entry, now_ms) for entry in entries])
    if direction := _direction(entries, state):
        show.line(direction)


def _row(entry: JournalEntry, now_ms: int) -> Row:
    word = _word(entry, now_ms)
    took = span(entry.ended_ms - entry.started_ms) if entry.ended_ms else ""
    tries = entry.attempts or ""
    return (
        entry.place,
        entry.kind.value,
        entry.name,
        Cell(word, _STYLE.get(word, "yellow")),
        tries,
        took,
        _what(entry),
    )


def _word(entry: JournalEntry, now_ms: int) -> str:
    is_over = entry.until_ms is not None and entry.until_ms <= now_ms
    if entry.kind == EntryKind.SLEEP:
        return "done" if is_over else "sleeps"
    if entry.kind == EntryKind.WAIT and entry.state == EntryState.OPEN:
        return "waits"
    return "to try again" if entry.state == EntryState.OPEN else entry.state.value


def _what(entry: JournalEntry) -> str:
    if (entry.failure is not None and entry.state != EntryState.DONE) or entry.kind == EntryKind.TURN:
        return error_words(entry.failure)
    return f"until {stamp(entry.until_ms)}" if entry.until_ms else ""


def _direction(entries: list[JournalEntry], state: State) -> str:
    turns = [entry for entry in entries if entry.kind == EntryKind.TURN]
    if not turns:
        return ""
    undone = sum(entry.kind == EntryKind.UNDO and entry.state == EntryState.DONE for entry in entries)
    if state in (State.COMPLETED, State.FAILED):
        return f"the saga turned back at step {turns[-1].place}; {undone} undone"
    return f"the saga runs backwards since step {turns[-1].place}; {undone} undone so far"
