"""A worker's part, played by hand: claim, complete, fail."""

import asyncio
import uuid
from collections.abc import Sequence

from bullpen import Failure, NewJob, Store
from bullpen.job.record import ClaimedJob
from bullpen.job.verdicts import Completed, Failed, Settlement, Verdict
from bullpen.stores.base import Added, EventPage, SettleOutcome
from tests.support.around import StoreAround


class WatchedStore(StoreAround):
    """Notes what is asked of it, and otherwise is the store that it is."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.adds: list[int] = []
        """The number of jobs of each add."""
        self._may_add = asyncio.Event()
        self._may_add.set()
        self.listening = asyncio.Event()
        """Set once someone waits for events."""
        self.listeners = 0
        self.most_listeners = 0

    async def add(self, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        self.adds.append(len(jobs))
        await self._may_add.wait()
        return await self.inner.add(jobs, request=request)

    def hold_adds(self) -> asyncio.Event:
        """Adds wait until it is set."""
        self._may_add.clear()
        return self._may_add

    async def events(self, queue: str, *, after: str | None, limit: int, timeout_ms: int) -> EventPage:
        if not timeout_ms:
            return await self.inner.events(queue, after=after, limit=limit, timeout_ms=timeout_ms)
        self.listeners += 1
        self.most_listeners = max(self.listeners, self.most_listeners)
        self.listening.set()
        try:
            return await self.inner.events(queue, after=after, limit=limit, timeout_ms=timeout_ms)
        finally:
            self.listeners -= 1


async def claim(store: Store, how_many: int = 1, queue: str = "work") -> tuple[ClaimedJob, ...]:
    claimed = await store.claim({queue: how_many}, worker="w", lease_ms=30_000, request=uuid.uuid4().hex)
    return claimed.jobs


async def settle(store: Store, claimed: ClaimedJob, verdict: Verdict) -> None:
    outcomes = await store.settle([Settlement(claimed.lease, verdict)], request=uuid.uuid4().hex)
    assert list(outcomes) == [SettleOutcome.SETTLED]


async def complete_next(store: Store, result: bytes = b"null", queue: str = "work") -> str:
    """Claim the next job and complete it; its id."""
    (claimed,) = await claim(store, queue=queue)
    await settle(store, claimed, Completed(result))
    return claimed.job.id


async def fail_next(store: Store, message: str = "broken", queue: str = "work") -> str:
    (claimed,) = await claim(store, queue=queue)
    await settle(store, claimed, Failed(Failure(message, type="ValueError", stack="the stack")))
    return claimed.job.id
