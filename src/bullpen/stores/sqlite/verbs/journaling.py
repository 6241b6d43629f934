"""Durable steps: the journal and the mailbox of a job."""

from collections.abc import Sequence

from bullpen.job.entries import JournalEntry, JournalPage
from bullpen.job.record import JobRef
from bullpen.stores.base import Delivery
from bullpen.stores.sqlite import journaling
from bullpen.stores.sqlite.opened import OpenFile
from bullpen.stores.sqlite.requests import answer_signal


class Journaling(OpenFile):
    async def append_journal(
        self, ref: JobRef, entries: Sequence[JournalEntry], *, epoch: int
    ) -> Sequence[JournalEntry]:
        return await self._write(lambda tx: journaling.append(tx, ref, entries, epoch))

    async def read_journal(self, ref: JobRef, *, start: int = 0, limit: int = 1_000) -> JournalPage:
        return await self._file.read(lambda db: journaling.read(db, ref, start, limit))

    async def receive(self, ref: JobRef, entry: JournalEntry, *, epoch: int) -> JournalEntry | None:
        return await self._write(lambda tx: journaling.receive(tx, ref, entry, epoch))

    async def fork_journal(self, ref: JobRef, at: int, to: JobRef) -> int:
        return await self._write(lambda tx: journaling.fork(tx, ref, at, to))

    async def forget_journal(self, ref: JobRef) -> None:
        await self._write(lambda tx: journaling.forget(tx, ref))

    async def signal(self, ref: JobRef, name: str, payload: bytes, *, request: str) -> Delivery:
        return await self._write(
            lambda tx: answer_signal(tx, request, lambda: journaling.signal(tx, ref, name, payload))
        )
