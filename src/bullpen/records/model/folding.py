"""What the events of a page tell of its jobs, without a look at them.

    added, waiting ─▶ a new row         active, completed ─▶ a change of the row         anything else ─▶ look

An event with `recorded_ms` tells all that a row holds of what happened. One without it was written by BullMQ or
by an older Bullpen, or tells of a job that is less plain: such a job is looked at, and so is one that has no row.
What is told is as old as the event, where a look is as new as the store: the events that follow make it good.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from bullpen.job.events import Event, EventKind
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.spec import JobSpec
from bullpen.job.state import State


class ToldJob(msgspec.Struct, frozen=True):
    """What events tell of one job; of a job that was added before them, only what they changed."""

    state: State | None
    """None for a new job as long as its place was not told."""
    priority: int
    added: Event | None = None
    """Set for a new job."""
    started_ms: int | None = None
    finished_ms: int | None = None
    attempts_made: int = 0

    def record(self, queue: str) -> JobRecord | None:
        """A new job as a look would find it; None for one that has a row."""
        added = self.added
        if added is None or added.job_id is None or self.state is None:
            return None
        return JobRecord(
            JobRef(queue, added.job_id),
            added.name or "",
            b"{}",
            self.state,
            JobSpec(tenant=added.tenant),
            self.priority,
            self.attempts_made,
            added_ms=added.recorded_ms or 0,
            started_ms=self.started_ms,
            finished_ms=self.finished_ms,
        )

    def changes(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The columns that are other than before, of a job that has this row."""
        return {
            "state": None if self.state is None else self.state.value,
            "priority": self.priority,
            "attempts_made": self.attempts_made,
            "error": None,
            "error_kind": None,
            "error_type": None,
            "fingerprint": None,
            "run_at_ms": None,
            "started_ms": row["started_ms"] if self.started_ms is None else self.started_ms,
            "finished_ms": self.finished_ms,
        }


class Folded(msgspec.Struct):
    """The jobs of a page by what is known of them."""

    told: dict[str, ToldJob] = {}
    unclear: list[str] = []
    """To be looked at."""
    gone: list[str] = []


def fold(events: Iterable[Event]) -> Folded:
    """What these events tell in the end of each job that they name."""
    known: dict[str, ToldJob | _Word] = {}
    for event in events:
        job_id = event.job_id
        if job_id is not None:
            known[job_id] = _after(event, known.get(job_id))
    folded = Folded()
    for job_id, one in known.items():
        if one is _GONE:
            folded.gone.append(job_id)
        elif isinstance(one, ToldJob) and one.state is not None:
            folded.told[job_id] = one
        else:
            folded.unclear.append(job_id)
    return folded


class _Word(msgspec.Struct, frozen=True):
    word: str


_UNCLEAR, _GONE = _Word("unclear"), _Word("gone")


def _after(event: Event, before: ToldJob | _Word | None) -> ToldJob | _Word:
    """What is known of a job after this event; `before` it nothing was told if that is None."""
    kind, at_ms = event.kind, event.recorded_ms
    if kind is EventKind.COMPLETED and event.is_gone:
        return _GONE
    if kind is EventKind.ADDED and at_ms is not None:
        return ToldJob(None, event.priority, event)
    if isinstance(before, _Word):
        return _UNCLEAR
    if kind is EventKind.WAITING and before is not None and before.state is None:
        return msgspec.structs.replace(before, state=State.PRIORITIZED if before.priority else State.WAITING)
    if at_ms is None:
        return _UNCLEAR
    added = None if before is None else before.added
    if kind is EventKind.ACTIVE:
        return ToldJob(State.ACTIVE, event.priority, added, at_ms)
    if kind is EventKind.COMPLETED:
        started_ms = None if before is None else before.started_ms
        return ToldJob(State.COMPLETED, event.priority, added, started_ms, at_ms, 1)
    return _UNCLEAR
