"""Durable steps: each job's journal, and the mailbox of signals that it has not asked for yet."""

import sqlite3
from collections.abc import Sequence

import msgspec

from bullpen.errors import JobMissing, LeaseLost, MailboxFull, WrongState
from bullpen.job.entries import EntryState, JournalEntry, JournalPage
from bullpen.job.record import JobRef
from bullpen.job.state import State
from bullpen.stores.base import MAX_SIGNALS, Delivery
from bullpen.stores.entries import decode_entry, encode_head
from bullpen.stores.sqlite import mailbox
from bullpen.stores.sqlite.claiming import make_runnable
from bullpen.stores.sqlite.looking import find_job
from bullpen.stores.sqlite.rows import decode_names, state_of
from bullpen.stores.sqlite.schema import ACTIVE, COMPLETED, DELAYED, FAILED
from bullpen.stores.sqlite.transaction import Row, Transaction

_SELECT = "SELECT key, state, priority, epoch, queue, own_id, tenant, parked, group_name FROM job WHERE key = ?"
_WRITE = "INSERT OR REPLACE INTO journal(job, place, is_done, head, value) VALUES(?, ?, ?, ?, ?)"


def append(tx: Transaction, ref: JobRef, entries: Sequence[JournalEntry], epoch: int) -> list[JournalEntry]:
    key = _running(tx, ref, epoch)
    return [_append_one(tx, key, entry) for entry in entries]


def receive(tx: Transaction, ref: JobRef, entry: JournalEntry, epoch: int) -> JournalEntry | None:
    key = _running(tx, ref, epoch)
    if (standing := _done_at(tx, key, entry.place)) is not None:
        return standing
    payload = mailbox.take(tx, key, entry.name)
    return None if payload is None else _append_one(tx, key, msgspec.structs.replace(entry, value=payload))


def read(db: sqlite3.Connection, ref: JobRef, start: int, limit: int) -> JournalPage:
    key = find_job(db, ref)
    rows = db.execute(
        "SELECT head, value FROM journal WHERE job = ? AND place >= ? AND place < ? ORDER BY place",
        (key, start, start + limit),
    ).fetchall()
    (last,) = db.execute("SELECT max(place) FROM journal WHERE job = ?", (key,)).fetchone()
    more = last is not None and last >= start + limit
    return JournalPage(tuple(decode_entry(*row) for row in rows), start + limit if more else None)


def fork(tx: Transaction, ref: JobRef, at: int, to: JobRef) -> int:
    source, (target, state, *_) = _row(tx, ref)[0], _row(tx, to)
    if (
        state in (ACTIVE, COMPLETED, FAILED)
        or tx.db.execute("SELECT 1 FROM journal WHERE job = ?", (target,)).fetchone()
    ):
        raise WrongState(f"job {to.id!r} of queue {to.queue!r} runs, has ended, or has a journal of its own")
    _mark(tx, target)
    copied = tx.db.execute(
        "INSERT INTO journal(job, place, is_done, head, value)"
        " SELECT ?, place, is_done, head, value FROM journal WHERE job = ? AND place < ?",
        (target, source, at),
    )
    return copied.rowcount


def forget(tx: Transaction, ref: JobRef) -> None:
    key, state, *_ = _row(tx, ref)
    if state == ACTIVE:
        raise WrongState(f"job {ref.id!r} of queue {ref.queue!r} is active, and writes its journal")
    for table in ("journal", "mailbox"):
        tx.db.execute(f"DELETE FROM {table} WHERE job = ?", (key,))


def signal(tx: Transaction, ref: JobRef, name: str, payload: bytes) -> Delivery:
    row = _row(tx, ref)
    key, state, priority, *_ = row
    if state in (COMPLETED, FAILED):
        raise WrongState(
            f"job {ref.id!r} of queue {ref.queue!r} is {state_of(state, priority)}, not in a state to be signalled"
        )
    waiting = mailbox.count(tx, key)
    if waiting >= MAX_SIGNALS:
        raise MailboxFull(f"{waiting} signals wait for job {ref.id!r} of queue {ref.queue!r}; it does not take them")
    return _deliver(tx, row, name, payload)


def deliver(tx: Transaction, key: int, name: str, payload: bytes) -> Delivery:
    """Put a signal into the mailbox of a job that is here, whatever its state, and wake the job if it waits for it."""
    return _deliver(tx, tuple(tx.db.execute(_SELECT, (key,)).fetchone()), name, payload)


def _deliver(tx: Transaction, row: Row, name: str, payload: bytes) -> Delivery:
    key, state, priority, _, queue, own_id, tenant, parked, group = row
    _mark(tx, key)
    mailbox.put(tx, key, name, payload)
    if state != DELAYED or parked is None or name not in decode_names(parked):
        return Delivery.KEPT
    make_runnable(tx, queue, [(key, own_id, tenant, priority, group)], prev=State.DELAYED)
    return Delivery.WOKEN


# ── shared ───────────────────────────────────────────────────────────────────────────────


def _row(tx: Transaction, ref: JobRef) -> Row:
    row = tx.db.execute(_SELECT, (tx.key(ref),)).fetchone()
    if row is None:
        raise JobMissing(f"no job {ref.id!r} in queue {ref.queue!r}")
    return tuple(row)


def _running(tx: Transaction, ref: JobRef, epoch: int) -> int:
    """The key of a job that is active in this very activation."""
    try:
        key, state, _, current, *_ = _row(tx, ref)
    except JobMissing as missing:
        raise LeaseLost(f"job {ref.id!r} of queue {ref.queue!r} is gone") from missing
    if state != ACTIVE or current != epoch:
        raise LeaseLost(f"job {ref.id!r} of queue {ref.queue!r} is no longer in its activation {epoch}")
    return int(key)


def _append_one(tx: Transaction, key: int, entry: JournalEntry) -> JournalEntry:
    standing = _done_at(tx, key, entry.place)
    if standing is not None:
        return standing
    _mark(tx, key)
    is_done = entry.state == EntryState.DONE
    tx.db.execute(_WRITE, (key, entry.place, is_done, encode_head(entry), entry.value))
    return entry


def _done_at(tx: Transaction, key: int, place: int) -> JournalEntry | None:
    row = tx.db.execute(
        "SELECT head, value FROM journal WHERE job = ? AND place = ? AND is_done", (key, place)
    ).fetchone()
    return None if row is None else decode_entry(*row)


def _mark(tx: Transaction, key: int) -> None:
    tx.db.execute("UPDATE job SET has_steps = 1 WHERE key = ? AND NOT has_steps", (key,))
