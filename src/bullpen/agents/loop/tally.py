"""What a task used, read off its journal: the same whoever asks, also when its worker is dead."""

from collections.abc import Iterable

import msgspec

from bullpen.agents.llm.words import Reply, Usage
from bullpen.agents.loop.steps import OVER_LIMIT, StepKind, what_of
from bullpen.job.entries import EntryState, JournalEntry

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
        what = what_of(entry)
        if entry.state is not EntryState.DONE or what is StepKind.ANSWER or entry.value is None:
            continue
        if what is StepKind.LLM:
            reply = _decode_reply(entry.value)
            steps += 1
            usage[reply.model] = usage.get(reply.model, Usage()) + (reply.usage or Usage())
            text = reply.text or text
        elif what is StepKind.TOOL and entry.name != OVER_LIMIT:
            tool_calls += 1
        worked_ms += max(0, entry.ended_ms - entry.started_ms)
    return Tally(steps=steps, tool_calls=tool_calls, usage=usage, text=text, worked_ms=worked_ms)
