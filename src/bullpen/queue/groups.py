"""The groups of a queue as an operator holds them, and limits as people write them."""

from collections.abc import AsyncIterator

from bullpen.job.checks import check_at_least
from bullpen.job.limits import MAX_WEIGHT, GroupInfo, GroupLimits, GroupPage, QueueLimits, Rate
from bullpen.job.names import check_group_name
from bullpen.job.options import check_count, check_rate
from bullpen.stores.base import Store

_PAGE = 500


def queue_limits(concurrency: int | None, rate: Rate | None) -> QueueLimits:
    """Checked, and as they are stored."""
    check_count("concurrency", concurrency)
    check_rate("rate", rate)
    return QueueLimits(
        concurrency=concurrency,
        rate_max=None if rate is None else rate.max,
        rate_ms=None if rate is None else rate.ms,
    )


def group_limits(weight: int | None, concurrency: int | None, rate: Rate | None, max_size: int | None) -> GroupLimits:
    """Checked, and as they are stored."""
    check_count("weight", weight, MAX_WEIGHT)
    check_count("concurrency", concurrency)
    check_count("max_size", max_size)
    check_rate("rate", rate)
    return GroupLimits(
        weight=weight,
        concurrency=concurrency,
        rate_max=None if rate is None else rate.max,
        rate_ms=None if rate is None else rate.ms,
        max_size=max_size,
    )


class Groups:
    """`queue.groups`: the tenants of a queue, or whatever else its jobs are grouped by."""

    def __init__(self, store: Store, queue: str) -> None:
        self._store = store
        self._queue = queue

    async def set(
        self,
        group: str,
        *,
        weight: int | None = None,
        concurrency: int | None = None,
        rate: Rate | None = None,
        max_size: int | None = None,
    ) -> None:
        """Give a group limits of its own, in place of those it had; what is not said is as the default."""
        limits = group_limits(weight, concurrency, rate, max_size)
        await self._store.set_group(self._queue, check_group_name(group), limits)

    async def set_default(
        self,
        *,
        weight: int | None = None,
        concurrency: int | None = None,
        rate: Rate | None = None,
        max_size: int | None = None,
    ) -> None:
        """The limits of each group, where its own say nothing."""
        await self._store.set_group_default(self._queue, group_limits(weight, concurrency, rate, max_size))

    async def unset(self, group: str) -> None:
        """Take a group's own limits away: it has the default's."""
        await self._store.set_group(self._queue, check_group_name(group), None)

    async def pause(self, group: str) -> None:
        """Give out no more jobs of the group; running ones go on, adds are taken."""
        await self._store.pause_group(self._queue, check_group_name(group))

    async def resume(self, group: str) -> None:
        await self._store.resume_group(self._queue, check_group_name(group))

    async def page(self, *, limit: int = 100, cursor: str | None = None) -> GroupPage:
        """Groups that have jobs waiting or active, limits of their own, or a pause; by name."""
        check_at_least("limit", limit, 1)
        return await self._store.groups(self._queue, limit=limit, cursor=cursor)

    async def __aiter__(self) -> AsyncIterator[GroupInfo]:
        cursor = None
        while True:
            page = await self.page(limit=_PAGE, cursor=cursor)
            for group in page.groups:
                yield group
            cursor = page.next_cursor
            if cursor is None:
                return

    async def get(self, group: str) -> GroupInfo:
        """One group as it stands; one that nobody spoke of is empty."""
        return await self._store.group(self._queue, check_group_name(group))
