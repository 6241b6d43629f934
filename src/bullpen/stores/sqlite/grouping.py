"""Groups: who of them stands in the ring, wakes at a time, or neither.

Verbs only count (`Transaction.count_grouped`); here each group that was touched is looked at once,
before a claim and before the commit, and put where it belongs:

    has jobs ─┬─ paused, or at its cap ──▶ nowhere, until that ends
              ├─ its rate is used up, or it was closed ──▶ wakes at that time
              └─ else ──▶ in the ring
"""

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from bullpen.job.limits import NO_GROUP_LIMITS, GroupLimits
from bullpen.stores.sqlite.rows import encode
from bullpen.stores.sqlite.transaction import Transaction

_SWEEP_AT_ONCE = 1_000
_FIELDS = (
    "name, waiting, active, is_in_ring, virtual_time, wake_ms, is_shown, keep_until_ms, paused, limits,"
    " window_until_ms, window_starts, closed_until_ms"
)
SELECT_GROUP = f"SELECT {_FIELDS} FROM job_group"

decode_group_limits = lru_cache(maxsize=1024)(msgspec.json.Decoder(GroupLimits).decode)


class Group(msgspec.Struct):
    """A row, in the order of its columns."""

    name: str
    waiting: int = 0
    active: int = 0
    is_in_ring: int = 0
    virtual_time: float = 0.0
    wake_ms: int | None = None
    is_shown: int = 0
    keep_until_ms: int = 0
    """Until when it has something to remember, though it has no job."""
    paused: int = 0
    limits: bytes | None = None
    window_until_ms: int = 0
    window_starts: int = 0
    closed_until_ms: int = 0

    def limits_over(self, default: GroupLimits) -> GroupLimits:
        return default if self.limits is None else decode_group_limits(self.limits).over(default)

    def starts_left(self, limits: GroupLimits, now_ms: int) -> int | None:
        """How many may start in the present window; None is any number."""
        if limits.rate_max is None:
            return None
        return max(0, limits.rate_max - self.window_starts) if self.window_until_ms > now_ms else limits.rate_max

    def count_starts(self, limits: GroupLimits, starts: int, now_ms: int) -> None:
        if limits.rate_max is None or limits.rate_ms is None:
            return
        if self.window_until_ms <= now_ms:
            self.window_until_ms, self.window_starts = now_ms + limits.rate_ms, 0
        self.window_starts += starts

    def closed_until(self, limits: GroupLimits, now_ms: int) -> int | None:
        """When it opens again; None if it is open."""
        is_used_up = self.starts_left(limits, now_ms) == 0
        until_ms = max(self.closed_until_ms, self.window_until_ms if is_used_up else 0)
        return until_ms if until_ms > now_ms else None


class Ring(msgspec.Struct):
    """The turns of a queue's groups: the present time, the latest that any group has, and the usual limits."""

    present: float = 0.0
    latest: float = 0.0
    default: GroupLimits = NO_GROUP_LIMITS


def read_ring(tx: Transaction, queue: int) -> Ring:
    row = tx.db.execute("SELECT present, latest, limits FROM ring WHERE queue = ?", (queue,)).fetchone()
    if row is None:
        return Ring()
    present, latest, limits = row
    return Ring(present, latest, NO_GROUP_LIMITS if limits is None else decode_group_limits(limits))


def write_ring(tx: Transaction, queue: int, ring: Ring) -> None:
    limits = None if ring.default == NO_GROUP_LIMITS else encode(ring.default)
    tx.db.execute(
        "INSERT OR REPLACE INTO ring(queue, present, latest, limits) VALUES(?, ?, ?, ?)",
        (queue, ring.present, ring.latest, limits),
    )


def read_group(tx: Transaction, queue: int, name: str) -> Group:
    """As it stands within this transaction."""
    stand_touched(tx)
    return _read(tx, queue, name)


def _read(tx: Transaction, queue: int, name: str) -> Group:
    row = tx.db.execute(f"{SELECT_GROUP} WHERE queue = ? AND name = ?", (queue, name)).fetchone()
    return Group(name) if row is None else Group(*row)


