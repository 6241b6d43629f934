"""What durable steps left of jobs, packed for another store, and unpacked where they arrive."""

import sqlite3
from collections.abc import Mapping, Sequence

import msgspec

from bullpen.job.entries import EntryState, JournalEntry
from bullpen.stores.entries import decode_entry, encode_head
from bullpen.stores.moving import PAGE_STEPS_BYTES, SavedJob, Signal
from bullpen.stores.sqlite import mailbox
from bullpen.stores.sqlite.journaling import deliver
from bullpen.stores.sqlite.transaction import Row, Transaction, as_list, find_key

_OF_THESE = "WHERE job IN (SELECT value FROM json_each(?))"


# ── out ──────────────────────────────────────────────────────────────────────────────────


def how_many_fit(db: sqlite3.Connection, keys: Sequence[int]) -> int:
    """How many of these jobs, from the first one on, are a page."""
    sql = f"SELECT job, sum(length(head) + ifnull(length(value), 0)) FROM journal {_OF_THESE} GROUP BY job"
    sizes: dict[int, int] = dict(db.execute(sql, (as_list(keys),)).fetchall())
    size = 0
    for n, key in enumerate(keys, 1):
        size += sizes.get(key, 0)
        if size > PAGE_STEPS_BYTES:
            return n
    return len(keys)


def with_steps(db: sqlite3.Connection, jobs: Mapping[int, SavedJob]) -> list[SavedJob]:
    """These jobs, by key, with their journals and mailboxes."""
    listed = as_list(jobs)
    journals: dict[int, list[JournalEntry]] = {}
    for key, head, value in db.execute(
        f"SELECT job, head, value FROM journal {_OF_THESE} ORDER BY job, place", (listed,)
    ):
        journals.setdefault(key, []).append(decode_entry(head, value))
    signals: dict[int, list[Signal]] = {}
    for key, name, payload in db.execute(
        f"SELECT job, name, payload FROM mailbox {_OF_THESE} ORDER BY number", (listed,)
    ):
        signals.setdefault(key, []).append(Signal(name, bytes(payload)))
    return [
        msgspec.structs.replace(job, journal=tuple(journals.get(key, ())), signals=tuple(signals.get(key, ())))
        for key, job in jobs.items()
    ]


def signalled_since(db: sqlite3.Connection, keys: Mapping[str, int], known: Mapping[str, int]) -> set[int]:
    """Which of these jobs, by id, have more signals than are known."""
    sql = f"SELECT job, count(*) FROM mailbox {_OF_THESE} GROUP BY job"
    found: dict[int, int] = dict(db.execute(sql, (as_list(keys.values()),)).fetchall())
    return {key for job_id, key in keys.items() if found.get(key, 0) > known.get(job_id, 0)}


# ── in ───────────────────────────────────────────────────────────────────────────────────


def unpack(tx: Transaction, jobs: Sequence[SavedJob], keys: Mapping[str, int]) -> None:
    """Give jobs that have just come, with these keys by id, their steps and signals."""
    entries: list[Row] = []
    for job in jobs:
        key = keys[job.id]
        for entry in job.journal:
            is_done = entry.state == EntryState.DONE
            entries.append((key, entry.place, is_done, encode_head(entry), entry.value))
        for signal in job.signals:
            mailbox.put(tx, key, signal.name, signal.payload)
    if entries:
        tx.execute_rows("INSERT INTO journal(job, place, is_done, head, value) VALUES", "", entries)


def forward_signals(tx: Transaction, queue: int, job: SavedJob) -> None:
    """Those that came to an arrived job's mailbox on the other store after it was copied, each once."""
    mine = (queue, job.id)
    (known,) = tx.db.execute("SELECT signals FROM arrival WHERE queue = ? AND id = ?", mine).fetchone()
    late = job.signals[known:]
    if not late:
        return
    tx.db.execute("UPDATE arrival SET signals = ? WHERE queue = ? AND id = ?", (len(job.signals), *mine))
    key = find_key(tx.db, queue, job.id)
    if key is None:
        return  # it has run here and was forgotten
    for signal in late:
        deliver(tx, key, signal.name, signal.payload)
