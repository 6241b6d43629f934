"""One queue's turn: the events after its cursor are read, and rows written by what they tell.

- **A look** is taken at each job of which the events do not tell enough, see folding.py; at all of them while the
  queue is scanned, and where rows hold fields of the data, which may change in silence.
- **A gap** in the log means that changes were missed: the queue is scanned, state by state, while its
  events go on being read; what the scan did not meet is looked at one by one in the end. A
  process that dies meanwhile leaves the mark that the scan is not done.
- **Retention** tells no events. It takes the oldest finished jobs first, so all that finished before
  the oldest one that is kept is gone.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import MappingProxyType

from sqlalchemy import delete, select, tuple_, update

from bullpen.job.events import Event, EventKind
from bullpen.job.record import JobRecord
from bullpen.job.state import FINISHED, State
from bullpen.records.database import Database
from bullpen.records.model.folding import Folded, ToldJob, fold
from bullpen.records.model.source import JOBS, SCANNED, Source, Stream
from bullpen.records.model.sql import insert_for
from bullpen.records.model.writer import ModelWriter
from bullpen.records.tables.model import job as job_table
from bullpen.records.tables.model import minute, reason, stream, tally
from bullpen.records.turn_lease import TurnLease
from bullpen.stores.base import EventPage

_ROUNDS = 5
"""Pages of one queue before the next has its turn."""
_SCAN_WAITS = 10
"""Turns in which a scan waits for the events to be read, at most."""
_MINUTES_AT_ONCE = 1_000
_TELLING = {EventKind.COMPLETED: State.COMPLETED, EventKind.FAILED: State.FAILED}


class Turns:
    """Whoever has the lease gives each queue its turns."""

    def __init__(self, database: Database, source: Source, lease: TurnLease, fields: Sequence[str]) -> None:
        self._database = database
        self._source = source
        self._lease = lease
        self._writer = ModelWriter(database, fields)
        self._has_fields = bool(fields)
        self._scans: dict[str, AsyncIterator[None]] = {}
        """Those that are not done."""
        self._firsts: dict[tuple[str, State], tuple[str, int | None] | None] = {}
        """Of each queue and finished state the oldest job that was kept when all that ended with it were looked at."""

    async def begin(self) -> None:
        """After the lease was taken."""
        await self._writer.begin()
        self._scans = {}
        self._firsts = {}

    async def begin_again(self, queue: str) -> None:
        """After something went wrong there: what is known of it may not be what was written."""
        await self._writer.begin()
        self._scans.pop(queue, None)
        self._firsts = {place: first for place, first in self._firsts.items() if place[0] != queue}

    async def turn(self, one: Stream) -> bool:
        """Whether there was something to tell; `is_behind` says whether something is left unread."""
        one.is_behind = False
        moved = await self._read_events(one)
        if not one.is_scanning:
            return moved
        if one.is_behind and one.waits < _SCAN_WAITS:
            # What is unread tells of most that a scan would look for.
            one.waits += 1
            return True
        one.is_behind, one.waits = True, 0
        # Between its pages events are read and other queues have their turns, or their logs would run over.
        scan = self._scans.setdefault(one.queue, self._scan(one))
        async for _ in scan:
            return True
        del self._scans[one.queue]
        return True

    async def sweep(self, one: Stream) -> None:
        """Drop what retention took."""
        await self._write(one, {}, oldest=await self._oldest(one.queue, FINISHED))

    async def forget(self, queue: str) -> None:
        """Drop all that is known of a queue; what stands in `stream` goes last, so that another ends what is begun."""
        self._scans.pop(queue, None)
        for state in State:
            await self._drop(queue, state, before_ms=None)
        await self._drop_minutes(queue)
        async with self._database.writing() as connection:
            await self._lease.renew(connection)
            for table in (stream, tally, reason):
                await connection.execute(delete(table).where(table.c.queue == queue))

    async def _drop(self, queue: str, state: State, *, before_ms: int | None) -> None:
        """Some rows in each transaction: others can write in between."""
        is_more = True
        while is_more:
            async with self._database.writing() as connection:
                await self._lease.renew(connection)
                is_more = await self._writer.drop(connection, queue, state.value, before_ms=before_ms)

    async def _drop_minutes(self, queue: str) -> None:
        key = (minute.c.tenant, minute.c.minute_ms)
        some = select(*key).where(minute.c.queue == queue).limit(_MINUTES_AT_ONCE)
        is_some = (minute.c.queue == queue) & tuple_(*key).in_(some)
        dropped = _MINUTES_AT_ONCE
        while dropped == _MINUTES_AT_ONCE:
            async with self._database.writing() as connection:
                await self._lease.renew(connection)
                dropped = (await connection.execute(delete(minute).where(is_some))).rowcount

    # ── reading ──────────────────────────────────────────────────────────────────────────

    async def _read_events(self, one: Stream) -> bool:
        moved = is_written = False
        for _ in range(_ROUNDS):
            page = await self._source.events(one.queue, one.cursor)
            if page.gap:
                one.is_scanning, one.scan = True, one.scan + 1
            if page.cursor != one.cursor or page.events or page.gap:
                moved, one.cursor = True, page.cursor
                # What changes no row can wait for the end of the turn.
                if is_written := bool(page.events or page.gap):
                    await self._take(one, page)
            if not page.is_full:
                break
        else:
            one.is_behind = True
        if moved and not is_written:
            await self._write(one, {}, is_all=not one.is_behind)
        elif not moved and not one.is_scanning:
            await self._note_caught_up(one)
        return moved

    async def _take(self, one: Stream, page: EventPage) -> None:
        events = page.events
        folded = await self._fold(one, events)
        swept = {_TELLING[event.kind] for event in events if event.kind in _TELLING}
        if any(event.kind is EventKind.CLEANED for event in events):
            swept = set(FINISHED)
        # Before the look: so what is found to be there was there as long as these were the oldest.
        oldest = await self._oldest(one.queue, swept)
        looked = dict.fromkeys(folded.gone) | await self._source.look(one.queue, folded.unclear)
        await self._write(one, looked, told=folded.told, events=events, oldest=oldest, is_all=not page.is_full)

    async def _fold(self, one: Stream, events: Sequence[Event]) -> Folded:
        """What the events tell by themselves."""
        if self._has_fields:
            return Folded(unclear=list(dict.fromkeys(event.job_id for event in events if event.job_id is not None)))
        folded = fold(events)
        changed = [job_id for job_id, told in folded.told.items() if told.added is None]
        known = await self._writer.known(one.queue, changed, scan=one.scan)
        unknown = {job_id: folded.told.pop(job_id) for job_id in changed if job_id not in known}
        if unknown:
            # After a gap many jobs are unknown, and most that ended since are gone already.
            kept_from = await self._source.oldest(one.queue, State.COMPLETED)
            folded.gone += _not_kept(unknown, {State.COMPLETED: kept_from})
            folded.unclear += unknown.keys() - set(folded.gone)
        return folded

    async def _write(
        self,
        one: Stream,
        looked: Mapping[str, JobRecord | None],
        *,
        told: Mapping[str, ToldJob] = MappingProxyType({}),
        events: Sequence[Event] = (),
        oldest: Mapping[State, JobRecord | None] = MappingProxyType({}),
        is_all: bool = False,
    ) -> None:
        """Rows, cursor and lease in one transaction; the store was asked before it begins.

        Where more is gone than a transaction should drop, the rest follows: who dies in between leaves it to the sweep.
        """
        looked = {**looked, **dict.fromkeys(_not_kept(told, oldest))}
        looked = {**looked, **dict.fromkeys(await self._lost_ties(one.queue, oldest, looked, told))}
        told = {job_id: what for job_id, what in told.items() if job_id not in looked}
        async with self._database.writing() as connection:
            await self._lease.renew(connection)
            await self._writer.apply(connection, one.queue, looked, told=told, scan=one.scan, events=events)
            befores = {state: None if job is None else job.finished_ms or 0 for state, job in oldest.items()}
            left = [
                state
                for state, before_ms in befores.items()
                if await self._writer.drop(connection, one.queue, state, before_ms=before_ms)
            ]
            now_ms = self._database.clock.now_ms()
            values = {"cursor": one.cursor, "is_scanning": one.is_scanning, "scan": one.scan}
            if events:
                values["event_ms"] = events[-1].at_ms
            if is_all and not one.is_scanning:
                values["caught_up_ms"] = now_ms
            new = insert_for(self._database, stream).values(queue=one.queue, **values)
            await connection.execute(new.on_conflict_do_update(index_elements=[stream.c.queue], set_=values))
        for state in left:
            await self._drop(one.queue, state, before_ms=befores[state])
        await self._writer.analyze_if_grown()

    async def _oldest(self, queue: str, states: Iterable[State]) -> dict[State, JobRecord | None]:
        return {state: await self._source.oldest(queue, state) for state in states}

    async def _lost_ties(
        self,
        queue: str,
        oldest: Mapping[State, JobRecord | None],
        known: Mapping[str, JobRecord | None],
        told: Mapping[str, ToldJob],
    ) -> list[str]:
        """Of the jobs that finished in the same millisecond as the oldest one that is kept, those that are gone."""
        firsts = {(state, job.finished_ms) for state, job in oldest.items() if job is not None}
        ids = [job_id for job_id, one in told.items() if (one.state, one.finished_ms) in firsts]
        async with self._database.reading(brief=True) as connection:
            for state, job in oldest.items():
                if job is None:
                    continue
                first = job.id, job.finished_ms
                # As long as it is the oldest, nothing that ended with it was taken since it was looked at.
                if self._firsts.get((queue, state)) == first:
                    continue
                is_tie = (job_table.c.queue == queue) & (job_table.c.state == state.value)
                is_tie &= job_table.c.finished_ms == job.finished_ms
                query = select(job_table.c.id).where(is_tie).limit(JOBS + 1)
                ties = (await connection.execute(query)).scalars().all()
                ids += ties
                self._firsts[queue, state] = first if len(ties) <= JOBS else None
        there = {job.id for job in oldest.values() if job is not None}
        unsure = [job_id for job_id in dict.fromkeys(ids) if job_id not in known and job_id not in there]
        return [job_id for job_id, job in (await self._source.look(queue, unsure)).items() if job is None]

    async def _note_caught_up(self, one: Stream) -> None:
        """That nothing happened is news too, once a second."""
        now_ms = self._database.clock.now_ms()
        is_old = (stream.c.queue == one.queue) & (
            stream.c.caught_up_ms.is_(None) | (stream.c.caught_up_ms < now_ms - 1_000)
        )
        async with self._database.reading() as connection:
            if (await connection.execute(select(stream.c.queue).where(is_old))).first() is None:
                return
        async with self._database.writing() as connection:
            await self._lease.renew(connection)
            await connection.execute(update(stream).where(is_old).values(caught_up_ms=now_ms))

    # ── scanning ─────────────────────────────────────────────────────────────────────────

    async def _scan(self, one: Stream) -> AsyncIterator[None]:
        """Look at every job of the queue, and at every row that was not met; a page at a time."""
        scan = one.scan
        for state in SCANNED:
            cursor: str | None = None
            while True:
                page = await self._source.jobs(one.queue, state, cursor)
                await self._write(one, {job.id: job for job in page.jobs})
                yield
                cursor = page.next_cursor
                if cursor is None:
                    break
        while unmet := await self._unmet(one.queue, scan):
            await self._write(one, await self._source.look(one.queue, unmet))
            yield
        # A gap that came meanwhile asks for another one.
        if one.scan == scan:
            one.is_scanning = False
            await self._write(one, {})

    async def _unmet(self, queue: str, scan: int) -> list[str]:
        query = select(job_table.c.id).where((job_table.c.queue == queue) & (job_table.c.scan < scan)).limit(JOBS)
        async with self._database.reading() as connection:
            return list((await connection.execute(query)).scalars())


def _not_kept(told: Mapping[str, ToldJob], oldest: Mapping[State, JobRecord | None]) -> list[str]:
    """Jobs that finished before the oldest one that is kept, so that they need no row to begin with."""
    gone = []
    for job_id, one in told.items():
        if one.state is not None and one.state in oldest and one.finished_ms is not None:
            first = oldest[one.state]
            if first is None or one.finished_ms < (first.finished_ms or 0):
                gone.append(job_id)
    return gone
