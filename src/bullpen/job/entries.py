"""The record of a program's durable steps: one entry for each, at the place where the program asked for it."""

from enum import StrEnum

import msgspec

from bullpen.job.record import Failure


class EntryKind(StrEnum):
    """What the program asked for at a place."""

    STEP = "step"
    SLEEP = "sleep"
    WAIT = "wait"
    """For a signal, whose name is the entry's."""
    TURN = "turn"
    """From here a saga runs backwards."""
    UNDO = "undo"
    """A step of a saga is taken back."""


class EntryState(StrEnum):
    """How far a step is."""

    OPEN = "open"
    """Begun: it sleeps, waits, or is to be tried again."""
    DONE = "done"
    FAILED = "failed"
    """Its own attempts are used up, or its time is over."""


class JournalEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one step."""

    place: int
    """The order in which the program asked, from 0."""
    name: str
    kind: EntryKind = EntryKind.STEP
    state: EntryState = EntryState.DONE
    value: bytes | None = None
    """The result, or the payload of the signal, as JSON."""
    failure: Failure | None = None
    """Of the last attempt that failed."""
    until_ms: int | None = None
    """While open: when it goes on by itself."""
    attempts: int = 0
    started_ms: int = 0
    ended_ms: int = 0
    epoch: int = 0
    """Of the activation that wrote it."""


class JournalPage(msgspec.Struct, frozen=True):
    entries: tuple[JournalEntry, ...]
    """By place. A place may be missing: what runs beside others is recorded when it ends."""
    next_place: int | None = None
    """Where the next page starts; None at the end."""
