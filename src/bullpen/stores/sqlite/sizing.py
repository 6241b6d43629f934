"""The size of groups: what may wait there is looked at before anything of a batch is added."""

from collections.abc import Iterator, Sequence

from bullpen.errors import GroupFull
from bullpen.job.spec import NewJob
from bullpen.stores.sqlite.duplicates import is_taken, owner_of
from bullpen.stores.sqlite.grouping import Group, read_group, read_ring
from bullpen.stores.sqlite.transaction import Transaction


def check_sizes(tx: Transaction, jobs: Sequence[NewJob]) -> None:
    """GroupFull if there is no room for all that is new."""
    grouped: dict[tuple[str, str], list[NewJob]] = {}
    for job in _entering(tx, jobs):
        if job.spec.group is not None:
            grouped.setdefault((job.queue, job.spec.group), []).append(job)
    for (queue, group), some in grouped.items():
        _check(tx, queue, group, some)


def _entering(tx: Transaction, jobs: Sequence[NewJob]) -> Iterator[NewJob]:
    """Those that would go into a line at once: not after a delay or their children, nor below one that is there."""
    for job in jobs:
        if not job.children:
            if not job.spec.delay_ms:
                yield job
        elif job.id is None or not is_taken(tx, tx.queue_number_if_known(job.queue), job.id):
            yield from _entering(tx, job.children)


def _check(tx: Transaction, name: str, group_name: str, jobs: Sequence[NewJob]) -> None:
    queue = tx.queue_number_if_known(name)
    if not queue:
        return  # limits make a queue
    group: Group = read_group(tx, queue, group_name)
    most = group.limits_over(read_ring(tx, queue).default).max_size
    if most is None or group.waiting + len(jobs) <= most:
        return
    more = _how_many_enter(tx, queue, jobs)
    if more and group.waiting + more > most:
        raise GroupFull(
            f"group {group_name!r} of queue {name!r} has {group.waiting} of {most} jobs waiting: {more} more"
            " would be too many; nothing was added"
        )


def _how_many_enter(tx: Transaction, queue: int, jobs: Sequence[NewJob]) -> int:
    """Those for whom nobody stands yet: what is known by its id or subject takes no room."""
    seen: set[tuple[str, str]] = set()
    more = 0
    for job in jobs:
        names = {("id", job.id or ""), ("subject", job.spec.dedup.id if job.spec.dedup else "")}
        names = {name for name in names if name[1]}
        is_known = job.id is not None and is_taken(tx, queue, job.id)
        dedup = job.spec.dedup
        is_stood_for = dedup is not None and not dedup.replace and owner_of(tx, queue, dedup.id) is not None
        if not is_known and not is_stood_for and seen.isdisjoint(names):
            more += 1
        seen |= names
    return more
