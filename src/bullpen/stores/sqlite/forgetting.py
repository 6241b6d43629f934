"""Removing jobs: retention by count and age, and all other ways in which a record goes."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from bullpen.job.names import TICK
from bullpen.job.spec import KEEP_ALL, KEEP_COMPLETED, Keep
from bullpen.stores.base import ID_MEMORY_MS
from bullpen.stores.sqlite.family import child_gone, forget_children_of
from bullpen.stores.sqlite.schema import COMPLETED
from bullpen.stores.sqlite.transaction import Row, Transaction, as_list, counter_of

_AT_ONCE = 1_000
"""Retention removes at most that many in one commit, so that no commit takes long."""

# Most jobs of a queue have the same retention, so each distinct one is read once.
_decode_keep = lru_cache(maxsize=1024)(msgspec.json.Decoder(tuple[Keep, Keep]).decode)


def keep_of(stored: bytes | None, state: int) -> Keep:
    completed, failed = (KEEP_COMPLETED, KEEP_ALL) if stored is None else _decode_keep(stored)
    return completed if state == COMPLETED else failed


def retain(tx: Transaction, queue: int, state: int, finished: Sequence[tuple[int, Keep]]) -> None:
    """Apply the retention of jobs that just finished, in their order, to what their queue keeps."""
    if at_once := [key for key, keep in finished if keep.count == 0]:
        forget(tx, at_once, remember_ids=True)
    previous: Keep | None = None
    for _, keep in finished:
        if keep.count != 0 and keep != previous:
            _apply(tx, queue, state, keep)
            previous = keep


def _apply(tx: Transaction, queue: int, state: int, keep: Keep) -> None:
    if keep.age_ms is not None:
        _forget_oldest(tx, queue, state, before_ms=tx.now_ms - keep.age_ms, limit=_AT_ONCE)
    if keep.count is not None:
        (kept,) = tx.counters(queue, counter_of(state, 0))
        if kept > keep.count:
            _forget_oldest(tx, queue, state, before_ms=None, limit=min(kept - keep.count, _AT_ONCE))


def _forget_oldest(tx: Transaction, queue: int, state: int, *, before_ms: int | None, limit: int) -> None:
    rows = tx.db.execute(
        f"SELECT key FROM job WHERE queue = ? AND state = {state:d}"
        " AND finished_ms <= ? ORDER BY finished_ms, key LIMIT ?",
        (queue, tx.now_ms if before_ms is None else before_ms, limit),
    ).fetchall()
    if rows:
        forget(tx, [key for (key,) in rows], remember_ids=True)


def forget(tx: Transaction, keys: Iterable[int], *, remember_ids: bool, with_queue: int | None = None) -> list[Row]:
    """Remove these jobs with all that belongs to them; explicit ids stay known for a day if asked.

    Parents no longer wait for them; those in `with_queue`, which goes as a whole, are left alone.
    Returns key, queue, own id, tenant, dedup and state of each.
    """
    listed = as_list(keys)
    gone = tx.db.execute(
        "DELETE FROM job WHERE key IN (SELECT value FROM json_each(?))"
        " RETURNING key, queue, own_id, tenant, dedup, state, priority, added_ms, parent, has_children, has_steps,"
        " group_name",
        (listed,),
    ).fetchall()
    tables = [("body", "key"), ("log", "job")]
    if any(row[10] for row in gone):
        tables += [("journal", "job"), ("mailbox", "job")]
    for table, column in tables:
        tx.db.execute(f"DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))", (listed,))
    if any(row[9] for row in gone):
        forget_children_of(tx, listed)
    memories: list[Row] = []
    for _, queue, own_id, _, _, state, priority, added_ms, *_, group in gone:
        tx.count(queue, counter_of(state, priority), -1)
        tx.count_grouped(queue, group, state, -1)
        if remember_ids and _is_chosen(own_id) and added_ms + ID_MEMORY_MS > tx.now_ms:
            memories.append((queue, own_id, added_ms + ID_MEMORY_MS))
    if memories:
        tx.execute_rows("INSERT OR REPLACE INTO id_memory(queue, id, until_ms) VALUES", "", memories)
    for row in gone:
        if row[8] is not None:
            child_gone(tx, row[0], row[8], not_in=with_queue)
    return gone


def _is_chosen(own_id: str | None) -> bool:
    """Whether a producer chose it; the ids of ticks are those of schedules, which add each once by themselves."""
    return own_id is not None and not own_id.startswith(TICK)
