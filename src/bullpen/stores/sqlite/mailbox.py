"""The signals that a job has not asked for yet."""

from collections.abc import Sequence

from bullpen.stores.sqlite.transaction import Transaction


def count(tx: Transaction, job: int) -> int:
    return int(tx.db.execute("SELECT count(*) FROM mailbox WHERE job = ?", (job,)).fetchone()[0])


def put(tx: Transaction, job: int, name: str, payload: bytes) -> None:
    tx.db.execute("INSERT INTO mailbox(job, name, payload) VALUES(?, ?, ?)", (job, name, payload))


def has_any(tx: Transaction, job: int, names: Sequence[str]) -> bool:
    if not names:
        return False
    waiting = tx.db.execute("SELECT DISTINCT name FROM mailbox WHERE job = ?", (job,))
    return any(name in names for (name,) in waiting)


def take(tx: Transaction, job: int, name: str) -> bytes | None:
    """The payload of the oldest one of this name, which is gone then."""
    found = tx.db.execute(
        "DELETE FROM mailbox WHERE number ="
        " (SELECT number FROM mailbox WHERE job = ? AND name = ? ORDER BY number LIMIT 1) RETURNING payload",
        (job, name),
    ).fetchone()
    return None if found is None else bytes(found[0])
