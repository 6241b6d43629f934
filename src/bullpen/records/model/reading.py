"""The statements that pages read queues with: counts, rates, and how far behind the read model is.

Each is made once, since to build it takes about as long as to answer it. What it is narrowed to is part of it; the
values come with each question.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Row, Select, Text, bindparam, case, cast, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.job.state import State
from bullpen.records.model.minutes import BOUNDS_MS
from bullpen.records.tables.model import minute, stream, tally

_COUNTED = ("added", "started", "completed", "failed", "retried")
_NONE = (0,) * (len(BOUNDS_MS) + 1)
_LAG = select(stream.c.queue, stream.c.caught_up_ms, stream.c.is_scanning).order_by(stream.c.queue)

_decode = msgspec.json.Decoder(list[list[int]]).decode


class Lag(msgspec.Struct, frozen=True):
    """How old what the read model says of a queue may be; None if it was never complete."""

    behind_ms: int | None
    is_scanning: bool


class Minute(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in a minute; the histograms have one count more than `BOUNDS_MS`."""

    minute_ms: int
    added: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    wait: tuple[int, ...] = _NONE
    processing: tuple[int, ...] = _NONE

    def joined(self, other: "Minute") -> "Minute":
        """Both together."""
        return Minute(
            minute_ms=self.minute_ms,
            **{part: getattr(self, part) + getattr(other, part) for part in _COUNTED},
            wait=_summed([self.wait, other.wait]),
            processing=_summed([self.processing, other.processing]),
        )


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """Minutes from one time to another."""

    since_ms: int
    until_ms: int
    times_ms: int = 0
    """How long jobs waited and took is told from here on."""


class Within(msgspec.Struct, frozen=True):
    """What is looked at; None: all."""

    queue: str | None = None
    tenant: str | None = None


async def read_lag(connection: AsyncConnection, now_ms: int) -> dict[str, Lag]:
    """By queue."""
    return {
        queue: Lag(None if caught_up_ms is None else max(0, now_ms - caught_up_ms), is_scanning)
        for queue, caught_up_ms, is_scanning in await connection.execute(_LAG)
    }


async def read_counts(connection: AsyncConnection, within: Within) -> dict[str, dict[State, int]]:
    """How many jobs of each queue are in each state."""
    counted: dict[str, dict[State, int]] = {}
    for queue, state, jobs in await connection.execute(_counts(*_narrows(within)), msgspec.structs.asdict(within)):
        if jobs:
            counted.setdefault(queue, {})[State(state)] = int(jobs)
    return counted


async def read_minutes(connection: AsyncConnection, period: Period, within: Within) -> dict[str, Sequence[Minute]]:
    """Of every queue in which something happened, in order."""
    asked: Mapping[str, Any] = msgspec.structs.asdict(period) | msgspec.structs.asdict(within)
    found: dict[str, list[Minute]] = {}
    for row in await connection.execute(_minutes(*_narrows(within)), asked):
        found.setdefault(row.queue, []).append(_minute(row))
    return dict(found)


def _narrows(within: Within) -> tuple[bool, bool]:
    return within.queue is not None, within.tenant is not None


@functools.cache
def _counts(of_queue: bool, of_tenant: bool) -> Select[Any]:
    query = select(tally.c.queue, tally.c.state, func.sum(tally.c.jobs)).group_by(tally.c.queue, tally.c.state)
    if of_queue:
        query = query.where(tally.c.queue == bindparam("queue"))
    return query.where(tally.c.tenant == bindparam("tenant")) if of_tenant else query


@functools.cache
def _minutes(of_queue: bool, of_tenant: bool) -> Select[Any]:
    sums = [func.sum(minute.c[part]).label(part) for part in _COUNTED]
    query = select(minute.c.queue, minute.c.minute_ms, *sums, *map(_told, (minute.c.wait, minute.c.processing)))
    is_within = (minute.c.minute_ms >= bindparam("since_ms")) & (minute.c.minute_ms < bindparam("until_ms"))
    query = query.where(is_within).group_by(minute.c.queue, minute.c.minute_ms).order_by(minute.c.minute_ms)
    if of_tenant:
        query = query.where(minute.c.tenant == bindparam("tenant"))
    if of_queue:
        query = query.where((minute.c.queue if of_tenant else by_minute()) == bindparam("queue"))
    return query


def by_minute() -> ColumnElement[str]:
    """The queue of a minute, as SQLite does not look for it: it would read all minutes of the queue for a few."""
    return minute.c.queue.concat("")


def _told(histogram: ColumnElement[Any]) -> ColumnElement[str]:
    """All of a minute's in one text, so that there is a row for each minute and not for each tenant of it."""
    is_told = minute.c.minute_ms >= bindparam("times_ms")
    return func.aggregate_strings(case((is_told, cast(histogram, Text))), ",").label(histogram.name)


def _minute(row: Row[Any]) -> Minute:
    return Minute(
        minute_ms=row.minute_ms,
        **{part: int(getattr(row, part)) for part in _COUNTED},
        wait=_read(row.wait),
        processing=_read(row.processing),
    )


def _read(histograms: str | None) -> tuple[int, ...]:
    return _NONE if histograms is None else _summed(_decode(f"[{histograms}]"))


def _summed(histograms: Sequence[Sequence[int]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*histograms, strict=True)))
