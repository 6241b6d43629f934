"""Moves with groups that promises start from."""

from bullpen.job.limits import GroupInfo, GroupLimits
from bullpen.job.record import JobRef
from bullpen.job.spec import JobSpec, NewJob
from bullpen.stores.base import Store
from bullpen.testing.conformance.moves import MAIL, add, claim


async def add_to(
    store: Store, group: str | None, count: int = 1, *, queue: str = MAIL, priority: int = 0
) -> list[JobRef]:
    """Add so many jobs to a group, in one batch."""
    spec = JobSpec(group=group, priority=priority)
    added = await add(store, *[NewJob(queue, "welcome", spec=spec)] * count)
    return [JobRef(queue, one.id) for one in added]


async def claim_groups(store: Store, count: int, queue: str = MAIL) -> list[str | None]:
    """The groups of the next jobs, in the order in which they are given out."""
    return [claimed.job.spec.group for claimed in await claim(store, count, queue)]


async def group_of(store: Store, name: str, queue: str = MAIL) -> GroupInfo:
    page = await store.groups(queue, limit=1_000)
    return next((group for group in page.groups if group.name == name), GroupInfo(name=name))


async def cap(store: Store, group: str, concurrency: int) -> None:
    await store.set_group(MAIL, group, GroupLimits(concurrency=concurrency))
