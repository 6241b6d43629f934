"""Who stands for a new job already: one with its id, or one for its subject."""

from bullpen.stores.sqlite.schema import ACTIVE, COMPLETED, FAILED
from bullpen.stores.sqlite.transaction import Transaction


def is_taken(tx: Transaction, queue: int, own_id: str) -> bool:
    """Whether an explicit id is a job's, or remembered."""
    found = tx.db.execute(
        "SELECT 1 FROM job WHERE queue = ?1 AND own_id = ?2"
        " UNION ALL SELECT 1 FROM id_memory WHERE queue = ?1 AND id = ?2 AND until_ms > ?3",
        (queue, own_id, tx.now_ms),
    ).fetchone()
    return found is not None


def owner_of(tx: Transaction, queue: int, dedup_id: str) -> tuple[int, str, int] | None:
    """The job that stands for this subject now: its key, id and state.

    A key whose time is over, or without one whose job is gone or has ended, stands for
    nothing: a lost release can never block a subject for ever.
    """
    row = tx.db.execute(
        # A parked job is in the middle of its work, though it stands as delayed.
        f"SELECT owner, owner_id, until_ms, iif(job.parked IS NULL, job.state, {ACTIVE})"
        " FROM dedup LEFT JOIN job ON job.key = dedup.owner WHERE dedup.queue = ? AND dedup.id = ?",
        (queue, dedup_id),
    ).fetchone()
    if row is None:
        return None
    owner, owner_id, until_ms, state = row
    lapsed = state in (None, COMPLETED, FAILED) if until_ms is None else until_ms <= tx.now_ms
    return None if lapsed else (owner, owner_id, state)
