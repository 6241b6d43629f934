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
from bullpen.job.events import Event
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


async def read_events(connection: Connection, stream: str, after: str | None, limit: int, timeout_ms: int) -> EventPage:
    if after is None:
        return await _end_of_log(connection, stream)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000
    cursor = None if after == FROM_START else Cursor.parse(after)
    while True:
        page = await _read_page(connection, stream, cursor, limit)
        left_ms = (deadline - loop.time()) * 1000
        if page.events or page.gap or left_ms <= 0:
            return page
        # Entries that mean nothing to us were passed over for good.
        cursor = Cursor.parse(page.cursor)
        block_ms = max(1, int(min(left_ms, LONGEST_BLOCK_MS)))
        await connection.block("XREAD", "BLOCK", str(block_ms), "STREAMS", stream, cursor.entry_id)


async def _end_of_log(connection: Connection, stream: str) -> EventPage:
    _, logged, _, last_id = await connection.run(EVENTS, stream, "", "0")
    return EventPage((), str(Cursor(last_id.decode(), logged)))


async def _read_page(connection: Connection, stream: str, cursor: Cursor | None, limit: int) -> EventPage:
    """The page after the cursor; without one, that of the oldest events."""
    after = NO_CURSOR if cursor is None else cursor.entry_id
    entries, logged, left, last_id = await connection.run(EVENTS, stream, after, str(limit))
    dropped = logged - left
    if cursor is None:
        cursor = Cursor(NO_CURSOR, dropped)
    # A log that has fewer entries than the cursor counts was removed and begun again.
    gap = dropped > cursor.number or logged < cursor.number
    events, last = _read_entries(entries, cursor, dropped if gap else cursor.number)
    if gap and not entries:
        # Told once: from here on the reader is where the log ends.
        last = Cursor(last_id.decode(), logged)
    return EventPage(tuple(events), str(last), gap)


def _read_entries(entries: Sequence[Sequence[Any]], cursor: Cursor, numbered_from: int) -> tuple[list[Event], Cursor]:
    events: list[Event] = []
    for number, (entry_id, fields) in enumerate(entries, numbered_from + 1):
        cursor = Cursor(entry_id.decode(), number)
        event = read_event(entry_id, fields, str(cursor))
        if event is not None:
            events.append(event)
    return events, cursor
