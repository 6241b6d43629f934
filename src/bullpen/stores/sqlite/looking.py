"""Looking: all that only reads, on a connection of its own that no writer waits for."""

import sqlite3
from collections.abc import Collection, Sequence

import msgspec

from bullpen.errors import BadOption, JobMissing, QueueMissing
from bullpen.job.events import Event, EventKind
from bullpen.job.record import JobRecord, JobRef, Lease
from bullpen.job.state import FINISHED, State
from bullpen.job.state import READY as READY_STATES
from bullpen.stores.base import FROM_START, ChildPage, Counts, EventPage, JobPage, LogPage, Notice, WorkerInfo
from bullpen.stores.sqlite import family
from bullpen.stores.sqlite.limiting import read_limits
from bullpen.stores.sqlite.rows import SELECT, STATE_NUMBER, record_from
from bullpen.stores.sqlite.schema import ACTIVE, DELAYED, READY
from bullpen.stores.sqlite.tokens import lease_token
from bullpen.stores.sqlite.transaction import Row, find_key

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
_NARROWED = {
    State.WAITING: " AND job.priority = 0",
    State.PRIORITIZED: " AND job.priority > 0",
    State.COMPLETED: " AND job.finished_ms IS NOT NULL",
    State.FAILED: " AND job.finished_ms IS NOT NULL",
}
"""What a query must say for the planner to see that the state's index holds all it wants."""


def parts_of(state: State) -> list[str]:
    """The conditions of a state's parts, one after the other: what waits in groups stands behind the others."""
    narrowed = _NARROWED.get(state, "")
    if state not in READY_STATES:
        return [narrowed]
    return [f"{narrowed} AND job.group_name IS NULL", f"{narrowed} AND job.group_name IS NOT NULL"]


_TOO_LARGE = 2**63
"""For a number in SQLite."""
_GROUPED = "grouped:"
"""So begins a cursor that is among the jobs in groups."""


def job(db: sqlite3.Connection, ref: JobRef) -> JobRecord:
    row = db.execute(f"{SELECT} WHERE job.key = ?", (find_job(db, ref),)).fetchone()
    if row is None:
        raise _missing(ref)
    return record_from(row, ref.queue)


def look(db: sqlite3.Connection, queue: str, ids: Sequence[str]) -> list[JobRecord | None]:
    row = db.execute("SELECT id FROM queue WHERE name = ?", (queue,)).fetchone()
    keys = [None if row is None else find_key(db, row[0], job_id) for job_id in ids]
    found = [None if key is None else db.execute(f"{SELECT} WHERE job.key = ?", (key,)).fetchone() for key in keys]
    return [None if found_row is None else record_from(found_row, queue) for found_row in found]


def jobs(
    db: sqlite3.Connection, queue: str, state: State, limit: int, cursor: str | None, *, newest_first: bool
) -> JobPage:
    number = existing_queue(db, queue)
    parts = list(enumerate(parts_of(state)))
    at_part, *place = (None,) if cursor is None else _parse_page_cursor(cursor)
    rows: list[Row] = []
    for n, part in reversed(parts) if newest_first else parts:
        is_seen = at_part is not None and (n > at_part if newest_first else n < at_part)
        if not is_seen and len(rows) <= limit:
            after = place if n == at_part else []
            found = _part_of_page(db, number, state, part, limit + 1 - len(rows), after, newest_first=newest_first)
            rows += [(n, *row) for row in found]
    found_jobs = tuple(record_from(row[3:], queue) for row in rows[:limit])
    more = len(rows) > limit
    return JobPage(found_jobs, _page_cursor(*rows[limit - 1][:3]) if more else None)


def _part_of_page(
    db: sqlite3.Connection, queue: int, state: State, part: str, limit: int, place: Sequence[int], *, newest_first: bool
) -> list[Row]:
    major, minor = ORDER[state]
    values: list[int] = [queue]
    if place:
        # The cursor is where the index is to be entered, so the planner must see no other place.
        if state in (State.PRIORITIZED, *FINISHED):
            part = part.replace(" job.priority", " +job.priority").replace(" job.finished_ms", " +job.finished_ms")
        beyond = "<" if newest_first else ">"
        part += f" AND (job.{major}, job.{minor}) {beyond} (?, ?)"
        values += place
        if state in FINISHED:
            part += f" AND job.finished_ms {beyond}= ?"
            values.append(place[0])
    way = "DESC" if newest_first else "ASC"
    return db.execute(
        f"SELECT job.{major}, job.{minor}, {SELECT.removeprefix('SELECT ')} WHERE job.queue = ?"
        f" AND job.state = {STATE_NUMBER[state]:d}{part}"
        f" ORDER BY job.{major} {way}, job.{minor} {way} LIMIT ?",
        (*values, limit),
    ).fetchall()


