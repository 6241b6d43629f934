"""Limits of a queue and of its groups: how they are set, and how a queue's are kept."""

import sqlite3

import msgspec

from bullpen.job.limits import NO_GROUP_LIMITS, NO_LIMITS, GroupInfo, GroupLimits, GroupPage, QueueLimits, QueueStanding
from bullpen.stores.sqlite.grouping import (
    SELECT_GROUP,
    Group,
    decode_group_limits,
    read_group,
    read_ring,
    stand,
    stand_touched,
    write_ring,
)
from bullpen.stores.sqlite.rows import encode
from bullpen.stores.sqlite.schema import READY
from bullpen.stores.sqlite.transaction import Transaction

_decode_limits = msgspec.json.Decoder(QueueLimits).decode


class Limits(msgspec.Struct):
    """A queue's limits and its present window."""

    said: QueueLimits = NO_LIMITS
    window_until_ms: int = 0
    window_starts: int = 0
    closed_until_ms: int = 0

    def closed_until(self, now_ms: int) -> int | None:
        """When it opens again; None if it is open."""
        is_used_up = self.said.rate_max is not None and self.window_starts >= self.said.rate_max
        until_ms = max(self.closed_until_ms, self.window_until_ms if is_used_up else 0)
        return until_ms if until_ms > now_ms else None

    def is_full(self, active: int) -> bool:
        return self.said.concurrency is not None and active >= self.said.concurrency

    def room(self, slots: int, active: int, now_ms: int) -> int:
        """How many of so many may start; none while it is closed."""
        if self.closed_until(now_ms) is not None:
            return 0
        if self.said.concurrency is not None:
            slots = min(slots, self.said.concurrency - active)
        if self.said.rate_max is not None:
            starts = self.window_starts if self.window_until_ms > now_ms else 0
            slots = min(slots, self.said.rate_max - starts)
        return max(slots, 0)


# ── a queue ──────────────────────────────────────────────────────────────────────────────


def read_limits(db: sqlite3.Connection, queue: int) -> Limits:
    row = db.execute(
        "SELECT limits, window_until_ms, window_starts, closed_until_ms FROM queue_limit WHERE queue = ?", (queue,)
    ).fetchone()
    return Limits() if row is None else Limits(_decode_limits(row[0]), *row[1:])


def _write_limits(tx: Transaction, queue: int, limits: Limits) -> None:
    tx.db.execute(
        "INSERT OR REPLACE INTO queue_limit(queue, limits, window_until_ms, window_starts, closed_until_ms)"
        " VALUES(?, ?, ?, ?, ?)",
        (queue, encode(limits.said), limits.window_until_ms, limits.window_starts, limits.closed_until_ms),
    )
    (limited,) = tx.counters(queue, "limited")
    tx.count(queue, "limited", 1 - limited)
    tx.now_runnable(queue)


def set_limits(tx: Transaction, name: str, said: QueueLimits) -> None:
    queue = tx.queue(name)
    closed_until_ms = read_limits(tx.db, queue).closed_until_ms
    _write_limits(tx, queue, Limits(said, closed_until_ms=closed_until_ms))


def standing(db: sqlite3.Connection, queue: int, now_ms: int) -> QueueStanding:
    limits = read_limits(db, queue)
    return QueueStanding(limits.said, limits.closed_until(now_ms))


def count_starts(tx: Transaction, queue: int, limits: Limits, starts: int) -> None:
    if starts == 0 or limits.said.rate_max is None or limits.said.rate_ms is None:
        return
    if limits.window_until_ms <= tx.now_ms:
        limits.window_until_ms, limits.window_starts = tx.now_ms + limits.said.rate_ms, 0
    limits.window_starts += starts
    tx.db.execute(
        "UPDATE queue_limit SET window_until_ms = ?, window_starts = ? WHERE queue = ?",
        (limits.window_until_ms, limits.window_starts, queue),
    )


