"""The steps of a task's journal: how each is named there, and what that says of it."""

from enum import StrEnum

from bullpen.job.entries import EntryKind, JournalEntry

ASKED = "llm:"
"""Begins the name of a step that asks a model. A tool's name has no colon, so none of these is one."""
REFUSED = "tool:refused"
"""A call of a tool that is not there. What the model called it is in the result: a name here is never its word."""
OVER_LIMIT = "tool:over-limit"
"""A call beyond those that the task may make."""
END = "run:end"
FAN_OUT = "research:fan-out"
"""Other agents were sent out; their tasks."""


class StepKind(StrEnum):
    LLM = "llm"
    TOOL = "tool"
    ANSWER = "answer"
    """Of a person."""
    FAN_OUT = "fan_out"
    """Of wide research: a task for each question."""
    END = "end"


_KINDS = {END: StepKind.END, FAN_OUT: StepKind.FAN_OUT}


def what_of(entry: JournalEntry) -> StepKind:
    """What a place of a task's journal is about."""
    if entry.kind is EntryKind.WAIT:
        return StepKind.ANSWER
    if entry.name.startswith(ASKED):
        return StepKind.LLM
    return _KINDS.get(entry.name, StepKind.TOOL)
