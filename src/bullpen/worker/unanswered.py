"""Claims that were asked for and whose answer is not here.

Their leases begin at the store, and nobody renews what nobody knows of. While the event loop is blocked, the lease
thread hands such claims back before they run out. Whichever of the two threads takes a request out has it to itself.
"""

import asyncio
from collections.abc import Sequence

from bullpen.clock import Clock
from bullpen.errors import StoreError
from bullpen.job.record import ClaimedJob
from bullpen.stores.base import Renewal
from bullpen.stores.workplace import Workplace


class Unanswered:
    """Kept by the worker's event loop; the lease thread takes out what is late."""

    def __init__(self, clock: Clock, lease_ms: int) -> None:
        self._clock = clock
        self._lease_ms = lease_ms
        self._late_after_ms: dict[str, int] = {}

    def ask(self, request: str, *, within_ms: int = 0) -> None:
        """This request claims at the store now, or at any time within that."""
        self._late_after_ms[request] = self._clock.mono_ms() + within_ms + self._lease_ms // 2

    async def held(self, store: Workplace, request: str, jobs: Sequence[ClaimedJob]) -> Sequence[ClaimedJob]:
        """It is answered with these; those that may start: of a late answer, if their leases can still be renewed."""
        late_after_ms = self._late_after_ms.pop(request, None)
        if late_after_ms is None:
            return ()  # the lease thread has handed them back
        if not jobs or self._clock.mono_ms() <= late_after_ms:
            return jobs
        try:
            renewals = await store.renew([claimed.lease for claimed in jobs], lease_ms=self._lease_ms)
        except StoreError:
            self.ask(request)  # whoever sees to what is unanswered hands them back
            return ()
        except asyncio.CancelledError:
            self.ask(request)
            raise
        return [claimed for claimed, renewal in zip(jobs, renewals, strict=True) if renewal != Renewal.LOST]

    def take_late(self) -> Sequence[str]:
        now_ms = self._clock.mono_ms()
        late = [request for request, after_ms in tuple(self._late_after_ms.items()) if now_ms > after_ms]
        return [request for request in late if self._late_after_ms.pop(request, None) is not None]

    def all(self) -> Sequence[str]:
        return tuple(self._late_after_ms)