def close_for(tx: Transaction, queue: int, group: str | None, delay_ms: int) -> None:
    """Start nothing of the group, or of the whole queue, for that long."""
    until_ms = tx.now_ms + delay_ms
    if group is None:
        limits = read_limits(tx.db, queue)
        limits.closed_until_ms = max(limits.closed_until_ms, until_ms)
        _write_limits(tx, queue, limits)
        return
    known = read_group(tx, queue, group)
    known.closed_until_ms = max(known.closed_until_ms, until_ms)
    stand(tx, queue, read_ring(tx, queue), [known])


# ── groups ───────────────────────────────────────────────────────────────────────────────


def set_group(tx: Transaction, name: str, group: str, limits: GroupLimits | None) -> None:
    queue = tx.queue(name)
    known = read_group(tx, queue, group)
    known.limits = None if limits in (None, NO_GROUP_LIMITS) else encode(limits)
    known.window_starts = known.window_until_ms = 0
    stand(tx, queue, read_ring(tx, queue), [known])


def set_group_default(tx: Transaction, name: str, limits: GroupLimits) -> None:
    """Also those that wait are looked at again, since a cap may be gone."""
    queue = tx.queue(name)
    stand_touched(tx)
    ring = read_ring(tx, queue)
    ring.default = limits
    write_ring(tx, queue, ring)
    rows = tx.db.execute(f"{SELECT_GROUP} WHERE queue = ? AND waiting > 0", (queue,)).fetchall()
    stand(tx, queue, ring, [Group(*row) for row in rows])


def pause_group(tx: Transaction, name: str, group: str) -> None:
    _set_paused(tx, tx.queue(name), group, paused=True)


def resume_group(tx: Transaction, name: str, group: str) -> None:
    _set_paused(tx, tx.existing_queue(name), group, paused=False)


def _set_paused(tx: Transaction, queue: int, group: str, *, paused: bool) -> None:
    known = read_group(tx, queue, group)
    known.paused = int(paused)
    stand(tx, queue, read_ring(tx, queue), [known])


def group(db: sqlite3.Connection, queue: int, name: str, now_ms: int) -> GroupInfo:
    row = db.execute(f"{SELECT_GROUP} WHERE queue = ? AND name = ?", (queue, name)).fetchone()
    return GroupInfo(name=name) if row is None else _info(db, queue, Group(*row), _default(db, queue), now_ms)


def groups(db: sqlite3.Connection, queue: int, limit: int, cursor: str | None, now_ms: int) -> GroupPage:
    default = _default(db, queue)
    rows = db.execute(
        f"{SELECT_GROUP} WHERE queue = ? AND is_shown AND name > ? ORDER BY name LIMIT ?",
        (queue, cursor or "", limit + 1),
    ).fetchall()
    found = [_info(db, queue, Group(*row), default, now_ms) for row in rows[:limit]]
    return GroupPage(tuple(found), default, found[-1].name if len(rows) > limit else None)


def _default(db: sqlite3.Connection, queue: int) -> GroupLimits:
    row = db.execute("SELECT limits FROM ring WHERE queue = ?", (queue,)).fetchone()
    return GroupLimits() if row is None or row[0] is None else decode_group_limits(row[0])


def _info(db: sqlite3.Connection, queue: int, group: Group, default: GroupLimits, now_ms: int) -> GroupInfo:
    oldest = db.execute(
        f"SELECT entered_ms FROM job WHERE queue = ? AND state = {READY} AND group_name = ?"
        " ORDER BY priority, position LIMIT 1",
        (queue, group.name),
    ).fetchone()
    return GroupInfo(
        name=group.name,
        waiting=group.waiting,
        active=group.active,
        paused=bool(group.paused),
        closed_until_ms=group.closed_until(group.limits_over(default), now_ms),
        oldest_ms=None if oldest is None else oldest[0],
        limits=GroupLimits() if group.limits is None else decode_group_limits(group.limits),
    )
