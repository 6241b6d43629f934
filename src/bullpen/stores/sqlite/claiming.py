"""Claiming: due jobs first become runnable, then the first in line become active."""

from collections.abc import Mapping, Sequence

import msgspec

from bullpen.job.events import Event, EventKind
from bullpen.job.record import ClaimedJob, Lease
from bullpen.job.state import State
from bullpen.stores.base import Claimed
from bullpen.stores.sqlite.group_claims import take_turns
from bullpen.stores.sqlite.grouping import next_wake_ms, stand_touched
from bullpen.stores.sqlite.limiting import Limits, count_starts, read_limits
from bullpen.stores.sqlite.rows import SELECT_TO_CLAIM, records_of_claimed, run_at_ms
from bullpen.stores.sqlite.schema import ACTIVE, DELAYED, READY
from bullpen.stores.sqlite.settling import expire
from bullpen.stores.sqlite.tokens import ClaimToken, lease_token
from bullpen.stores.sqlite.transaction import Row, Transaction, as_list, counter_of

NEXT_IN_LINE = (
    f"{SELECT_TO_CLAIM} WHERE job.queue = :queue AND job.state = {READY} AND job.group_name IS NULL"
    " ORDER BY job.priority, job.position LIMIT :slots"
)
_PROMOTE_AT_ONCE = 1_000
"""A wave of due jobs is taken in portions, so that no claim waits for all of it."""
_EXPIRED_AT_ONCE = 1_000
_UNLIMITED = Limits()
# Looked up once, not for each job: see completing.py.
_TOLD, _PREV = EventKind.ACTIVE, State.WAITING


class Claimant(msgspec.Struct, frozen=True):
    worker: str
    lease_ms: int
    token: ClaimToken
    group: str | None = None
    """The only one that it takes jobs of; None: whoever's turn it is."""


def claim(tx: Transaction, wants: Mapping[str, int], claimant: Claimant, at_most: int | None = None) -> Claimed:
    taken: list[ClaimedJob] = []
    next_due: list[int] = []
    for name, slots in wants.items():
        queue = tx.queue_number_if_known(name)
        if not queue:
            continue
        if tx.counters(queue, "delayed") != [0]:
            promote_due(tx, queue)
            next_due += _known(_next_due_ms(tx, queue))
        slots_left = slots if at_most is None else min(slots, at_most - len(taken))
        jobs, look_again_ms = _take_within_limits(tx, queue, name, slots_left, claimant)
        taken += jobs
        next_due += _known(look_again_ms)
    return Claimed(tuple(taken), min(next_due, default=None))


def _known(time_ms: int | None) -> list[int]:
    return [] if time_ms is None else [time_ms]


def _take_within_limits(
    tx: Transaction, queue: int, name: str, slots: int, claimant: Claimant
) -> tuple[list[ClaimedJob], int | None]:
    """What the queue may give now, and when to look again if a limit held something back."""
    paused, active, limited = tx.counters(queue, "paused", "active", "limited")
    if paused or slots <= 0:
        return [], None
    limits = read_limits(tx.db, queue) if limited else _UNLIMITED
    if limits.is_full(active):
        return [], None
    if (closed_until_ms := limits.closed_until(tx.now_ms)) is not None:
        return [], closed_until_ms
    room = limits.room(slots, active, tx.now_ms)
    taken = _take(tx, queue, name, room, claimant) if claimant.group is None else []
    look_again_ms = None
    # Looked up only now: what expired may have put its parent into a group.
    if len(taken) < room and tx.counters(queue, "grouped") != [0]:
        turns = take_turns(tx, queue, room - len(taken), only=claimant.group)
        taken += _activate(tx, queue, name, turns, claimant)
        stand_touched(tx)
        look_again_ms = next_wake_ms(tx, queue)
    count_starts(tx, queue, limits, len(taken))
    return taken, look_again_ms


