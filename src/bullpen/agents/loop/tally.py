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
    steps = tool_calls = 0
    usage: dict[str, Usage] = {}
    text = ""
    done: list[JournalEntry] = []
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
        done.append(entry)
    return Tally(steps=steps, tool_calls=tool_calls, usage=usage, text=text, worked_ms=worked_ms(done))


def worked_ms(done: Iterable[JournalEntry]) -> int:
    """For how long any of these went on: calls side by side take the time of the longest, and pauses are no work."""
    worked = until_ms = 0
    for entry in sorted(done, key=lambda entry: entry.started_ms):
        worked += max(0, entry.ended_ms - max(entry.started_ms, until_ms))
        until_ms = max(until_ms, entry.ended_ms)
    return worked
