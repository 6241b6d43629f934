"""Waking those who wait for work: one wait in the store on behalf of all calls that wait here."""

import asyncio
import contextlib
import logging
from collections.abc import Iterable

from bullpen.errors import StoreError
from bullpen.scheduling.pauses import Pauses
from bullpen.stores.base import Store

logger = logging.getLogger("bullpen.server")

_LOOK_MS = 5_000
"""A store that nobody hears from is asked anew that often."""
_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 1.0


class Bell:
    """Rings for everyone who waits when one of their queues may have something to run.

    The store wakes whoever asks as long as a job is there, though it may be none that these callers can
    take: another tenant's. So each ring that nobody took a job after is followed by a longer pause.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sleepers: dict[asyncio.Event, frozenset[str]] = {}
        self._watched: frozenset[str] = frozenset()
        self._watching: asyncio.Task[None] | None = None
        self._pauses = Pauses(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        self._was_in_vain = False
        self._is_closed = False

    async def wait(self, queues: Iterable[str], timeout_s: float) -> bool:
        """Return when it rings, or when the time is over: then False."""
        if self._is_closed:
            return False
        rung = asyncio.Event()
        self._sleepers[rung] = frozenset(queues)
        self._watch()
        try:
            async with asyncio.timeout(timeout_s):
                await rung.wait()
        except TimeoutError:
            return False
        else:
            return not self._is_closed
        finally:
            self._sleepers.pop(rung, None)
            if not self._sleepers:
                # A wait that nobody needs could take a wake-up away from another process.
                self._stop_watching()

    def job_was_found(self) -> None:
        """The last ring was worth it."""
        self._was_in_vain = False
        self._pauses.begin_anew()

    async def close(self) -> None:
        """Wake everyone for the last time; safe to call twice."""
        self._is_closed = True
        for rung in self._sleepers:
            rung.set()
        watching = self._watching
        self._stop_watching()
        if watching is not None:
            await asyncio.gather(watching, return_exceptions=True)

    def _watch(self) -> None:
        wanted = self._wanted()
        if self._watching is None or not wanted <= self._watched:
            self._stop_watching()
            self._watched = wanted
            # Owned by this bell until nobody sleeps.
            self._watching = asyncio.create_task(self._ring_when_there_is_work(), name="bell")

    def _stop_watching(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None

    def _wanted(self) -> frozenset[str]:
        return frozenset().union(*self._sleepers.values())

    async def _ring_when_there_is_work(self) -> None:
        while True:
            if self._was_in_vain:
                await asyncio.sleep(self._pauses.next_s())
            if await self._there_is_work():
                self._was_in_vain = True
                for rung in self._sleepers:
                    rung.set()

    async def _there_is_work(self) -> bool:
        try:
            return await self._store.wait(sorted(self._watched), timeout_ms=_LOOK_MS)
        except StoreError as error:
            logger.warning("cannot watch for work: %s", error)
        except Exception:
            # Whatever it is, callers whom nothing wakes are worse.
            logger.exception("the watch for work met an error, trying again")
        self._was_in_vain = True
        return False


class Bells:
    """One for each tenant, so that a tenant whose turn it is not costs the others nothing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._of_tenant: dict[str | None, Bell] = {}

    def of(self, tenant: str | None) -> Bell:
        if tenant not in self._of_tenant:
            self._of_tenant[tenant] = Bell(self._store)
        return self._of_tenant[tenant]

    async def close(self) -> None:
        for bell in self._of_tenant.values():
            with contextlib.suppress(StoreError):
                await bell.close()
