"""What happened in each minute, and how long jobs waited and took."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from bullpen.job.events import Event, EventKind
from bullpen.job.state import State
from bullpen.records.model.rows import clean

MINUTE_MS = 60_000
BOUNDS_MS = (5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000)
"""Of the histograms; the last count is of what took longer than all of them."""

_BACK = frozenset({EventKind.WAITING, EventKind.DELAYED})
_ENDED = frozenset({EventKind.COMPLETED, EventKind.FAILED})


class MinuteKey(NamedTuple):
    tenant: str
    minute_ms: int


class Tally(msgspec.Struct):
    """Of one minute. `retried` also counts what was postponed or handed back."""

    added: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    wait: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS_MS) + 1))
    processing: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS_MS) + 1))

    def include(self, other: "Tally") -> None:
        self.added += other.added
        self.started += other.started
        self.completed += other.completed
        self.failed += other.failed
        self.retried += other.retried
        self.wait = [a + b for a, b in zip(self.wait, other.wait, strict=True)]
        self.processing = [a + b for a, b in zip(self.processing, other.processing, strict=True)]


class Since(msgspec.Struct):
    """Since when a job could run, and since when it runs."""

    ready_ms: int | None = None
    started_ms: int | None = None


def count(events: Iterable[Event], since: Since, minutes: dict[MinuteKey, Tally]) -> None:
    """Add what these events of one job tell to their minutes; `since` is known before them, and kept up with them."""
    for event in events:
        key = MinuteKey(clean(event.tenant or "", 200), event.at_ms - event.at_ms % MINUTE_MS)
        minute = minutes.get(key)
        if minute is None:
            minute = minutes[key] = Tally()
        _count(minute, event, since)


def _count(minute: Tally, event: Event, since: Since) -> None:
    kind = event.kind
    if kind is EventKind.ADDED:
        minute.added += 1
        since.ready_ms = event.at_ms
    elif kind in _BACK:
        minute.retried += event.prev == State.ACTIVE
        since.ready_ms = event.at_ms if kind is EventKind.WAITING else event.run_at_ms
    elif kind is EventKind.ACTIVE:
        minute.started += 1
        if since.ready_ms is not None:
            minute.wait[place_of(event.at_ms - since.ready_ms)] += 1
        since.started_ms = event.at_ms
    elif kind in _ENDED:
        minute.completed += kind is EventKind.COMPLETED
        minute.failed += kind is EventKind.FAILED
        if since.started_ms is not None and event.prev == State.ACTIVE:
            minute.processing[place_of(event.at_ms - since.started_ms)] += 1


def place_of(took_ms: int) -> int:
    """In which part of a histogram this is counted."""
    return bisect_left(BOUNDS_MS, took_ms)


def percentile_ms(histogram: Sequence[int], share: float) -> int | None:
    """How long that share of them took at most; None if there were none, or if it is beyond the last bound.

    Those of one part are taken to lie evenly in it, so that what changes slowly does not leap from bound to bound.
    """
    rank = share * sum(histogram)
    below, from_ms = 0, 0
    for to_ms, count in zip(BOUNDS_MS, histogram, strict=False):
        if count and below + count >= rank:
            return round(from_ms + (to_ms - from_ms) * (rank - below) / count)
        below, from_ms = below + count, to_ms
    return None
