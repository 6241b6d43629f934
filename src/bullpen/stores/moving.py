"""What crosses from one store to another when a queue moves: jobs with all that belongs to them.

    source                              mover                       target
    export_memory ───────────────────▶ last id, pause ───────────▶ begin_move
    pause
    export_jobs ─────────────────────▶ page of saved jobs ────────▶ restore
    depart (what arrived) ◀────────────────────┘
    and again, until nothing is left

A job is at every moment on one of the two stores at least, and given out by one at most: the
source is paused, and what arrived is known on the target by its id until the source let it go.

A job that waits may be signalled at any moment. One that was signalled after it was exported does not
depart: it is exported again, and `restore` gives the job that has arrived the signals that are new.
"""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from bullpen.errors import MoveRefused
from bullpen.job.entries import JournalEntry
from bullpen.job.record import JobRecord
from bullpen.job.spec import NewJob

ID_MARGIN = 1_000_000_000
"""How many more ids the source may give out during a move before they could meet those of the target.

Eleven days of a thousand late adds a second; ids get ten digits.
"""


PAGE_STEPS_BYTES = 4_000_000
"""A page of jobs ends early with the one whose steps, together with those before it, are longer than this."""

NO_SIGNALS: Mapping[str, int] = MappingProxyType({})
"""By the ids of jobs, how many signals went along with them: with none any."""


def schedules_refused(queue: str) -> MoveRefused:
    return MoveRefused(
        f"queue {queue!r} has schedules, which cannot move: remove them first, and make them anew where the queue goes"
    )


class Subject(msgspec.Struct, frozen=True):
    """What stands for a deduplication id."""

    id: str
    owner_id: str
    until_ms: int | None = None
    """None: until the owner ended."""
    kept: NewJob | None = None
    """To be added when the owner ends."""


class RememberedId(msgspec.Struct, frozen=True):
    """An explicit id whose job is gone."""

    id: str
    until_ms: int


class Signal(msgspec.Struct, frozen=True):
    """One that lies in a mailbox."""

    name: str
    payload: bytes


class SavedJob(msgspec.Struct, frozen=True):
    """A job that nobody runs, with all that belongs to it."""

    record: JobRecord
    entered_ms: int
    """Since when it stands where it does."""
    start_by_ms: int | None = None
    """As long as that counts: not once it was started or retried by hand."""
    logs: tuple[str, ...] = ()
    subject: Subject | None = None
    """What it stands for, while it has not ended."""
    journal: tuple[JournalEntry, ...] = ()
    """By place."""
    signals: tuple[Signal, ...] = ()
    """Those that it has not received, oldest first."""

    @property
    def id(self) -> str:
        return self.record.id


class MemoryPage(msgspec.Struct, frozen=True):
    """What a queue knows beside its jobs."""

    last_id: int
    """The highest number that was given out as an id so far, or a higher one."""
    ids: tuple[RememberedId, ...]
    subjects: tuple[Subject, ...]
    """Those with a time of their own, which may outlast their jobs."""
    next_cursor: str | None
    """Give it back for the next page; None at the end."""


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """From where a queue moves in, and how it was there."""

    origin: str
    """Names the source: the same text goes on with a move that was interrupted."""
    run: str
    """Names the mover, any unique text: the last one to begin is the only one that may restore."""
    last_id: int
    paused: bool


class Cargo(msgspec.Struct, frozen=True, kw_only=True):
    """What is restored in one step, into one queue, whatever the queue was called before."""

    jobs: tuple[SavedJob, ...] = ()
    ids: tuple[RememberedId, ...] = ()
    subjects: tuple[Subject, ...] = ()
    departed: tuple[str, ...] = ()
    """Jobs of earlier steps that the source has let go: they cannot come again."""
