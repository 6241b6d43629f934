"""Reading jobs, counts and events."""

from collections.abc import Collection, Sequence

from bullpen.job.events import EventKind
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.state import State
from bullpen.stores.base import ChildPage, Counts, EventPage, JobPage, LogPage
from bullpen.stores.redis import families, looking
from bullpen.stores.redis.eventlog import EventLog
from bullpen.stores.redis.opened import OpenSite


class Looking(OpenSite):
    async def job(self, ref: JobRef) -> JobRecord:
        return await looking.job(self._site, ref)

    async def look(self, queue: str, ids: Sequence[str]) -> Sequence[JobRecord | None]:
        return await looking.look(self._site, queue, ids)

    async def jobs(
        self, queue: str, state: State, *, limit: int, cursor: str | None = None, newest_first: bool = False
    ) -> JobPage:
        return await looking.jobs(self._site, queue, state, limit, cursor, newest_first=newest_first)

    async def logs(self, ref: JobRef, *, start: int = 0, limit: int = 1_000) -> LogPage:
        return await looking.logs(self._site, ref, start, limit)

    async def children(self, ref: JobRef, *, limit: int = 1_000, cursor: str | None = None) -> ChildPage:
        return await families.children(self._site, ref, limit, cursor)

    async def counts(self, queue: str) -> Counts:
        return await looking.counts(self._site, queue)

    async def queues(self) -> Sequence[str]:
        return await looking.queues(self._site)

    async def oldest_waiting_ms(self, queue: str) -> int | None:
        return await looking.oldest_waiting_ms(self._site, queue)

    async def events(
        self, queue: str, *, after: str | None, limit: int, timeout_ms: int, without: Collection[EventKind] = ()
    ) -> EventPage:
        log = EventLog(self._connection, self._keys.events(queue), frozenset(without))
        return await log.read(after, limit, timeout_ms)
