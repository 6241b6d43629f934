"""What a task used, read off its journal: the same whoever asks, also when its worker is dead."""

from collections.abc import Iterable

import msgspec

from bullpen.agents.llm.words import Reply, Usage
from bullpen.job.entries import EntryKind, EntryState, JournalEntry

ASKED = "llm:"
"""Begins the name of a step that asks a model; no tool's name has a colon."""
_decode_reply = msgspec.json.Decoder(Reply).decode


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    steps: int = 0
    tool_calls: int = 0
    usage: dict[str, Usage] = {}
    """By model."""
    text: str = ""
    """The model's last words."""
    worked_ms: int = 0


def tally(entries: Iterable[JournalEntry]) -> Tally:
    steps = tool_calls = worked_ms = 0
    usage: dict[str, Usage] = {}
    text = ""
    for entry in entries:
        if entry.state is not EntryState.DONE or entry.kind is not EntryKind.STEP or entry.value is None:
            continue
        if entry.name.startswith(ASKED):
            reply = _decode_reply(entry.value)
            steps += 1
            usage[reply.model] = usage.get(reply.model, Usage()) + (reply.usage or Usage())
            text = reply.text or text
        elif ":" not in entry.name:
            tool_calls += 1
        worked_ms += max(0, entry.ended_ms - entry.started_ms)
    return Tally(steps=steps, tool_calls=tool_calls, usage=usage, text=text, worked_ms=worked_ms)
