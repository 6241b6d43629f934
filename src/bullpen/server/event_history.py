"""What the event log still tells of one job.

A log is read from its oldest event on once for a job that somebody looks at, and from there on only
what is new: a page that is open asks again with everything that happens to its job.
"""

from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from bullpen.job.events import Event, EventKind
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.state import FINISHED, State
from bullpen.stores.base import FROM_START, Store

_PAGE = 1_000
_PAGES = 10
"""Of a log that is longer, the rest is read when somebody asks again."""
_JOBS = 500
_UNTOLD = frozenset({EventKind.PROGRESS, EventKind.DUPLICATED, EventKind.DEDUPLICATED})


class _Read(msgspec.Struct, frozen=True):
    cursor: str = FROM_START
    events: tuple[Event, ...] = ()


class Past:
    """Finds the events of single jobs; remembers those of the jobs that were asked about last."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: OrderedDict[JobRef, _Read] = OrderedDict()

    async def events(self, job: JobRecord) -> Sequence[Event]:
        """In order, from the job's last adding on; none where the job's own record tells it all."""
        if not _has_past(job):
            return ()
        read = self._read.pop(job.ref, _Read())
        for _ in range(_PAGES):
            page = await self._store.events(job.queue, after=read.cursor, limit=_PAGE, timeout_ms=0)
            # After a gap one cannot say what lay between: what was known before is of no use.
            known = () if page.gap else read.events
            read = _Read(page.cursor, _joined(known, page.events, job.id))
            if len(page.events) < _PAGE:
                self._remember(job.ref, read)
                return read.events
        self._remember(job.ref, read)
        return ()

    def _remember(self, ref: JobRef, read: _Read) -> None:
        self._read[ref] = read
        while len(self._read) > _JOBS:
            self._read.popitem(last=False)


def _has_past(job: JobRecord) -> bool:
    """Most jobs are claimed once and end: then there is nothing that the record does not have."""
    if job.epoch == 0:
        return False
    return job.epoch > 1 or job.state not in (State.ACTIVE, *FINISHED)


def _joined(known: tuple[Event, ...], page: Sequence[Event], job_id: str) -> tuple[Event, ...]:
    found = list(known)
    for event in page:
        if event.job_id == job_id and event.kind not in _UNTOLD:
            if event.kind is EventKind.ADDED:
                found.clear()  # an id that was used before: that was another job
            found.append(msgspec.structs.replace(event, value=None))
    return tuple(found)
