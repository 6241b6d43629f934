"""Looking: all that only reads, on a connection of its own that no writer waits for."""

import sqlite3
from collections.abc import Sequence

import msgspec

from bullpen.errors import BadOption, JobMissing, QueueMissing
from bullpen.job.events import Event
from bullpen.job.record import JobRecord, JobRef, Lease
from bullpen.job.state import FINISHED, State
from bullpen.stores.base import FROM_START, ChildPage, Counts, EventPage, JobPage, LogPage, Notice, WorkerInfo
from bullpen.stores.sqlite import family
from bullpen.stores.sqlite.rows import SELECT, STATE_NUMBER, record_from
from bullpen.stores.sqlite.schema import ACTIVE, DELAYED, READY
from bullpen.stores.sqlite.tokens import lease_token
from bullpen.stores.sqlite.transaction import find_key

_decode_events = msgspec.msgpack.Decoder(list[Event]).decode
_decode_worker = msgspec.json.Decoder(WorkerInfo).decode

ORDER = {
    State.WAITING: ("position", "key"),
    State.PRIORITIZED: ("priority", "position"),
    State.DELAYED: ("due_ms", "position"),
    State.ACTIVE: ("lease_until_ms", "key"),
    State.WAITING_CHILDREN: ("entered_ms", "key"),
    State.COMPLETED: ("finished_ms", "key"),
    State.FAILED: ("finished_ms", "key"),
}
"""In which order a state is read; each is the order of that state's index."""
NARROWED = {
    State.WAITING: " AND job.priority = 0",
    State.PRIORITIZED: " AND job.priority > 0",
    State.COMPLETED: " AND job.finished_ms IS NOT NULL",
    State.FAILED: " AND job.finished_ms IS NOT NULL",
}
"""What a query must say for the planner to see that the state's index holds all it wants."""


_TOO_LARGE = 2**63
"""For a number in SQLite."""


def job(db: sqlite3.Connection, ref: JobRef) -> JobRecord:
    row = db.execute(f"{SELECT} WHERE job.key = ?", (find_job(db, ref),)).fetchone()
    if row is None:
        raise _missing(ref)
    return record_from(row, ref.queue)


def jobs(
    db: sqlite3.Connection, queue: str, state: State, limit: int, cursor: str | None, *, newest_first: bool
) -> JobPage:
    number = existing_queue(db, queue)
    major, minor = ORDER[state]
    values: list[int] = [number]
    after = NARROWED.get(state, "")
    if cursor is not None:
        # The cursor is where the index is to be entered, so the planner must see no other place.
        if state in (State.PRIORITIZED, *FINISHED):
            after = after.replace(" job.", " +job.")
        beyond = "<" if newest_first else ">"
        after += f" AND (job.{major}, job.{minor}) {beyond} (?, ?)"
        values += _parse_page_cursor(cursor)
        if state in FINISHED:
            after += f" AND job.finished_ms {beyond}= ?"
            values.append(values[1])
    way = "DESC" if newest_first else "ASC"
    rows = db.execute(
        f"SELECT job.{major}, job.{minor}, {SELECT.removeprefix('SELECT ')} WHERE job.queue = ?"
        f" AND job.state = {STATE_NUMBER[state]:d}{after}"
        f" ORDER BY job.{major} {way}, job.{minor} {way} LIMIT ?",
        (*values, limit + 1),
    ).fetchall()
    found = tuple(record_from(row[2:], queue) for row in rows[:limit])
    more = len(rows) > limit
    return JobPage(found, f"{rows[limit - 1][0]},{rows[limit - 1][1]}" if more else None)


def _parse_page_cursor(cursor: str) -> tuple[int, int]:
    try:
        major, minor = (int(part) for part in cursor.split(","))
    except ValueError:
        major = minor = _TOO_LARGE
    if max(abs(major), abs(minor)) >= _TOO_LARGE:
        raise BadOption(f"cursor: {cursor!r} is not one that a page gave")
    return major, minor


def children(db: sqlite3.Connection, ref: JobRef, limit: int, cursor: str | None) -> ChildPage:
    return family.children(db, find_job(db, ref), limit, cursor)


def logs(db: sqlite3.Connection, ref: JobRef, start: int, limit: int) -> LogPage:
    key = find_job(db, ref)
    rows = db.execute(
        "SELECT text FROM log WHERE job = ? ORDER BY line LIMIT ? OFFSET ?", (key, limit, start)
    ).fetchall()
    (total,) = db.execute("SELECT count(*) FROM log WHERE job = ?", (key,)).fetchone()
    return LogPage(tuple(text for (text,) in rows), total)


