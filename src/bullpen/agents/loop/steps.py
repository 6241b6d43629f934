"""The steps of a task's journal: how each is named there, and what that says of it."""

from enum import StrEnum

from bullpen.job.entries import EntryKind, JournalEntry

ASKED = "llm:"
"""Begins the name of a step that asks a model. A tool's name has no colon, so none of these is one."""
IN_SHORT = "llm:in-short:"
"""Begins the name of one that had the first part of a conversation told in short; how many messages, and the model."""
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


class StepsDiffer(Exception):
    """What is on record is not what the task does: another version of it, or of its surroundings, has written that."""

    def __init__(self, entry: JournalEntry, wanted: str) -> None:
        super().__init__(f"step {entry.place} was {entry.name!r}, and the task comes to {wanted!r} there")


def in_short(model: str, cut: int) -> str:
    """The name of a step that told so many messages in short."""
    return f"{IN_SHORT}{cut}:{model}"


def cut_of(entry: JournalEntry) -> int | None:
    """How many messages were told in short at this step; None of another one."""
    told = entry.name.removeprefix(IN_SHORT)
    return None if told == entry.name else int(told.partition(":")[0])


def check_fits(entry: JournalEntry | None, *names: str) -> None:
    """StepsDiffer if what is on record here has none of these names. One that only began may be begun as another."""
    if entry is None or entry.name in names:
        return
    if entry.value is not None or what_of(entry) is not StepKind.LLM or not names[0].startswith(ASKED):
        raise StepsDiffer(entry, names[0])
