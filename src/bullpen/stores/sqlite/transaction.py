"""One transaction of the writer: what all verbs of a group commit share.

Counters and events are collected here and written once, at the end, however many verbs the
transaction carries.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any

import msgspec

from bullpen.errors import JobMissing, QueueMissing
from bullpen.job.events import Event
from bullpen.job.names import is_generated_id
from bullpen.job.record import JobRef
from bullpen.stores.base import MAX_EVENTS
from bullpen.stores.sqlite.schema import ACTIVE, COMPLETED, DELAYED, FAILED, READY, WAITING_CHILDREN

Row = tuple[Any, ...]
blob = bytearray
"""Bytes to be bound where it counts. For `bytes`, as for None, sqlite3 asks around for an adapter: 1 µs each time."""

_COUNTER = {
    DELAYED: "delayed",
    ACTIVE: "active",
    WAITING_CHILDREN: "waiting_children",
    COMPLETED: "completed",
    FAILED: "failed",
}
_ROWS_AT_ONCE = 128
_DIGITS_OF_KEYS = 19
_encode_events = msgspec.msgpack.Encoder().encode


def counter_of(state: int, priority: int) -> str:
    """The counter of `queue` on which a job of this state and priority stands."""
    if state == READY:
        return "prioritized" if priority else "waiting"
    return _COUNTER[state]


class QueueBook:
    """Queue names and their numbers, which never change: a removed queue only goes unlisted."""

    def __init__(self) -> None:
        self.number_of: dict[str, int] = {}
        self.name_of: dict[int, str] = {}

    def learn(self, name: str, number: int) -> None:
        self.number_of[name] = number
        self.name_of[number] = name


WORK, EVENTS, CANCELS = 1, 2, 4
"""What news can be about; together they make up a byte that travels between processes."""


class News:
    """What a commit has for those who wait."""

    def __init__(self) -> None:
        self.runnable: set[str] = set()
        """Queues where a job became runnable, or will be sooner than was known."""
        self.told: set[str] = set()
        """Queues with new events."""
        self.cancelling = False
        self.number = 0
        """Of the commit, as its writer counts them."""

    @property
    def topics(self) -> int:
        return (WORK if self.runnable else 0) | (EVENTS if self.told else 0) | (CANCELS if self.cancelling else 0)

    def __bool__(self) -> bool:
        return self.topics > 0


class Transaction:
    def __init__(self, db: sqlite3.Connection, book: QueueBook, now_ms: int) -> None:
        self.db = db
        self.now_ms = now_ms
        self.news = News()
        self._book = book
        self._new_queues: dict[str, int] = {}
        self._deltas: defaultdict[int, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._events: defaultdict[int, list[Event]] = defaultdict(list)
        self._next_number: int | None = None
        self._listed: set[int] = set()
        self._when_committed: list[Callable[[], None]] = []
        self._group_changes: dict[tuple[int, str], list[int]] = {}
        self.failed: list[JobRef] = []
        """Jobs that the verb at work failed by itself; whoever reports them empties it first."""

    # ── queues ───────────────────────────────────────────────────────────────────────────

    def queue(self, name: str) -> int:
        """The queue's number; the queue exists from now on."""
        number = self._find(name)
        if number is None:
            number = int(self.db.execute("INSERT INTO queue(name) VALUES(?) RETURNING id", (name,)).fetchone()[0])
            self._new_queues[name] = number
        self._listed.add(number)
        return number

    def existing_queue(self, name: str) -> int:
        number = self._find(name)
        if number is None or not self._is_listed(number):
            raise QueueMissing(f"no queue named {name!r}")
        return number

    def queue_name(self, number: int) -> str:
        name = self._book.name_of.get(number)
        if name is None:
            name = str(self.db.execute("SELECT name FROM queue WHERE id = ?", (number,)).fetchone()[0])
            self._new_queues[name] = number
        return name

    def unlist(self, number: int) -> None:
        self._listed.discard(number)
        self.db.execute("UPDATE queue SET listed = 0 WHERE id = ?", (number,))

    def _find(self, name: str) -> int | None:
        number = self._book.number_of.get(name) or self._new_queues.get(name)
        if number is None:
            row = self.db.execute("SELECT id FROM queue WHERE name = ?", (name,)).fetchone()
            if row is not None:
                number = self._new_queues[name] = int(row[0])
        return number

    def _is_listed(self, number: int) -> bool:
        if number in self._listed:
            return True
        return bool(self.db.execute("SELECT listed FROM queue WHERE id = ?", (number,)).fetchone()[0])

    # ── numbers, counters, events ────────────────────────────────────────────────────────

    def take_numbers(self, how_many: int) -> int:
        """The first of that many fresh numbers: keys of new jobs and places in line."""
        if self._next_number is None:
            self._next_number = int(self.db.execute("SELECT next FROM sequence").fetchone()[0])
        first = self._next_number
        self._next_number += how_many
        return first

    def skip_numbers(self, first: int) -> int:
        """Give out no number below this one any more; the next one that will be given."""
        self._next_number = max(self.take_numbers(0), first)
        return self._next_number

    def count(self, queue: int, counter: str, change: int) -> None:
        self._deltas[queue][counter] += change

    def count_grouped(self, queue: int, group: str | None, state: int, change: int) -> None:
        """So many more jobs of the group are in this state; whoever counts on `count` counts here too."""
        if group is None or state not in (READY, ACTIVE):
            return
        self.touch_group(queue, group)[0 if state == READY else 1] += change
        if state == READY:
            self.count(queue, "grouped", change)

    def touch_group(self, queue: int, group: str) -> list[int]:
        """The group is to be looked at again; how many more wait and run there, as far as was counted."""
        return self._group_changes.setdefault((queue, group), [0, 0])

    def take_group_changes(self, queue: int | None = None) -> dict[tuple[int, str], list[int]]:
        """All groups that were touched, or those of one queue; grouping.py puts each where it belongs."""
        taken = {key: found for key, found in self._group_changes.items() if queue in (None, key[0])}
        for key in taken:
            del self._group_changes[key]
        return taken

    def counters(self, queue: int, *names: str) -> list[int]:
        """These counters of the queue as they stand within this transaction."""
        row = self.db.execute(f"SELECT {', '.join(names)} FROM queue WHERE id = ?", (queue,)).fetchone()
        deltas = self._deltas[queue]
        return [stored + deltas.get(name, 0) for stored, name in zip(row, names, strict=True)]

    def tell(self, queue: int, event: Event) -> None:
        self._events[queue].append(event)

    def now_runnable(self, queue: int) -> None:
        self.news.runnable.add(self.queue_name(queue))

    # ── jobs ─────────────────────────────────────────────────────────────────────────────

    def key(self, ref: JobRef) -> int:
        """The job's key, or JobMissing."""
        key = find_key(self.db, self.queue_number_if_known(ref.queue), ref.id)
        if key is None:
            raise JobMissing(f"no job {ref.id!r} in queue {ref.queue!r}")
        return key

    def queue_number_if_known(self, name: str) -> int:
        return self._find(name) or 0

    def execute_rows(self, head: str, tail: str, rows: Sequence[Row]) -> list[Row]:
        """Run one statement over many rows of values, in as few steps as may be.

        Each step gives the interpreter lock away and must win it back from a busy event loop,
        so a statement for each row would wait as many times.
        """
        found: list[Row] = []
        width = len(rows[0]) if rows else 0
        for part in _powers_of_two(rows):
            sql = _statement(head, tail, width, len(part))
            found += self.db.execute(sql, [value for row in part for value in row]).fetchall()
        return found

    def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert them, without the columns that none of them fills: to bind a None takes longer than to write it."""
        filled = [n for n, values in enumerate(zip(*rows, strict=True)) if any(value is not None for value in values)]
        if len(filled) < len(columns):
            rows = list(map(itemgetter(*filled), rows))
        self.execute_rows(f"INSERT INTO {table}({', '.join(columns[n] for n in filled)}) VALUES", "", rows)

    def update_rows(self, head: str, tail: str, rows: Sequence[Row]) -> list[Row]:
        """The same for an update of rows whose key comes first: rows with key 0 find nothing, and fill up the step."""
        height = min(_ROWS_AT_ONCE, 1 << (len(rows) - 1).bit_length())
        missing = -len(rows) % height
        return self.execute_rows(head, tail, [*rows, *[(0,) * len(rows[0])] * missing] if missing else rows)

    # ── the end ──────────────────────────────────────────────────────────────────────────

    def flush(self) -> None:
        """Write what was collected, before the commit."""
        for queue in self._listed | self._deltas.keys() | self._events.keys():
            self._flush_queue(queue)
        if self._next_number is not None:
            self.db.execute("UPDATE sequence SET next = ?", (self._next_number,))

    def when_committed(self, action: Callable[[], None]) -> None:
        """Do this once the transaction is true, and only then."""
        self._when_committed.append(action)

    def committed(self) -> News:
        """Keep what was learnt, now that it is true; the news for those who wait."""
        for action in self._when_committed:
            action()
        for name, number in self._new_queues.items():
            self._book.learn(name, number)
        self.news.told.update(self.queue_name(queue) for queue in self._events)
        return self.news

    def _flush_queue(self, queue: int) -> None:
        events = self._events.get(queue, ())
        changes = {name: change for name, change in self._deltas[queue].items() if change}
        if queue in self._listed:
            changes["listed"] = 0
        if not changes and not events:
            return
        # `listed` is set rather than counted: a queue that was removed lives again.
        sets = ", ".join("listed = 1 + ?" if name == "listed" else f"{name} = {name} + ?" for name in changes)
        sets += ", " if sets else ""
        sql = f"UPDATE queue SET {sets}last_event = last_event + ? WHERE id = ? RETURNING last_event, limited"
        last, is_limited = self.db.execute(sql, (*changes.values(), len(events), queue)).fetchone()
        if is_limited and changes.get("active", 0) < 0:
            self.now_runnable(queue)  # a place may be free again
        if events:
            self._write_events(queue, last, events)

    def _write_events(self, queue: int, last: int, events: Sequence[Event]) -> None:
        first = last - len(events) + 1
        self.db.execute(
            "INSERT INTO event(queue, last, first, body) VALUES(?, ?, ?, ?)",
            (queue, last, first, _encode_events(events)),
        )
        if last // 512 != (first - 1) // 512:
            self.db.execute("DELETE FROM event WHERE queue = ? AND last <= ?", (queue, last - MAX_EVENTS))


def find_key(db: sqlite3.Connection, queue: int, job_id: str) -> int | None:
    if is_generated_id(job_id):
        # No key is longer; Python refuses to read numbers of thousands of digits, and SQLite those beyond 64 bits.
        value = int(job_id) if len(job_id) < _DIGITS_OF_KEYS else 0
        sql = "SELECT key FROM job WHERE key = ? AND queue = ? AND own_id IS NULL"
        if (row := db.execute(sql, (value, queue)).fetchone()) is not None:
            return int(row[0])
    # Also a number may stand here: the id that another store gave to a job before it moved to this one.
    row = db.execute("SELECT key FROM job WHERE queue = ? AND own_id = ?", (queue, job_id)).fetchone()
    return None if row is None else int(row[0])


def as_list(keys: Iterable[int]) -> str:
    """Keys as one parameter, for `IN (SELECT value FROM json_each(?))`."""
    return json.dumps(list(keys))


def _powers_of_two(rows: Sequence[Row]) -> Iterable[Sequence[Row]]:
    """Slices of at most _ROWS_AT_ONCE, of few different lengths, so that statements are prepared once."""
    start = 0
    while start < len(rows):
        size = min(_ROWS_AT_ONCE, 1 << ((len(rows) - start).bit_length() - 1))
        yield rows[start : start + size]
        start += size


@cache
def _statement(head: str, tail: str, width: int, height: int) -> str:
    row = f"({', '.join('?' * width)})"
    return f"{head} {', '.join([row] * height)} {tail}"