def _page_cursor(part: int, major: int, minor: int) -> str:
    return f"{_GROUPED if part else ''}{major},{minor}"


def _parse_page_cursor(cursor: str) -> tuple[int, int, int]:
    try:
        major, minor = (int(each) for each in cursor.removeprefix(_GROUPED).split(","))
    except ValueError:
        major = minor = _TOO_LARGE
    if max(abs(major), abs(minor)) >= _TOO_LARGE:
        raise BadOption(f"cursor: {cursor!r} is not one that a page gave")
    return int(cursor.startswith(_GROUPED)), major, minor


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
    number = existing_queue(db, queue)
    for group in ("IS NULL", "IS NOT NULL"):
        row = db.execute(
            f"SELECT entered_ms FROM job WHERE queue = ? AND state = {READY} AND group_name {group}"
            " ORDER BY priority, position LIMIT 1",
            (number,),
        ).fetchone()
        if row is not None:
            return row[0]  # type: ignore[no-any-return]  # SQLite's own
    return None


def runnable_from_ms(db: sqlite3.Connection, names: Sequence[str], now_ms: int) -> int | None:
    """The earliest time at which one of the queues has a runnable job; None if nothing is to come."""
    times = [_queue_runnable_from_ms(db, name, now_ms) for name in names]
    return min((time_ms for time_ms in times if time_ms is not None), default=None)


def _queue_runnable_from_ms(db: sqlite3.Connection, name: str, now_ms: int) -> int | None:
    row = db.execute(
        "SELECT id, paused, waiting + prioritized - grouped, delayed, grouped, active, limited FROM queue"
        " WHERE name = ?",
        (name,),
    ).fetchone()
    if row is None or row[1]:
        return None
    queue, _, ready, delayed, grouped, active, limited = row
    times = [now_ms] if ready else []
    if delayed:
        due = db.execute(f"SELECT min(due_ms) FROM job WHERE queue = ? AND state = {DELAYED}", (queue,)).fetchone()
        times += [due_ms for due_ms in due if due_ms is not None]
    if grouped and not ready:
        times += _groups_runnable_from_ms(db, queue, now_ms)
    limits = read_limits(db, queue) if limited else None
    if not times or (limits is not None and limits.is_full(active)):
        return None
    closed_until_ms = None if limits is None else limits.closed_until(now_ms)
    return min(times) if closed_until_ms is None else max(closed_until_ms, min(times))


def _groups_runnable_from_ms(db: sqlite3.Connection, queue: int, now_ms: int) -> list[int]:
    if db.execute("SELECT 1 FROM job_group WHERE queue = ? AND is_in_ring LIMIT 1", (queue,)).fetchone():
        return [now_ms]
    row = db.execute("SELECT min(wake_ms) FROM job_group WHERE queue = ? AND wake_ms IS NOT NULL", (queue,)).fetchone()
    return [wake_ms for wake_ms in row if wake_ms is not None]


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


def events(
    db: sqlite3.Connection, queue: str, after: str | None, limit: int, without: Collection[EventKind]
) -> EventPage:
    row = db.execute("SELECT id, last_event FROM queue WHERE name = ?", (queue,)).fetchone()
    number, newest = row or (0, 0)
    if after is None:
        return EventPage((), str(newest))
    place = _oldest(db, number, newest) if after == FROM_START else _parse_event_cursor(after, newest)
    if place == newest:
        return EventPage((), str(place))
    found: list[Event] = []
    last, end, gap = place, newest, True
    runs = db.execute("SELECT first, body FROM event WHERE queue = ? AND last > ? ORDER BY last", (number, place))
    for first, body in runs:
        if last == place:
            gap = first > place + 1
            end = max(place, first - 1) + limit
        for n, event in enumerate(_decode_events(body), first):
            if place < n <= end:
                last = n
                if event.kind not in without:
                    found.append(msgspec.structs.replace(event, cursor=str(n)))
        if last == end:
            break
    is_full = last == end
    return EventPage(tuple(found), str(last if last > place else newest), gap, is_full)


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
