"""Moving in: jobs of another store, under their own ids and as they were there.

A restored job has a fresh key, which is the file's own, and its old id beside it, also where
that is a number: on other stores each queue counts for itself, so numbers meet.
"""

from collections.abc import Sequence

import msgspec

from bullpen.errors import MoveRefused, WrongState
from bullpen.job.events import Event, EventKind
from bullpen.job.names import is_generated_id
from bullpen.job.record import JobRecord
from bullpen.job.state import FINISHED, State
from bullpen.stores.base import FOREVER_MS
from bullpen.stores.moving import ID_MARGIN, Cargo, Move, RememberedId, SavedJob, Subject
from bullpen.stores.sqlite import packing
from bullpen.stores.sqlite.adding import keep_if_special
from bullpen.stores.sqlite.rows import STATE_NUMBER, encode
from bullpen.stores.sqlite.schema import COMPLETED, FAILED, make_moving_tables, moving_tables
from bullpen.stores.sqlite.settling import brief
from bullpen.stores.sqlite.steering import pause, resume
from bullpen.stores.sqlite.transaction import Row, Transaction, counter_of, find_key

_INSERT_JOB = (
    "INSERT INTO job(key, queue, own_id, state, priority, position, added_ms, entered_ms, due_ms, start_by_ms,"
    " started_ms, finished_ms, worker, epoch, attempts_made, crashes, tenant, group_name, dedup, keep, cancelling,"
    " note, progress, result, failure, stacks, parked, has_steps) VALUES"
)
_JOBS = ("waiting", "prioritized", "delayed", "active", "waiting_children", "completed", "failed")
_NOBODY = 0
"""The key of no job."""


def begin_move(tx: Transaction, name: str, move: Move) -> None:
    make_moving_tables(tx.db)
    queue = tx.queue(name)
    known = tx.db.execute("SELECT origin, ids_below FROM move WHERE queue = ?", (queue,)).fetchone()
    # An origin whose ids are out of reach has itself been moved to since: that is another move.
    if known is not None and known[0] == move.origin and move.last_id < known[1]:
        tx.db.execute("UPDATE move SET run = ? WHERE queue = ?", (move.run, queue))
        return
    if any(tx.counters(queue, *_JOBS)):
        raise MoveRefused(
            f"queue {name!r} on the target has jobs that are not from this move: move to another file or prefix,"
            " or empty it first"
        )
    ids_below = tx.skip_numbers(move.last_id + ID_MARGIN + 1)
    tx.db.execute("DELETE FROM arrival WHERE queue = ?", (queue,))
    tx.db.execute(
        "INSERT OR REPLACE INTO move(queue, origin, run, ids_below) VALUES(?, ?, ?, ?)",
        (queue, move.origin, move.run, ids_below),
    )
    (pause if move.paused else resume)(tx, name)


def restore(tx: Transaction, name: str, cargo: Cargo, run: str) -> int:
    queue, ids_below = _move(tx, name, run)
    new, arrived = _select(tx, queue, name, cargo, ids_below)
    for job in arrived:
        packing.forward_signals(tx, queue, job)
    _forget_arrivals(tx, queue, cargo.departed)
    keys = _insert(tx, queue, new)
    if new:
        packing.unpack(tx, new, keys)
        arrivals: list[Row] = [(queue, job.id, len(job.signals)) for job in new]
        tx.execute_rows("INSERT INTO arrival(queue, id, signals) VALUES", "", arrivals)
    for job in new:
        if job.subject is not None:
            _stand(tx, queue, name, job.subject, keys[job.id])
    for subject in cargo.subjects:
        _stand(tx, queue, name, subject, find_key(tx.db, queue, subject.owner_id) or _NOBODY)
    _remember(tx, queue, cargo.ids)
    return len(new)


def _move(tx: Transaction, name: str, run: str) -> tuple[int, int]:
    """The queue's number and the first id that is not the source's."""
    queue = tx.queue_number_if_known(name)
    found = None
    if moving_tables(tx.db):
        found = tx.db.execute("SELECT run, ids_below FROM move WHERE queue = ?", (queue,)).fetchone()
    if found is None or found[0] != run:
        raise MoveRefused(f"queue {name!r}: another mover has taken over, or the queue was removed; begin again")
    return queue, int(found[1])


def _select(
    tx: Transaction, queue: int, name: str, cargo: Cargo, ids_below: int
) -> tuple[list[SavedJob], list[SavedJob]]:
    """Those that are not here yet, and those that came before and are signalled. Refuses before anything is written."""
    departed = frozenset(cargo.departed)
    new: list[SavedJob] = []
    arrived: list[SavedJob] = []
    for job in cargo.jobs:
        if job.record.state in (State.ACTIVE, State.WAITING_CHILDREN):
            raise WrongState(f"job {job.id!r} is {job.record.state}: such jobs cannot be restored")
        if job.id not in departed and _has_arrived(tx, queue, job.id):
            if job.signals:
                arrived.append(job)
            continue
        is_here = find_key(tx.db, queue, job.id) is not None
        if not is_generated_id(job.id):
            if not is_here and not _is_remembered(tx, queue, job.id):
                new.append(job)
        elif is_here or int(job.id) >= ids_below:
            raise MoveRefused(f"job {job.id!r} of queue {name!r}: the target gave this id to another job; begin again")
        else:
            new.append(job)
    return new, arrived


def _has_arrived(tx: Transaction, queue: int, job_id: str) -> bool:
    return bool(tx.db.execute("SELECT 1 FROM arrival WHERE queue = ? AND id = ?", (queue, job_id)).fetchone())


def _is_remembered(tx: Transaction, queue: int, job_id: str) -> bool:
    sql = "SELECT 1 FROM id_memory WHERE queue = ? AND id = ? AND until_ms > ?"
    return bool(tx.db.execute(sql, (queue, job_id, tx.now_ms)).fetchone())


