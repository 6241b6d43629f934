"""Reading a queue's events, and seeing when some were dropped.

A cursor is an entry's id and its number in the order of all that were ever logged. The server
tells how many were logged and how many are left: so the number of the oldest is known, and
whatever lies between it and the cursor is a gap.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from bullpen.errors import BadOption
from bullpen.job.events import Event, EventKind
from bullpen.stores.base import FROM_START, EventPage
from bullpen.stores.redis.connection import LONGEST_BLOCK_MS, Connection
from bullpen.stores.redis.keys import NO_CURSOR
from bullpen.stores.redis.reading import read_event
from bullpen.stores.redis.scripts import EVENTS


class Cursor(msgspec.Struct, frozen=True):
    entry_id: str
    number: int

    def __str__(self) -> str:
        return f"{self.entry_id}/{self.number}"

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        entry_id, _, number = text.partition("/")
        ms, _, turn = entry_id.partition("-")
        if not all(part.isascii() and part.isdecimal() for part in (ms, turn, number)):
            raise BadOption(f"cursor: {text!r} is not one that an event gave")
        return cls(entry_id, int(number))


class EventLog:
    """One queue's, for a reader that wants to hear nothing of some kinds."""

    def __init__(self, connection: Connection, stream: str, without: frozenset[EventKind]) -> None:
        self._connection = connection
        self._stream = stream
        self._without = without
        self._words = frozenset(kind.value.encode() for kind in without)
        """The same as they are stored."""

    async def read(self, after: str | None, limit: int, timeout_ms: int) -> EventPage:
        if after is None:
            return await self._end()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        cursor = None if after == FROM_START else Cursor.parse(after)
        while True:
            page = await self._read_page(cursor, limit)
            left_ms = (deadline - loop.time()) * 1000
            if page.events or page.gap or page.is_full or left_ms <= 0:
                return page
            # Entries that mean nothing to the reader were passed over for good.
            cursor = Cursor.parse(page.cursor)
            block_ms = str(max(1, int(min(left_ms, LONGEST_BLOCK_MS))))
            # One is enough to wake us: the page is read anew, with the numbers that tell of a gap.
            await self._connection.block(
                "XREAD", "COUNT", "1", "BLOCK", block_ms, "STREAMS", self._stream, cursor.entry_id
            )

    async def _end(self) -> EventPage:
        _, logged, _, last_id = await self._connection.run(EVENTS, self._stream, "", "0")
        return EventPage((), str(Cursor(last_id.decode(), logged)))

    async def _read_page(self, cursor: Cursor | None, limit: int) -> EventPage:
        """The page after the cursor; without one, that of the oldest events."""
        after = NO_CURSOR if cursor is None else cursor.entry_id
        entries, logged, left, last_id = await self._connection.run(EVENTS, self._stream, after, str(limit))
        dropped = logged - left
        if cursor is None:
            cursor = Cursor(NO_CURSOR, dropped)
        # A log that has fewer entries than the cursor counts was removed and begun again.
        gap = dropped > cursor.number or logged < cursor.number
        events, last = self._read_entries(entries, cursor, dropped if gap else cursor.number)
        if gap and not entries:
            # Told once: from here on the reader is where the log ends.
            last = Cursor(last_id.decode(), logged)
        return EventPage(tuple(events), str(last), gap, is_full=len(entries) >= limit)

    def _read_entries(
        self, entries: Sequence[Sequence[Any]], cursor: Cursor, numbered_from: int
    ) -> tuple[list[Event], Cursor]:
        if not entries:
            return [], cursor
        events: list[Event] = []
        for number, (stored_id, fields) in enumerate(entries, numbered_from + 1):
            # The kind is written first: what nobody wants is not even read.
            if fields[1] in self._words:
                continue
            entry_id = stored_id.decode()
            event = read_event(entry_id, fields, f"{entry_id}/{number}")
            if event is not None and event.kind not in self._without:
                events.append(event)
        return events, Cursor(entries[-1][0].decode(), numbered_from + len(entries))
