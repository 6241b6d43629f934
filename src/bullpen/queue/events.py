"""Following a queue's events from a cursor that survives a restart of the listener."""

import asyncio
import logging
from collections.abc import AsyncIterator

import msgspec

from bullpen.errors import StoreNotOpen, StoreUnavailable
from bullpen.job.events import Event
from bullpen.job.names import check_queue_name
from bullpen.queue.trips import new_pauses
from bullpen.stores.base import FROM_START, Store

logger = logging.getLogger("bullpen.queue")

__all__ = ["FROM_START", "Gap", "QueueEvents"]


class Gap(msgspec.Struct, frozen=True):
    """Events were dropped from the log before they were read: look at the jobs themselves."""

    cursor: str
    """Reading goes on after this."""


class QueueEvents:
    """All that happens in a queue, in order, as an async iterator.

        async for event in QueueEvents(store, "mail", after=saved_cursor):
            if isinstance(event, Gap):
                ...                       # too late: some events were dropped
            saved_cursor = event.cursor   # keep it where a restart finds it

    Without a cursor it starts now; with `FROM_START`, at the oldest event that is kept. A store
    that goes away is waited for; what happened meanwhile follows when it is back.
    """

    def __init__(self, store: Store, queue: str, *, after: str | None = None, page: int = 500) -> None:
        self._store = store
        self._queue = check_queue_name(queue)
        self._page = page
        self.cursor = after
        """Where reading goes on; None before the first look."""

    async def ready(self) -> str:
        """Fix the place to start from: everything that happens after this is seen."""
        if self.cursor is None:
            self.cursor = (await self._store.events(self._queue, after=None, limit=1, timeout_ms=0)).cursor
        return self.cursor

    async def __aiter__(self) -> AsyncIterator[Event | Gap]:
        await self.ready()
        pauses = new_pauses()
        while True:
            try:
                page = await self._store.events(self._queue, after=self.cursor, limit=self._page, timeout_ms=10_000)
            except StoreNotOpen:
                raise
            except StoreUnavailable as error:
                logger.warning("cannot follow the events of %s, trying again: %s", self._queue, error)
                await asyncio.sleep(pauses.next_s())
                continue
            pauses.begin_anew()
            if page.gap:
                self.cursor = page.cursor if not page.events else self.cursor
                yield Gap(self.cursor or "")
            for event in page.events:
                self.cursor = event.cursor
                yield event
