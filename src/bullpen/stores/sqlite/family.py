"""Parents and children: who waits for whom, and what a parent knows of each child.

One row of `child` for each child that a parent ever had, as long as the parent is there. A
child's end changes its own row and asks whether another one is pending, which an index knows.
"""

import sqlite3
from collections.abc import Sequence

import msgspec

from bullpen.errors import BadOption
from bullpen.job.events import Event, EventKind
from bullpen.job.record import Failure, FailureKind, JobRef
from bullpen.job.spec import OnFailure
from bullpen.job.state import State
from bullpen.stores.base import Child, ChildPage, ChildState
from bullpen.stores.sqlite.schema import ACTIVE, COMPLETED, DELAYED, FAILED, READY, WAITING_CHILDREN
from bullpen.stores.sqlite.transaction import Row, Transaction, counter_of

PENDING, DONE, IGNORED, UNSUCCESSFUL = range(4)
_STATES = {
    PENDING: ChildState.PENDING,
    DONE: ChildState.COMPLETED,
    IGNORED: ChildState.IGNORED,
    UNSUCCESSFUL: ChildState.FAILED,
}
_encode = msgspec.json.Encoder().encode


class Parent(msgspec.Struct, frozen=True):
    """What moving a parent needs to know of it."""

    key: int
    queue: int
    own_id: str | None
    state: int
    priority: int
    tenant: str | None
    delay_ms: int | None
    group: str | None

    @property
    def id(self) -> str:
        return self.own_id or str(self.key)


def _find(tx: Transaction, key: int) -> Parent | None:
    row = tx.db.execute(
        "SELECT key, queue, own_id, state, priority, tenant, delay_ms, group_name FROM job WHERE key = ?", (key,)
    ).fetchone()
    return None if row is None else Parent(*row)


def has_pending(db: sqlite3.Connection, key: int) -> bool:
    return (
        db.execute(f"SELECT 1 FROM child WHERE parent = ? AND state = {PENDING} LIMIT 1", (key,)).fetchone() is not None
    )


# ── what a child's fate means to its parent ──────────────────────────────────────────────


def child_completed(tx: Transaction, key: int, parent: int, result: bytes) -> None:
    if _leave_pending(tx, key, parent, DONE, result):
        release_if_ready(tx, parent)


def child_failed(tx: Transaction, key: int, parent: int, reason: str) -> None:
    """As the child's policy says; without one the parent waits on, for the child may be retried."""
    row = tx.db.execute(
        f"SELECT policy, queue, id FROM child WHERE parent = ? AND child = ? AND state = {PENDING}", (parent, key)
    ).fetchone()
    if row is None:
        return
    policy, queue, job_id = row
    match policy:
        case OnFailure.FAIL_PARENT:
            _leave_pending(tx, key, parent, UNSUCCESSFUL, None)
            _doom(tx, parent, key, JobRef(tx.queue_name(queue), job_id))
        case OnFailure.CONTINUE_PARENT:
            _leave_pending(tx, key, parent, IGNORED, reason.encode(errors="backslashreplace"))
            _release(tx, parent)
        case OnFailure.IGNORE:
            _leave_pending(tx, key, parent, IGNORED, reason.encode(errors="backslashreplace"))
            release_if_ready(tx, parent)
        case OnFailure.REMOVE:
            child_gone(tx, key, parent)


def child_gone(tx: Transaction, key: int, parent: int, *, not_in: int | None = None) -> None:
    """Nobody waits for it any more; a parent in the queue `not_in` is left alone."""
    gone = tx.db.execute(
        f"DELETE FROM child WHERE parent = ? AND child = ? AND state = {PENDING} RETURNING 1", (parent, key)
    ).fetchall()
    if gone:
        release_if_ready(tx, parent, not_in=not_in)


def child_back(tx: Transaction, key: int, parent: int) -> None:
    """It is to run again, so its parent, if that is there, has it pending again."""
    tx.db.execute(
        f"UPDATE child SET state = {PENDING}, value = NULL WHERE parent = ? AND child = ?",
        (parent, key),
    )


def _leave_pending(tx: Transaction, key: int, parent: int, state: int, value: bytes | None) -> bool:
    changed = tx.db.execute(
        f"UPDATE child SET state = ?, value = ? WHERE parent = ? AND child = ? AND state = {PENDING} RETURNING 1",
        (state, value, parent, key),
    ).fetchall()
    return bool(changed)


# ── moving parents ───────────────────────────────────────────────────────────────────────


def release_if_ready(tx: Transaction, key: int, *, not_in: int | None = None) -> None:
    if not has_pending(tx.db, key):
        _release(tx, key, not_in=not_in)


def _release(tx: Transaction, key: int, *, not_in: int | None = None) -> None:
    parent = _find(tx, key)
    if parent is not None and parent.state == WAITING_CHILDREN and parent.queue != not_in:
        _let_run(tx, parent, parent.delay_ms or 0)


def _doom(tx: Transaction, key: int, child: int, ref: JobRef) -> None:
    """It fails as soon as somebody claims it, and until then it need wait for nothing."""
    parent = _find(tx, key)
    if parent is None or parent.state in (COMPLETED, FAILED):
        return
    # A reason is read by all who see the parent: of another tenant's child it does not say which.
    (tenant,) = tx.db.execute("SELECT tenant FROM job WHERE key = ?", (child,)).fetchone()
    message = f"child {ref} failed" if tenant == parent.tenant else "child failed"
    doomed = Failure(message, FailureKind.CHILD_FAILED)
    tx.db.execute("UPDATE job SET doomed = ? WHERE key = ?", (_encode(doomed), key))
    if parent.state in (WAITING_CHILDREN, DELAYED):
        _let_run(tx, parent, 0)


