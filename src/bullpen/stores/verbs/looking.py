"""Reading jobs, counts and events."""

from collections.abc import Collection, Sequence
from typing import Protocol

from bullpen.job.events import EventKind
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.state import State
from bullpen.stores.answers import ChildPage, Counts, EventPage, JobPage, LogPage


class Looking(Protocol):
    async def job(self, ref: JobRef) -> JobRecord:
        """The job, or JobMissing."""

    async def look(self, queue: str, ids: Sequence[str]) -> Sequence[JobRecord | None]:
        """The jobs of these ids in one trip, each as `job` tells it; None for one that is not there.

        Costs the same however many jobs wait. For whoever keeps a picture of many jobs up to date.
        """

    async def jobs(
        self, queue: str, state: State, *, limit: int, cursor: str | None = None, newest_first: bool = False
    ) -> JobPage:
        """Jobs of one state, in the order in which they will run or did finish.

        Those that wait in groups come after the others, by priority and first in, first out,
        whatever their group: whose turn it will be is not foretold.
        """

    async def logs(self, ref: JobRef, *, start: int = 0, limit: int = 1_000) -> LogPage: ...

    async def children(self, ref: JobRef, *, limit: int = 1_000, cursor: str | None = None) -> ChildPage:
        """The job's children and what became of each, also of those that are gone; in no special order.

        A page may have some more than asked. A child that ends between two pages may be told twice.
        """

    async def counts(self, queue: str) -> Counts:
        """How many jobs are in each state; QueueMissing if there never was such a queue."""

    async def queues(self) -> Sequence[str]:
        """The names of all queues, sorted. One that only another program touched may be missing for minutes."""

    async def oldest_waiting_ms(self, queue: str) -> int | None:
        """Since when the next runnable job could have run; None if nothing is runnable."""

    async def events(
        self, queue: str, *, after: str | None, limit: int, timeout_ms: int, without: Collection[EventKind] = ()
    ) -> EventPage:
        """The events after a cursor, in order, waiting for the first one; some kinds may be passed over.

        None starts at the end of the log, FROM_START at its oldest event. Says Gap when events
        after the cursor were dropped. A page that is full comes at once, even if all of it was
        passed over. A cursor that no event gave is BadOption.
        """