def _forget_arrivals(tx: Transaction, queue: int, ids: Sequence[str]) -> None:
    if ids:
        listed = msgspec.json.encode(ids).decode()
        tx.db.execute("DELETE FROM arrival WHERE queue = ? AND id IN (SELECT value FROM json_each(?))", (queue, listed))


# ── jobs ─────────────────────────────────────────────────────────────────────────────────


def _insert(tx: Transaction, queue: int, jobs: Sequence[SavedJob]) -> dict[str, int]:
    """Write them all, in this order; their keys by id."""
    first = tx.take_numbers(len(jobs))
    rows: list[Row] = []
    bodies: list[Row] = []
    logs: list[Row] = []
    for key, job in enumerate(jobs, first):
        record = _ended_if_doomed(job.record, tx.now_ms)
        rows.append(_row(key, queue, job, record))
        bodies.append((key, record.name, record.data, encode(record.spec)))
        logs += [(key, n, line) for n, line in enumerate(job.logs, 1)]
        tx.count(queue, counter_of(STATE_NUMBER[record.state], record.priority), 1)
        tx.count_grouped(queue, record.spec.group, STATE_NUMBER[record.state], 1)
        _tell(tx, queue, record)
    if rows:
        tx.execute_rows(_INSERT_JOB, "", rows)
        tx.execute_rows("INSERT INTO body(key, name, data, spec) VALUES", "", bodies)
        tx.now_runnable(queue)
    if logs:
        tx.execute_rows("INSERT INTO log(job, line, text) VALUES", "", logs)
    return {job.id: key for key, job in enumerate(jobs, first)}


def _ended_if_doomed(record: JobRecord, now_ms: int) -> JobRecord:
    """A job that is to fail without being run fails here: the file has no word for it."""
    if record.doomed is None or record.state in FINISHED:
        return record
    return msgspec.structs.replace(
        record, state=State.FAILED, failure=record.doomed, finished_ms=now_ms, run_at_ms=None, note=None
    )


def _row(key: int, queue: int, job: SavedJob, record: JobRecord) -> Row:
    is_finished, is_delayed = record.state in FINISHED, record.state == State.DELAYED
    # Only who waits for a signal alone is delayed and has no time.
    due_ms = FOREVER_MS if record.run_at_ms is None else record.run_at_ms
    return (
        key,
        queue,
        record.id,
        STATE_NUMBER[record.state],
        record.priority,
        key,
        record.added_ms,
        job.entered_ms,
        due_ms if is_delayed else None,
        None if is_finished else job.start_by_ms,
        record.started_ms,
        record.finished_ms if is_finished else None,
        record.worker,
        record.epoch,
        record.attempts_made,
        encode(record.crashes) if record.crashes else None,
        record.tenant,
        record.spec.group,
        record.spec.dedup.id if record.spec.dedup else None,
        keep_if_special(record.spec),
        record.cancelling,
        record.note,
        record.progress,
        record.result,
        None if record.failure is None else encode(brief(record.failure)),
        encode(record.stacks) if record.stacks else None,
        encode(record.parked) if is_delayed and record.parked is not None else None,
        bool(job.journal or job.signals),
    )


def _tell(tx: Transaction, queue: int, record: JobRecord) -> None:
    """Unfinished jobs are new to whoever follows the queue; of the others all was told where they ended."""
    if record.state in FINISHED:
        return
    tx.tell(queue, Event(EventKind.ADDED, record.id, tx.now_ms, record.tenant, name=record.name))
    if record.state == State.DELAYED:
        tx.tell(queue, Event(EventKind.DELAYED, record.id, tx.now_ms, record.tenant, run_at_ms=record.run_at_ms))
    else:
        tx.tell(queue, Event(EventKind.WAITING, record.id, tx.now_ms, record.tenant))


# ── memories ─────────────────────────────────────────────────────────────────────────────


def _stand(tx: Transaction, queue: int, name: str, subject: Subject, owner: int) -> None:
    """Let the owner stand for its subject, unless another does already."""
    row = tx.db.execute(
        "SELECT owner_id, until_ms, next, job.state FROM dedup LEFT JOIN job ON job.key = dedup.owner"
        " WHERE dedup.queue = ? AND dedup.id = ?",
        (queue, subject.id),
    ).fetchone()
    kept = None if subject.kept is None else encode(msgspec.structs.replace(subject.kept, queue=name))
    until_ms = subject.until_ms
    if row is not None:
        owner_id, known_until_ms, known_kept, state = row
        lapsed = state in (None, COMPLETED, FAILED) if known_until_ms is None else known_until_ms <= tx.now_ms
        if not lapsed and owner_id != subject.owner_id:
            return
        if owner_id == subject.owner_id:
            # Told a second time: before its job came, or after a late producer made it last longer.
            kept = known_kept if kept is None else kept
            until_ms = None if until_ms is None else max(until_ms, known_until_ms or 0)
    tx.db.execute(
        "INSERT OR REPLACE INTO dedup(queue, id, owner, owner_id, until_ms, next) VALUES(?, ?, ?, ?, ?, ?)",
        (queue, subject.id, owner, subject.owner_id, until_ms, kept),
    )


def _remember(tx: Transaction, queue: int, ids: Sequence[RememberedId]) -> None:
    """An id whose job is here needs no memory: removing the job is to free it."""
    rows: list[Row] = [
        (queue, one.id, one.until_ms)
        for one in ids
        if one.until_ms > tx.now_ms and find_key(tx.db, queue, one.id) is None
    ]
    if rows:
        tx.execute_rows("INSERT OR REPLACE INTO id_memory(queue, id, until_ms) VALUES", "", rows)
