"""A bounded place for adds while the store is away.

An add that the store does not take waits here and is answered at once, with an id of our own,
under which it is added later: in order, once. When the buffer is full, adding is an error, and
what is still here when the process ends is lost, and said to be.
"""

import asyncio
import atexit
import collections
import logging
import os
import sys
import uuid
from collections.abc import Sequence

import msgspec

from bullpen.errors import BufferFull, BufferLost, BullpenError, StoreError, StoreUnavailable
from bullpen.job.checks import check_at_least
from bullpen.job.spec import NewJob
from bullpen.scheduling.pauses import Pauses
from bullpen.stores.base import Added, AddOutcome, Store

logger = logging.getLogger("bullpen.buffer")

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
_TRIP = 200


class Buffer:
    """Takes adds as a store does; holds up to `limit` jobs while the store is away.

    For one event loop at a time, as the store behind it.
    """

    def __init__(self, store: Store, limit: int) -> None:
        check_at_least("buffer", limit, 1)
        self._store = store
        self.limit = limit
        self._held: collections.deque[NewJob] = collections.deque()
        self._refused = 0
        self._sender: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()
        self._owner = os.getpid()
        # Before anything that may close us at exit, so that the report comes after it.
        atexit.register(self._report_loss)
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._held)

    async def add(self, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        """What the store says, or that they wait here; BufferFull if there is no room for all of them."""
        self._forget_after_fork()
        # Each has an id before its first try: a store that took it and could not say so will know it again.
        named = [_with_id(job) for job in jobs]
        # While others wait here, a newcomer waits behind them: order is kept.
        if not self._held:
            try:
                await self._store.open()
                return await self._store.add(named, request=request)
            except StoreUnavailable as error:
                logger.warning("the store is away, adds wait here: %s", error)
        return self._hold(named)

    async def until_added(self, job_id: str) -> None:
        """Wait until this job waits here no more."""
        while any(job.id == job_id for job in self._held):
            self._keep_sending()
            self._moved.clear()
            await self._moved.wait()

    def _hold(self, jobs: Sequence[NewJob]) -> list[Added]:
        if len(self._held) + len(jobs) > self.limit:
            raise BufferFull(
                f"the store is away and {len(self._held)} jobs wait here already; at most {self.limit} may"
            )
        if self._is_closed:
            self._is_closed = False
            atexit.register(self._report_loss)
        self._held.extend(jobs)
        self._keep_sending()
        return [Added(job.id or "", AddOutcome.BUFFERED) for job in jobs]

    def _keep_sending(self) -> None:
        # A sender that ended while jobs are held belonged to an event loop that is gone.
        if self._sender is None or self._sender.done():
            # Owned by this buffer until it is empty.
            self._sender = asyncio.create_task(self._send(), name="buffer")

    async def _send(self) -> None:
        """Add what is held, oldest first, until nothing is."""
        pauses = Pauses(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        while self._held:
            trip = [self._held[n] for n in range(min(_TRIP, len(self._held)))]
            try:
                await self._deliver(trip)
            except StoreError as error:
                logger.debug("the store is still away: %s", error)
                await asyncio.sleep(pauses.next_s())
            else:
                pauses.begin_anew()
        logger.info("the store is back; nothing waits here any more")

    async def _deliver(self, trip: Sequence[NewJob]) -> None:
        """Add these and let go of them; StoreError if the store is away, and they stay."""
        await self._store.open()
        try:
            await self._store.add(trip, request=uuid.uuid4().hex)
        except StoreError:
            raise
        except BullpenError as error:
            if len(trip) > 1:
                # One that is refused must not take the others along.
                for job in trip:
                    await self._deliver([job])
                return
            self._refused += 1
            logger.error("job %s of queue %s is refused and lost: %s", trip[0].id, trip[0].queue, error)  # noqa: TRY400
        for _ in trip:
            self._held.popleft()
        self._moved.set()

    async def close(self, within_s: float = 5) -> None:
        """Send what is held; BufferLost says how many could not be."""
        self._forget_after_fork()
        if self._held:
            self._keep_sending()
        if self._sender is not None:
            await asyncio.wait([self._sender], timeout=within_s)
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
            self._sender = None
        self._is_closed = True
        atexit.unregister(self._report_loss)
        lost = len(self._held) + self._refused
        self._held.clear()
        self._refused = 0
        if lost:
            raise BufferLost(f"{lost} jobs could not be added before the end and are lost")

    def _forget_after_fork(self) -> None:
        """What a parent process held is the parent's to send."""
        if self._owner != os.getpid():
            self._owner = os.getpid()
            self._held.clear()
            self._refused = 0
            self._sender = None

    def _report_loss(self) -> None:
        if self._held and self._owner == os.getpid():
            print(f"bullpen: {len(self._held)} jobs that waited for the store are lost", file=sys.stderr)  # noqa: T201


def _with_id(job: NewJob) -> NewJob:
    return job if job.id is not None else msgspec.structs.replace(job, id=f"b-{uuid.uuid4().hex}")