def promote_due(tx: Transaction, queue: int) -> int:
    """Make due jobs runnable, in the order in which they were due."""
    rows = tx.db.execute(
        "SELECT key, own_id, tenant, priority, group_name FROM job"
        f" WHERE queue = ? AND state = {DELAYED} AND due_ms <= ?"
        " ORDER BY due_ms, position LIMIT ?",
        (queue, tx.now_ms, _PROMOTE_AT_ONCE),
    ).fetchall()
    if rows:
        make_runnable(tx, queue, rows, prev=State.DELAYED)
    return len(rows)


def make_runnable(tx: Transaction, queue: int, rows: list[Row], *, prev: State) -> None:
    """Move jobs (key, own id, tenant, priority, group) from `delayed` to the end of their lines."""
    place = tx.take_numbers(len(rows))
    tx.update_rows(
        f"UPDATE job SET state = {READY}, position = fresh.column2, entered_ms = fresh.column3, due_ms = NULL,"
        " note = NULL, parked = NULL FROM (VALUES",
        ") AS fresh WHERE job.key = fresh.column1",
        [(row[0], place + n, tx.now_ms) for n, row in enumerate(rows)],
    )
    for key, own_id, tenant, priority, group in rows:
        tx.count(queue, counter_of(DELAYED, 0), -1)
        tx.count(queue, counter_of(READY, priority), 1)
        tx.count_grouped(queue, group, READY, 1)
        tx.tell(queue, Event(EventKind.WAITING, own_id or str(key), tx.now_ms, tenant, prev=prev))
    tx.now_runnable(queue)


def _next_due_ms(tx: Transaction, queue: int) -> int | None:
    row = tx.db.execute(
        f"SELECT due_ms FROM job WHERE queue = ? AND state = {DELAYED} ORDER BY due_ms, position LIMIT 1",
        (queue,),
    ).fetchone()
    return None if row is None else run_at_ms(row[0])


def _take(tx: Transaction, queue: int, name: str, slots: int, claimant: Claimant) -> list[ClaimedJob]:
    taken: list[ClaimedJob] = []
    expired = 0
    while len(taken) < slots and expired < _EXPIRED_AT_ONCE:
        rows = tx.db.execute(NEXT_IN_LINE, {"queue": queue, "slots": slots - len(taken)}).fetchall()
        if not rows:
            break
        late = next((n for n, row in enumerate(rows) if row[-1] is not None and row[-1] < tx.now_ms), len(rows))
        taken += _activate(tx, queue, name, rows[:late], claimant)
        # One by one: the end of a child may put its parent before all that wait.
        if late < len(rows):
            expire(tx, rows[late][0])
            expired += 1
    return taken


def _activate(tx: Transaction, queue: int, name: str, rows: Sequence[Row], claimant: Claimant) -> list[ClaimedJob]:
    if not rows:
        return []
    now_ms, token = tx.now_ms, claimant.token.text
    tx.db.execute(
        f"UPDATE job SET state = {ACTIVE}, token = ?, worker = ?, lease_until_ms = ?, started_ms = ?,"
        " epoch = epoch + 1, note = NULL, start_by_ms = NULL WHERE key IN (SELECT value FROM json_each(?))",
        (token, claimant.worker, now_ms + claimant.lease_ms, now_ms, as_list(row[0] for row in rows)),
    )
    tx.count(queue, counter_of(ACTIVE, 0), len(rows))
    prioritized = sum(1 for row in rows if row[2])
    tx.count(queue, counter_of(READY, 1), -prioritized)
    tx.count(queue, counter_of(READY, 0), prioritized - len(rows))
    claimed = []
    for row, job in zip(rows, records_of_claimed(tx, name, rows, claimant.worker), strict=True):
        ref, spec = job.ref, job.spec
        if spec.group is not None:
            tx.count_grouped(queue, spec.group, READY, -1)
            tx.count_grouped(queue, spec.group, ACTIVE, 1)
        recorded_ms = None if job.attempts_made or job.failure is not None else now_ms
        told = Event(_TOLD, ref.id, now_ms, spec.tenant, prev=_PREV, recorded_ms=recorded_ms, priority=job.priority)
        tx.tell(queue, told)
        claimed.append(ClaimedJob(Lease(ref, lease_token(row[0], token), job.epoch), job))
    return claimed
