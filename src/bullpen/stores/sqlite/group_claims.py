"""Claiming from groups: turns are planned first, then each group gives its jobs."""

from collections import Counter

from bullpen.scheduling.turns import Contender, plan_turns
from bullpen.stores.sqlite.grouping import SELECT_GROUP, Group, Ring, read_ring, stand, wake_due, write_ring
from bullpen.stores.sqlite.rows import SELECT_TO_CLAIM
from bullpen.stores.sqlite.schema import READY
from bullpen.stores.sqlite.settling import expire
from bullpen.stores.sqlite.transaction import Row, Transaction

NEXT_IN_GROUP = (
    f"{SELECT_TO_CLAIM} WHERE job.queue = :queue AND job.state = {READY} AND job.group_name = :group"
    " ORDER BY job.priority, job.position LIMIT :slots"
)
_EXPIRED_AT_ONCE = 1_000


def take_turns(tx: Transaction, queue: int, slots: int, *, only: str | None = None) -> list[Row]:
    """The jobs whose turn it is, in the order of the turns; their groups have moved on.

    With `only`, those of one group, out of turn: it moves on, and the time of the others stands still.
    """
    expired = 0
    while True:
        wake_due(tx, queue)
        ring = read_ring(tx, queue)
        groups = _ring_of(tx, queue, slots, only)
        contenders = [_contender(tx, group, ring) for group in groups.values()]
        plan = plan_turns(contenders, slots, ring.present)
        turns = Counter(plan.turns)
        rows = {group: _next_of(tx, queue, group, count) for group, count in turns.items()}
        late = [row[0] for found in rows.values() for row in found if row[-1] is not None and row[-1] < tx.now_ms]
        if not late or expired >= _EXPIRED_AT_ONCE:
            break
        # What ends here takes no turn: plan anew without it.
        for key in late:
            expire(tx, key)
        expired += len(late)
    present = plan.present if only is None else ring.present
    _move_on(tx, queue, ring, groups, contenders, present, turns)
    lines = {group: iter(found) for group, found in rows.items()}
    taken = [next(lines[group]) for group in plan.turns]
    return [row for row in taken if row[0] not in late]


def _ring_of(tx: Transaction, queue: int, slots: int, only: str | None) -> dict[bytes, Group]:
    """As many groups as could come to their turn, or the one that is asked for."""
    in_ring = f"{SELECT_GROUP} WHERE queue = ? AND is_in_ring"
    if only is None:
        rows = tx.db.execute(f"{in_ring} ORDER BY virtual_time, name LIMIT ?", (queue, slots)).fetchall()
    else:
        rows = tx.db.execute(f"{in_ring} AND name = ?", (queue, only)).fetchall()
    return {row[0].encode(): Group(*row) for row in rows}


def _contender(tx: Transaction, group: Group, ring: Ring) -> Contender:
    limits = group.limits_over(ring.default)
    budgets = [group.waiting, group.starts_left(limits, tx.now_ms)]
    if limits.concurrency is not None:
        budgets.append(limits.concurrency - group.active)
    budget = min(budget for budget in budgets if budget is not None)
    return Contender(group.name.encode(), group.virtual_time, limits.weight or 1, budget)


def _next_of(tx: Transaction, queue: int, group: bytes, count: int) -> list[Row]:
    return tx.db.execute(NEXT_IN_GROUP, {"queue": queue, "group": group.decode(), "slots": count}).fetchall()


def _move_on(
    tx: Transaction,
    queue: int,
    ring: Ring,
    groups: dict[bytes, Group],
    contenders: list[Contender],
    present: float,
    turns: Counter[bytes],
) -> None:
    """Who had turns is later in the ring; the jobs themselves are counted by whoever activates them."""
    if not turns:
        return
    times = {one.name: one.virtual_time for one in contenders}
    ring.present = present
    ring.latest = max(ring.latest, *(times[name] for name in turns))
    write_ring(tx, queue, ring)
    moved = [groups[name] for name in turns]
    for group in moved:
        group.virtual_time = times[group.name.encode()]
        group.count_starts(group.limits_over(ring.default), turns[group.name.encode()], tx.now_ms)
    stand(tx, queue, ring, moved)