def counts(db: sqlite3.Connection, queue: str) -> Counts:
    row = db.execute(
        "SELECT waiting, prioritized, delayed, active, waiting_children, completed, failed, paused"
        " FROM queue WHERE id = ?",
        (existing_queue(db, queue),),
    ).fetchone()
    names = ("waiting", "prioritized", "delayed", "active", "waiting_children", "completed", "failed")
    return Counts(**dict(zip(names, row[:7], strict=True)), paused=bool(row[7]))


def queues(db: sqlite3.Connection) -> list[str]:
    return [name for (name,) in db.execute("SELECT name FROM queue WHERE listed ORDER BY name")]


def oldest_waiting_ms(db: sqlite3.Connection, queue: str) -> int | None:
    row = db.execute(
        f"SELECT entered_ms FROM job WHERE queue = ? AND state = {READY} ORDER BY priority, position LIMIT 1",
        (existing_queue(db, queue),),
    ).fetchone()
    return None if row is None else row[0]


def runnable_from_ms(db: sqlite3.Connection, names: Sequence[str], now_ms: int) -> int | None:
    """The earliest time at which one of the queues has a runnable job; None if nothing is to come."""
    earliest: int | None = None
    for name in names:
        row = db.execute(
            "SELECT id, paused, waiting + prioritized, delayed FROM queue WHERE name = ?", (name,)
        ).fetchone()
        if row is None or row[1]:
            continue
        number, _, ready, delayed = row
        if ready:
            return now_ms
        if delayed:
            due_ms = db.execute(
                f"SELECT min(due_ms) FROM job WHERE queue = ? AND state = {DELAYED}", (number,)
            ).fetchone()[0]
            if due_ms is not None:
                earliest = due_ms if earliest is None else min(earliest, due_ms)
    return earliest


def notices(db: sqlite3.Connection, worker: str) -> list[Notice]:
    rows = db.execute(
        "SELECT job.key, job.own_id, job.token, job.epoch, job.cancelling, queue.name FROM job"
        f" JOIN queue ON queue.id = job.queue WHERE cancelling IS NOT NULL AND worker = ? AND state = {ACTIVE}",
        (worker,),
    ).fetchall()
    return [
        Notice(Lease(JobRef(queue, own_id or str(key)), lease_token(key, token), epoch), reason)
        for key, own_id, token, epoch, reason, queue in rows
    ]


def workers(db: sqlite3.Connection, now_ms: int) -> list[WorkerInfo]:
    rows = db.execute("SELECT info FROM worker WHERE until_ms > ? ORDER BY name", (now_ms,))
    return [_decode_worker(info) for (info,) in rows]


# ── events ───────────────────────────────────────────────────────────────────────────────


def events(db: sqlite3.Connection, queue: str, after: str | None, limit: int) -> EventPage:
    row = db.execute("SELECT id, last_event FROM queue WHERE name = ?", (queue,)).fetchone()
    number, newest = row or (0, 0)
    if after is None:
        return EventPage((), str(newest))
    place = _oldest(db, number, newest) if after == FROM_START else _parse_event_cursor(after, newest)
    if place == newest:
        return EventPage((), str(place))
    found: list[Event] = []
    gap = True
    runs = db.execute("SELECT first, body FROM event WHERE queue = ? AND last > ? ORDER BY last", (number, place))
    for first, body in runs:
        if not found:
            gap = first > place + 1
        run = _decode_events(body)
        for n, event in enumerate(run, first):
            if n > place:
                found.append(msgspec.structs.replace(event, cursor=str(n)))
        if len(found) >= limit:
            break
    del found[limit:]
    return EventPage(tuple(found), found[-1].cursor if found else str(newest), gap)


def _oldest(db: sqlite3.Connection, queue: int, newest: int) -> int:
    row = db.execute("SELECT first FROM event WHERE queue = ? ORDER BY last LIMIT 1", (queue,)).fetchone()
    return newest if row is None else int(row[0]) - 1


def _parse_event_cursor(cursor: str, newest: int) -> int:
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
        raise BadOption(f"cursor: {cursor!r} is not one that an event gave")
    if int(cursor) > newest:
        raise BadOption(f"cursor: {cursor} is after the newest event, {newest}")
    return int(cursor)


# ── shared ───────────────────────────────────────────────────────────────────────────────


def existing_queue(db: sqlite3.Connection, name: str) -> int:
    row = db.execute("SELECT id FROM queue WHERE name = ? AND listed", (name,)).fetchone()
    if row is None:
        raise QueueMissing(f"no queue named {name!r}")
    return int(row[0])


def find_job(db: sqlite3.Connection, ref: JobRef) -> int:
    row = db.execute("SELECT id FROM queue WHERE name = ?", (ref.queue,)).fetchone()
    key = None if row is None else find_key(db, row[0], ref.id)
    if key is None:
        raise _missing(ref)
    return key


def _missing(ref: JobRef) -> JobMissing:
    return JobMissing(f"no job {ref.id!r} in queue {ref.queue!r}")
