"""Moving out: jobs and memories as they are, and jobs that another store has by now."""

import sqlite3
from collections.abc import Mapping, Sequence

from bullpen.errors import BadOption, MoveRefused, WrongState
from bullpen.job.events import Event, EventKind
from bullpen.job.state import State
from bullpen.stores.moving import MemoryPage, RememberedId, SavedJob, Subject, schedules_refused
from bullpen.stores.sqlite import packing
from bullpen.stores.sqlite.adding import decode_new_job
from bullpen.stores.sqlite.forgetting import forget
from bullpen.stores.sqlite.looking import ORDER, existing_queue, parts_of
from bullpen.stores.sqlite.rows import COLUMNS, STATE_NUMBER, record_from, state_of
from bullpen.stores.sqlite.schema import ACTIVE, COMPLETED, FAILED
from bullpen.stores.sqlite.transaction import Row, Transaction, as_list, find_key

_IDS, _SUBJECTS = "ids:", "subjects:"
"""With which part of the memory a cursor goes on; after it stands the last that was seen."""


def export_jobs(db: sqlite3.Connection, queue: str, state: State, limit: int) -> list[SavedJob]:
    number = existing_queue(db, queue)
    if state == State.ACTIVE:
        raise WrongState("active jobs cannot be exported; wait for their end")
    major, minor = ORDER[state]
    rows: list[Row] = []
    for part in parts_of(state):
        rows += db.execute(
            f"SELECT job.entered_ms, job.start_by_ms, {COLUMNS} FROM job JOIN body ON body.key = job.key"
            f" WHERE job.queue = ? AND job.state = {STATE_NUMBER[state]:d}{part}"
            f" ORDER BY job.{major}, job.{minor} LIMIT ?",
            (number, limit - len(rows)),
        ).fetchall()
    rows = rows[: packing.how_many_fit(db, [row[2] for row in rows])]
    listed = as_list(row[2] for row in rows)
    logs, subjects = _logs(db, listed), _subjects(db, listed)
    saved = {row[2]: _saved(row, queue, logs.get(row[2], []), subjects.get(row[2])) for row in rows}
    return packing.with_steps(db, saved)


def _saved(row: Row, queue: str, logs: list[str], subject: Subject | None) -> SavedJob:
    entered_ms, start_by_ms, *rest = row
    record = record_from(tuple(rest), queue)
    if record.state is State.WAITING_CHILDREN or record.parent is not None:
        raise MoveRefused(
            f"job {record.id!r} of queue {queue!r} is part of a flow, which cannot move: let it end first"
        )
    return SavedJob(
        record,
        record.added_ms if entered_ms is None else entered_ms,
        start_by_ms,
        tuple(logs),
        subject,
    )


def _logs(db: sqlite3.Connection, keys: str) -> dict[int, list[str]]:
    logs: dict[int, list[str]] = {}
    sql = "SELECT job, text FROM log WHERE job IN (SELECT value FROM json_each(?)) ORDER BY job, line"
    for key, text in db.execute(sql, (keys,)):
        logs.setdefault(key, []).append(text)
    return logs


def _subjects(db: sqlite3.Connection, keys: str) -> dict[int, Subject]:
    """What these jobs stand for; one that has ended stands for nothing by itself."""
    rows = db.execute(
        "SELECT job.key, dedup.id, owner_id, until_ms, next FROM job"
        " JOIN dedup ON dedup.queue = job.queue AND dedup.id = job.dedup AND dedup.owner = job.key"
        f" WHERE job.key IN (SELECT value FROM json_each(?)) AND job.state NOT IN ({COMPLETED}, {FAILED})",
        (keys,),
    )
    return {key: _subject(*rest) for key, *rest in rows}


def _subject(subject_id: str, owner_id: str, until_ms: int | None, kept: bytes | None) -> Subject:
    return Subject(subject_id, owner_id, until_ms, None if kept is None else decode_new_job(kept))


def export_memory(db: sqlite3.Connection, queue: str, limit: int, cursor: str | None, now_ms: int) -> MemoryPage:
    number = existing_queue(db, queue)
    if cursor is None:
        _expect_movable(db, queue, number)
    last_id = int(db.execute("SELECT next FROM sequence").fetchone()[0]) - 1
    cursor = _IDS if cursor is None else cursor
    if cursor.startswith(_IDS):
        ids = tuple(
            RememberedId(*row) for row in _after(db, "id, until_ms FROM id_memory", number, cursor, limit, now_ms)
        )
        more = _IDS + ids[-1].id if len(ids) == limit else _SUBJECTS
        return MemoryPage(last_id, ids, (), more)
    if not cursor.startswith(_SUBJECTS):
        raise BadOption(f"cursor: {cursor!r} is not one that a page gave")
    subjects = tuple(
        _subject(*row) for row in _after(db, "id, owner_id, until_ms, NULL FROM dedup", number, cursor, limit, now_ms)
    )
    return MemoryPage(last_id, (), subjects, _SUBJECTS + subjects[-1].id if len(subjects) == limit else None)


def _expect_movable(db: sqlite3.Connection, queue: str, number: int) -> None:
    if db.execute("SELECT 1 FROM schedule WHERE queue = ?", (number,)).fetchone():
        raise schedules_refused(queue)


def _after(db: sqlite3.Connection, what: str, queue: int, cursor: str, limit: int, now_ms: int) -> list[Row]:
    return db.execute(
        f"SELECT {what} WHERE queue = ? AND id > ? AND until_ms > ? ORDER BY id LIMIT ?",
        (queue, cursor.partition(":")[2], now_ms, limit),
    ).fetchall()


def depart(tx: Transaction, name: str, ids: Sequence[str], signals: Mapping[str, int]) -> list[str]:
    queue = tx.existing_queue(name)
    keys = {job_id: find_key(tx.db, queue, job_id) for job_id in ids}
    here = {job_id: key for job_id, key in keys.items() if key is not None}
    staying = packing.signalled_since(tx.db, here, signals) | {
        key
        for (key,) in tx.db.execute(
            f"SELECT key FROM job WHERE key IN (SELECT value FROM json_each(?)) AND state = {ACTIVE}",
            (as_list(here.values()),),
        )
    }
    leaving = [key for key in here.values() if key not in staying]
    for key, _, own_id, tenant, dedup, state, priority, *_ in forget(tx, leaving, remember_ids=True):
        tx.tell(queue, Event(EventKind.REMOVED, own_id or str(key), tx.now_ms, tenant, prev=state_of(state, priority)))
        if dedup is not None and state not in (COMPLETED, FAILED):
            _leave_subject(tx, queue, dedup, key)
    return [job_id for job_id, key in keys.items() if key not in staying]


def _leave_subject(tx: Transaction, queue: int, dedup: str, owner: int) -> None:
    mine = (queue, dedup, owner)
    tx.db.execute("DELETE FROM dedup WHERE queue = ? AND id = ? AND owner = ? AND until_ms IS NULL", mine)
    # Late producers are still to be throttled; the kept job is on the other store.
    tx.db.execute("UPDATE dedup SET next = NULL WHERE queue = ? AND id = ? AND owner = ?", mine)