def stand_touched(tx: Transaction) -> None:
    """Put every group that verbs counted on where it belongs now."""
    by_queue: dict[int, list[Group]] = {}
    for (queue, name), (waiting, active) in tx.take_group_changes().items():
        group = _read(tx, queue, name)
        group.waiting += waiting
        group.active += active
        by_queue.setdefault(queue, []).append(group)
    for queue, groups in by_queue.items():
        stand(tx, queue, read_ring(tx, queue), groups)


def stand(tx: Transaction, queue: int, ring: Ring, groups: Iterable[Group]) -> None:
    """Write these groups, each where it belongs, and end the round if nothing waits any more."""
    for group in groups:
        _place(tx, queue, ring, group)
        if group.is_shown or group.keep_until_ms > tx.now_ms or group.virtual_time > ring.present:
            _write(tx, queue, group)
        else:
            tx.db.execute("DELETE FROM job_group WHERE queue = ? AND name = ?", (queue, group.name))
    if tx.counters(queue, "grouped") == [0] and ring.present < ring.latest:
        # Nobody waits: whoever comes next starts anew beside all others.
        ring.present = ring.latest
        write_ring(tx, queue, ring)


def _place(tx: Transaction, queue: int, ring: Ring, group: Group) -> None:
    limits = group.limits_over(ring.default)
    closed_until_ms = group.closed_until(limits, tx.now_ms)
    may_run = group.waiting > 0 and not group.paused
    is_full = limits.concurrency is not None and group.active >= limits.concurrency
    is_in_ring = may_run and closed_until_ms is None and not is_full
    if is_in_ring and not group.is_in_ring:
        group.virtual_time = max(group.virtual_time, ring.present)
        tx.now_runnable(queue)
    group.is_in_ring = int(is_in_ring)
    group.wake_ms = closed_until_ms if may_run else None
    if group.wake_ms is not None:
        tx.now_runnable(queue)  # whoever sleeps is to know the time
    group.is_shown = int(bool(group.waiting or group.active or group.paused or group.limits is not None))
    group.keep_until_ms = max(group.window_until_ms, group.closed_until_ms)


def _write(tx: Transaction, queue: int, group: Group) -> None:
    values = [getattr(group, field) for field in group.__struct_fields__]
    tx.db.execute(
        f"INSERT OR REPLACE INTO job_group(queue, {_FIELDS}) VALUES(?{', ?' * len(values)})", (queue, *values)
    )


def wake_due(tx: Transaction, queue: int) -> None:
    """Look again at groups whose time has come."""
    rows = tx.db.execute(
        "SELECT name FROM job_group WHERE queue = ? AND wake_ms <= ? LIMIT ?", (queue, tx.now_ms, _SWEEP_AT_ONCE)
    ).fetchall()
    for (name,) in rows:
        tx.touch_group(queue, name)
    stand_touched(tx)


def next_wake_ms(tx: Transaction, queue: int) -> int | None:
    row = tx.db.execute(
        "SELECT min(wake_ms) FROM job_group WHERE queue = ? AND wake_ms IS NOT NULL", (queue,)
    ).fetchone()
    return None if row is None else row[0]


def forget_idle(tx: Transaction, queue: int) -> None:
    """Drop groups of which nothing need be known any more: they would start beside all others."""
    stand_touched(tx)
    tx.db.execute(
        "DELETE FROM job_group WHERE queue = ?1 AND name IN (SELECT name FROM job_group WHERE queue = ?1"
        " AND NOT is_shown AND virtual_time <= ?2 AND keep_until_ms <= ?3 LIMIT ?4)",
        (queue, read_ring(tx, queue).present, tx.now_ms, _SWEEP_AT_ONCE),
    )


def forget_all(tx: Transaction, queue: int) -> None:
    """The queue goes, and all that was said of its groups."""
    tx.take_group_changes(queue)
    for table in ("job_group", "ring"):
        tx.db.execute(f"DELETE FROM {table} WHERE queue = ?", (queue,))
