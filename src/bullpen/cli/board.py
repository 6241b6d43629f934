"""The board of `top` and `dev`: queues with their counts and pace, and who works on them."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec

from bullpen.cli.queues import count_cell, oldest_ms
from bullpen.cli.showing import Show
from bullpen.cli.tables import Cell, Column, table_lines
from bullpen.cli.times import span
from bullpen.cli.workers import COLUMNS as WORKER_COLUMNS
from bullpen.cli.workers import worker_row
from bullpen.clock import SYSTEM_CLOCK
from bullpen.errors import BadOption, QueueMissing
from bullpen.job.events import Event, EventKind
from bullpen.stores.base import Counts, Store, WorkerInfo

_PAGE = 2_000
_PAGES_AT_ONCE = 20
_PACE_OVER_MS = 5_000
_NAMES_EVERY_MS = 3_000
_ENDS = (EventKind.COMPLETED, EventKind.FAILED)
_COUNTS = ("waiting", "delayed", "active", "completed", "failed")
_COLUMNS = (
    Column("queue", shrinks=True),
    *(Column(name, right=True) for name in _COUNTS),
    Column("jobs/s", right=True),
    Column("oldest", right=True),
)


class QueueLine(msgspec.Struct, frozen=True):
    name: str
    counts: Counts
    per_second: float | None
    """Jobs that ended, over the last seconds; None until there was time to see."""
    oldest_ms: int | None


class Snapshot(msgspec.Struct, frozen=True):
    queues: tuple[QueueLine, ...]
    workers: tuple[WorkerInfo, ...]
    news: tuple[tuple[str, Event], ...] = ()
    """What happened since the last look, with the queue's name."""


class Pace:
    """How many jobs of a queue end each second, counted from its events: counts alone are pruned."""

    def __init__(self, cursor: str) -> None:
        self.cursor = cursor
        self._since_ms = SYSTEM_CLOCK.mono_ms()
        self._ended: deque[tuple[int, int]] = deque()

    def count(self, ended: int) -> None:
        self._ended.append((SYSTEM_CLOCK.mono_ms(), ended))

    def per_second(self) -> float | None:
        now_ms = SYSTEM_CLOCK.mono_ms()
        while self._ended and self._ended[0][0] < now_ms - _PACE_OVER_MS:
            self._ended.popleft()
        watched_ms = min(now_ms - self._since_ms, _PACE_OVER_MS)
        return sum(count for _, count in self._ended) * 1000 / watched_ms if watched_ms >= 400 else None


class Board:
    """Looks at a store again and again."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._names: Sequence[str] = ()
        self._names_at_ms: int | None = None
        self._paces: dict[str, Pace] = {}

    async def look(self) -> Snapshot:
        now_ms = SYSTEM_CLOCK.mono_ms()
        if self._names_at_ms is None or now_ms - self._names_at_ms > _NAMES_EVERY_MS:
            self._names, self._names_at_ms = await self._store.queues(), now_ms
        news: list[tuple[str, Event]] = []
        lines = [line for name in self._names if (line := await self._line(name, news)) is not None]
        return Snapshot(tuple(lines), tuple(await self._store.workers()), tuple(news))

    async def _line(self, name: str, news: list[tuple[str, Event]]) -> QueueLine | None:
        try:
            counts, oldest = await asyncio.gather(self._store.counts(name), oldest_ms(self._store, name))
        except QueueMissing:
            self._names_at_ms = None
            return None
        pace = await self._listen(name, news)
        return QueueLine(name, counts, pace.per_second(), oldest)

    async def _listen(self, name: str, news: list[tuple[str, Event]]) -> Pace:
        if name not in self._paces:
            end = await self._store.events(name, after=None, limit=1, timeout_ms=0)
            self._paces[name] = Pace(end.cursor)
        pace = self._paces[name]
        for _ in range(_PAGES_AT_ONCE):
            try:
                page = await self._store.events(name, after=pace.cursor, limit=_PAGE, timeout_ms=0)
            except BadOption:  # the queue was removed and made anew: its log begins again
                del self._paces[name]
                break
            pace.cursor = page.cursor
            pace.count(sum(event.kind in _ENDS for event in page.events))
            news += [(name, event) for event in page.events]
            if len(page.events) < _PAGE:
                break
        return pace


def board_lines(snapshot: Snapshot, show: Show) -> list[str]:
    """The board as lines for the terminal."""
    if not snapshot.queues:
        return ["No queues yet."]
    lines = table_lines(_COLUMNS, [_row(line) for line in snapshot.queues], show.width, show.paint)
    if not snapshot.workers:
        return [*lines, "", "No workers."]
    rows = [worker_row(worker) for worker in snapshot.workers]
    return [*lines, "", *table_lines(WORKER_COLUMNS, rows, show.width, show.paint)]


def _row(line: QueueLine) -> list[Cell]:
    counts = line.counts
    numbers = {
        "waiting": counts.waiting + counts.prioritized,
        "delayed": counts.delayed,
        "active": counts.active,
        "completed": counts.completed,
        "failed": counts.failed,
    }
    oldest = (
        Cell("paused", "yellow") if counts.paused else Cell("–" if line.oldest_ms is None else span(line.oldest_ms))
    )
    pace = "–" if line.per_second is None else f"{line.per_second:,.1f}"
    cells = [count_cell(name, number) for name, number in numbers.items()]
    return [Cell(line.name, "cyan"), *cells, Cell(pace), oldest]


def snapshot_json(snapshot: Snapshot) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins({"queues": snapshot.queues, "workers": snapshot.workers})
    return found
