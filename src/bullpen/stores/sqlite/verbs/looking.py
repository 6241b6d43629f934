"""Reading jobs, counts and events."""

from collections.abc import Collection, Sequence

from bullpen.job.events import EventKind
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.state import State
from bullpen.stores.base import ChildPage, Counts, EventPage, JobPage, LogPage
from bullpen.stores.sqlite import looking
from bullpen.stores.sqlite.opened import OpenFile
from bullpen.stores.sqlite.transaction import EVENTS


class Looking(OpenFile):
    async def events(
        self, queue: str, *, after: str | None, limit: int, timeout_ms: int, without: Collection[EventKind] = ()
    ) -> EventPage:
        return await self._look_until(
            timeout_ms if after is not None else 0,
            topic=EVENTS,
            concerns=lambda news: queue in news.told,
            look=lambda: self._file.read(lambda db: looking.events(db, queue, after, limit, without)),
            enough=lambda page: bool(page.events or page.gap or page.is_full),
        )

    async def job(self, ref: JobRef) -> JobRecord:
        return await self._file.read(lambda db: looking.job(db, ref))

    async def look(self, queue: str, ids: Sequence[str]) -> Sequence[JobRecord | None]:
        return await self._file.read(lambda db: looking.look(db, queue, ids))

    async def jobs(
        self, queue: str, state: State, *, limit: int, cursor: str | None = None, newest_first: bool = False
    ) -> JobPage:
        return await self._file.read(
            lambda db: looking.jobs(db, queue, state, limit, cursor, newest_first=newest_first)
        )

    async def children(self, ref: JobRef, *, limit: int = 1_000, cursor: str | None = None) -> ChildPage:
        return await self._file.read(lambda db: looking.children(db, ref, limit, cursor))

    async def logs(self, ref: JobRef, *, start: int = 0, limit: int = 1_000) -> LogPage:
        return await self._file.read(lambda db: looking.logs(db, ref, start, limit))

    async def counts(self, queue: str) -> Counts:
        return await self._file.read(lambda db: looking.counts(db, queue))

    async def queues(self) -> Sequence[str]:
        return await self._file.read(looking.queues)

    async def oldest_waiting_ms(self, queue: str) -> int | None:
        return await self._file.read(lambda db: looking.oldest_waiting_ms(db, queue))