def _let_run(tx: Transaction, parent: Parent, delay_ms: int) -> None:
    """At the head of its line, by its priority, or after its delay."""
    place = tx.take_numbers(1)
    due_ms = tx.now_ms + delay_ms if delay_ms else None
    state = DELAYED if delay_ms else READY
    tx.db.execute(
        "UPDATE job SET state = ?, position = ?, entered_ms = ?, due_ms = ?, delay_ms = NULL, note = NULL"
        " WHERE key = ?",
        (state, place if delay_ms or parent.priority else -place, tx.now_ms, due_ms, parent.key),
    )
    tx.count(parent.queue, counter_of(parent.state, parent.priority), -1)
    tx.count(parent.queue, counter_of(state, parent.priority), 1)
    tx.count_grouped(parent.queue, parent.group, state, 1)
    prev = State.WAITING_CHILDREN if parent.state == WAITING_CHILDREN else State.DELAYED
    kind = EventKind.DELAYED if delay_ms else EventKind.WAITING
    tx.tell(parent.queue, Event(kind, parent.id, tx.now_ms, parent.tenant, prev=prev, run_at_ms=due_ms))
    tx.now_runnable(parent.queue)


# ── making families ──────────────────────────────────────────────────────────────────────


def adopt(tx: Transaction, queue: int, own_id: str, parent: int, parent_ref: str, policy: str | None) -> None:
    """A job that is there becomes a child as it stands; one that has a parent stays what it is."""
    row = tx.db.execute(
        "SELECT key, state, result, parent FROM job WHERE queue = ? AND own_id = ?", (queue, own_id)
    ).fetchone()
    if row is None:
        return
    key, state, result, known = row
    if tx.db.execute("SELECT 1 FROM child WHERE parent = ? AND child = ?", (known, key)).fetchone() is not None:
        return
    forget_outcome(tx, parent, queue, own_id)
    tx.db.execute("UPDATE job SET parent = ?, parent_ref = ? WHERE key = ?", (parent, parent_ref, key))
    is_done = state == COMPLETED
    tx.db.execute(
        "INSERT INTO child(parent, child, queue, id, state, policy, value) VALUES(?, ?, ?, ?, ?, ?, ?)",
        (parent, key, queue, own_id, DONE if is_done else PENDING, policy, (result or b"null") if is_done else None),
    )


def forget_outcome(tx: Transaction, parent: int, queue: int, own_id: str) -> None:
    """What a parent knows of a child that is gone, and whose id another one has by now, is no longer so."""
    tx.db.execute("DELETE FROM child WHERE parent = ? AND queue = ? AND id = ?", (parent, queue, own_id))


def ancestors(tx: Transaction, key: int) -> set[int]:
    """The job itself and all above it."""
    rows = tx.db.execute(
        "WITH RECURSIVE line(key) AS (VALUES(?) UNION SELECT job.parent FROM line JOIN job ON job.key = line.key"
        " JOIN child ON child.parent = job.parent AND child.child = job.key) SELECT key FROM line",
        (key,),
    ).fetchall()
    return {found for (found,) in rows}


def descendants(tx: Transaction, key: int) -> list[Row]:
    """The job and all below it that are there, as (key, state): each parent before its children."""
    return tx.db.execute(
        "WITH RECURSIVE family(key, level) AS (VALUES(?, 0) UNION SELECT child.child, level + 1 FROM family"
        " JOIN child ON child.parent = family.key JOIN job ON job.key = child.child AND job.parent = family.key)"
        " SELECT family.key, job.state FROM family JOIN job ON job.key = family.key ORDER BY level",
        (key,),
    ).fetchall()


def forget_children_of(tx: Transaction, listed: str) -> None:
    tx.db.execute("DELETE FROM child WHERE parent IN (SELECT value FROM json_each(?))", (listed,))


def any_active(family: Sequence[Row]) -> bool:
    return any(state == ACTIVE for _, state in family)


# ── looking ──────────────────────────────────────────────────────────────────────────────


def children(db: sqlite3.Connection, key: int, limit: int, cursor: str | None) -> ChildPage:
    """In the order in which they were added."""
    after = cursor or "0"
    if not (after.isascii() and after.isdecimal() and len(after) < 19):
        raise BadOption(f"cursor: {cursor!r} is not one that a page gave")
    rows = db.execute(
        "SELECT child.child, queue.name, child.id, child.state, child.value FROM child"
        " JOIN queue ON queue.id = child.queue WHERE parent = ? AND child > ? ORDER BY child LIMIT ?",
        (key, int(after), limit + 1),
    ).fetchall()
    found = tuple(_child(JobRef(queue, job_id), state, value) for _, queue, job_id, state, value in rows[:limit])
    return ChildPage(found, str(rows[limit - 1][0]) if len(rows) > limit else None)


def _child(ref: JobRef, state: int, value: bytes | None) -> Child:
    if state == DONE:
        return Child(ref, ChildState.COMPLETED, result=value)
    return Child(ref, _STATES[state], reason=value.decode() if state == IGNORED and value is not None else None)
