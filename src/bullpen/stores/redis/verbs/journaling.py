"""Durable steps: the journal and the mailbox of a job."""

from collections.abc import Sequence

from bullpen.job.entries import JournalEntry, JournalPage
from bullpen.job.record import JobRef
from bullpen.stores.base import Delivery
from bullpen.stores.redis import journaling
from bullpen.stores.redis.opened import OpenSite


class Journaling(OpenSite):
    async def append_journal(
        self, ref: JobRef, entries: Sequence[JournalEntry], *, epoch: int
    ) -> Sequence[JournalEntry]:
        return await journaling.append(self._site, ref, entries, epoch)

    async def read_journal(self, ref: JobRef, *, start: int = 0, limit: int = 1_000) -> JournalPage:
        return await journaling.read(self._site, ref, start, limit)

    async def receive(self, ref: JobRef, entry: JournalEntry, *, epoch: int) -> JournalEntry | None:
        return await journaling.receive(self._site, ref, entry, epoch)

    async def fork_journal(self, ref: JobRef, at: int, to: JobRef) -> int:
        return await journaling.fork(self._site, ref, at, to)

    async def forget_journal(self, ref: JobRef) -> None:
        await journaling.forget(self._site, ref)

    async def signal(self, ref: JobRef, name: str, payload: bytes, *, request: str) -> Delivery:
        return await journaling.signal(self._site, ref, name, payload, request)
