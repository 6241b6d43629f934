"""What the feeder asks the queue's store."""

from collections.abc import Sequence

import msgspec

from bullpen.errors import BadOption, QueueMissing
from bullpen.job.events import EventKind
from bullpen.job.record import JobRecord
from bullpen.job.state import State
from bullpen.stores.base import FROM_START, Counts, EventPage, JobPage, Store

EVENTS = 2_000
JOBS = 500
_OF_NO_ROW = frozenset({EventKind.PROGRESS})
"""What changes no row: how far a job has come, which it may tell many times a second."""

Looked = dict[str, JobRecord | None]
"""Jobs by their ids as they are now; None for one that is gone."""

SCANNED = (
    State.WAITING_CHILDREN,
    State.DELAYED,
    State.PRIORITIZED,
    State.WAITING,
    State.ACTIVE,
    State.COMPLETED,
    State.FAILED,
)
"""In the order of a job's life, so that few slip by; those that do have told an event meanwhile."""
_NOTHING = JobPage((), None)


class Stream(msgspec.Struct):
    """How far a queue was read, and whether it is to be scanned."""

    queue: str
    cursor: str = FROM_START
    is_scanning: bool = True
    scan: int = 1
    is_behind: bool = False
    """Whether its last turn left something unread."""
    waits: int = 0
    """For how many turns its scan has waited for the events to be read."""


class Source:
    def __init__(self, store: Store) -> None:
        self.store = store

    async def events(self, queue: str, cursor: str) -> EventPage:
        try:
            return await self.store.events(queue, after=cursor, limit=EVENTS, timeout_ms=0, without=_OF_NO_ROW)
        except BadOption:
            # The queue was removed and begun anew: its log does not know our place.
            end = await self.store.events(queue, after=None, limit=1, timeout_ms=0)
            return EventPage((), end.cursor, gap=True)

    async def look(self, queue: str, ids: Sequence[str]) -> Looked:
        looked: Looked = {}
        for start in range(0, len(ids), JOBS):
            some = ids[start : start + JOBS]
            looked |= dict(zip(some, await self.store.look(queue, some), strict=True))
        return looked

    async def jobs(self, queue: str, state: State, cursor: str | None = None, *, limit: int = JOBS) -> JobPage:
        """A page of a state; nothing of a queue that is not there."""
        try:
            return await self.store.jobs(queue, state, limit=limit, cursor=cursor)
        except QueueMissing:
            return _NOTHING

    async def oldest(self, queue: str, state: State) -> JobRecord | None:
        """The first of a finished state that retention would take."""
        page = await self.jobs(queue, state, limit=1)
        return page.jobs[0] if page.jobs else None

    async def counts(self, queue: str) -> Counts | None:
        """None for a queue that is not there."""
        try:
            return await self.store.counts(queue)
        except QueueMissing:
            return None
