"""Adds that are made at the same moment travel together.

A web server adds one job for each of many requests; each call awaits its own answer, and all
that were made in one turn of the event loop share one trip to the store. While as many trips as
the store likes are under way, adds gather for the next: the busier it is, the larger trips become.
"""

import asyncio
import functools
import weakref
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from bullpen.errors import GroupFull
from bullpen.job.spec import NewJob
from bullpen.queue.trips import Producer, add_jobs
from bullpen.stores.base import Added

_UNDER_WAY = 2
"""The store takes in one trip while the next is made ready; more would only make each smaller."""
_SHARE = 100
"""Larger trips gain little, so that where another trip is free the rest takes that one."""
_AT_ONCE = 200
"""A larger trip would hold up others whom the store serves."""


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
        """Send off what waits, on the trips that are free; what stays leaves with the next that comes back."""
        while self._waiting and (free := _UNDER_WAY - len(self._trips)) > 0:
            size = min(_AT_ONCE, max(_SHARE, -(-len(self._waiting) // free)))
            leaving, self._waiting = self._waiting[:size], self._waiting[size:]
            # Whoever was cancelled before the trip began has added nothing.
            company = [one for one in leaving if not one[1].done()]
            # Owned by this adder until done; each caller awaits its own answer.
            trip = asyncio.create_task(self._travel(store, company))
            self._trips.add(trip)
            trip.add_done_callback(functools.partial(self._come_back, store))

    def _come_back(self, store: Producer, trip: "asyncio.Task[None]") -> None:
        self._trips.discard(trip)
        self._leave(store)

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
