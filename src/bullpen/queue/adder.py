"""Adds that are made at the same moment travel together.

A web server adds one job for each of many requests; each call awaits its own answer, and all
that were made in one turn of the event loop share one trip to the store.
"""

import asyncio
import weakref
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from bullpen.errors import GroupFull
from bullpen.job.spec import NewJob
from bullpen.queue.trips import Producer, add_jobs
from bullpen.stores.base import Added

_AT_ONCE = 100
"""Larger trips gain little, and the store takes in one while the next is made ready."""


class Adder:
    """One for each store and event loop: `Adder.of(store)`."""

    def __init__(self, store: Producer) -> None:
        # Weak, or the book of adders would keep every store for ever; who adds holds the store.
        self._store = weakref.ref(store)
        self._waiting: list[tuple[NewJob, asyncio.Future[Added]]] = []
        self._trips: set[asyncio.Task[None]] = set()

    @classmethod
    def of(cls, store: Producer) -> "Adder":
        loop = asyncio.get_running_loop()
        known = _adders.get(store)
        if known is None or known[0] is not loop:
            known = _adders[store] = (loop, cls(store))
        return known[1]

    async def add(self, job: NewJob) -> Added:
        """Add one job, in company if there is any."""
        loop = asyncio.get_running_loop()
        store = self._store()
        assert store is not None
        answer: asyncio.Future[Added] = loop.create_future()
        self._waiting.append((job, answer))
        if len(self._waiting) == 1:
            loop.call_soon(self._leave, store)
        return await answer

    def _leave(self, store: Producer) -> None:
        waiting, self._waiting = self._waiting, []
        for start in range(0, len(waiting), _AT_ONCE):
            # Owned by this adder until done; each caller awaits its own answer.
            trip = asyncio.create_task(self._travel(store, waiting[start : start + _AT_ONCE]))
            self._trips.add(trip)
            trip.add_done_callback(self._trips.discard)

    async def _travel(self, store: Producer, company: Sequence[tuple[NewJob, asyncio.Future[Added]]]) -> None:
        try:
            answers = await add_jobs(store, [job for job, _ in company])
        except GroupFull as error:
            await self._travel_apart(store, company, error)
        except Exception as error:  # noqa: BLE001 - it is every caller's error
            for _, future in company:
                if not future.done():
                    future.set_exception(error)
        else:
            for (_, future), added in zip(company, answers, strict=True):
                if not future.done():
                    future.set_result(added)

    async def _travel_apart(
        self, store: Producer, company: Sequence[tuple[NewJob, asyncio.Future[Added]]], error: GroupFull
    ) -> None:
        """Nothing was added, since one group is full: that is the error of its own producers only."""
        if len(company) > 1:
            for one in company:
                await self._travel(store, [one])
        elif not company[0][1].done():
            company[0][1].set_exception(error)


_adders: "WeakKeyDictionary[Producer, tuple[asyncio.AbstractEventLoop, Adder]]" = WeakKeyDictionary()
