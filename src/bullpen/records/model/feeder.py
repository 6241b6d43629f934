"""Feeding the read model from the event log of each queue.

    events after the cursor ─▶ ids that changed ─▶ look at them ─┬▶ one transaction: rows, cursor, lease
    the oldest finished job that is kept ────────────────────────┘

- **A gap** in the log means that changes were missed: the queue is scanned, state by state, while its
  events go on being read; what the scan did not meet is looked at one by one in the end. A
  process that dies meanwhile leaves the mark that the scan is not done.
- **Retention** tells no events. It takes the oldest finished jobs first, so all that finished before
  the oldest one that is kept is gone.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence

from sqlalchemy import delete, func, select, update

from bullpen.errors import RecordsUnavailable, StoreUnavailable
from bullpen.job.events import Event, EventKind
from bullpen.job.record import JobRecord
from bullpen.job.state import FINISHED, State
from bullpen.records.database import Database
from bullpen.records.model.lease import LostTheModel, ModelLease
from bullpen.records.model.source import EVENTS, JOBS, SCANNED, Looked, Source, Stream
from bullpen.records.model.sql import insert_for
from bullpen.records.model.writer import ModelWriter
from bullpen.records.tables.model import job as job_table
from bullpen.records.tables.model import minute, stream, tally
from bullpen.scheduling.pauses import Pauses
from bullpen.stores.base import Store

logger = logging.getLogger("bullpen.records")

_ROUNDS = 5
"""Pages of one queue before the next has its turn."""
_FINDING_MS = 10_000
"""`queues` may be slow on a large server, and retention is not in a hurry."""
_TELLING = {EventKind.COMPLETED: State.COMPLETED, EventKind.FAILED: State.FAILED}


class ModelFeeder:
    """Keeps the read model of a store's queues up to date. Of several, on any machines, one at a time does.

    `fields` are the names of data fields that lists show and search finds: none unless you say so,
    since data may be nobody's business.
    """

    def __init__(
        self,
        database: Database,
        store: Store,
        *,
        queues: Sequence[str] | None = None,
        fields: Sequence[str] = (),
        keep_minutes_ms: int = 7 * 86_400_000,
        look_every: float = 0.1,
    ) -> None:
        self._database = database
        self._source = Source(store)
        self._queues = None if queues is None else list(queues)
        self._keep_minutes_ms = keep_minutes_ms
        self._look_every = look_every
        self._lease = ModelLease(database)
        self._writer = ModelWriter(database, fields)
        self._streams: dict[str, Stream] = {}
        self._scans: dict[str, AsyncIterator[None]] = {}
        """Those that are not done."""
        self._found_ms: int | None = None
        self._is_ours = False
        self._running: asyncio.Task[None] | None = None

    # ── running ──────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        if self._running is None:
            # Owned by this feeder; ended and awaited by `stop`.
            self._running = asyncio.create_task(self.run(), name="read model")

    async def stop(self) -> None:
        """Stop, and let another take over at once; safe to call twice."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await self._lease.give_back()

    async def run(self) -> None:
        """Feed until cancelled; what is away is waited for, and so is one's turn."""
        pauses = Pauses(self._look_every, 1.0)
        while True:
            try:
                moved = await self.step()
            except (StoreUnavailable, RecordsUnavailable) as error:
                logger.warning("the read model cannot go on, trying again: %s", error)
                moved = False
            except Exception:
                # Whatever it is, pages that grow stale in silence are worse; it begins again from what was written.
                logger.exception("the read model met an error, trying again")
                moved = False
            if moved:
                pauses.begin_anew()
            else:
                await asyncio.sleep(pauses.next_s())

    async def catch_up(self) -> None:
        """Feed until nothing is left to read, if it is ours to do."""
        self._found_ms = None
        while await self.step():
            pass

    async def step(self) -> bool:
        """One turn for each queue; whether any had something to tell."""
        try:
            if not await self._is_our_turn():
                return False
            await self._find_queues()
            moved = [await self._turn(one) for one in list(self._streams.values())]
        except LostTheModel:
            self._is_ours = False
            return False
        except BaseException:
            # What was in hand may be ahead of what was written: begin again from there.
            self._is_ours = False
            raise
        return any(moved)

    async def _is_our_turn(self) -> bool:
        if not self._is_ours and await self._lease.take():
            await self._writer.begin()
            async with self._database.reading() as connection:
                query = select(stream.c.queue, stream.c.cursor, stream.c.is_scanning, stream.c.scan)
                self._streams = {row.queue: Stream(*row) for row in await connection.execute(query)}
            self._scans = {}
            self._is_ours, self._found_ms = True, None
        return self._is_ours

    async def _find_queues(self) -> None:
        """Now and then: new queues, what retention took, minutes that are old."""
        now_ms = self._database.clock.now_ms()
        if self._found_ms is not None and now_ms - self._found_ms < _FINDING_MS:
            return
        for queue in await self._source.store.queues() if self._queues is None else self._queues:
            self._streams.setdefault(queue, Stream(queue))
        for one in list(self._streams.values()):
            await self._write(one, {}, swept=FINISHED)
            await self._compare(one)
        async with self._database.writing() as connection:
            await self._lease.renew(connection)
            await connection.execute(delete(minute).where(minute.c.minute_ms < now_ms - self._keep_minutes_ms))
        self._found_ms = now_ms

    async def _compare(self, one: Stream) -> None:
        """Count as the store counts: what told no event (a queue removed, a priority changed) is found so."""
        counts = await self._source.counts(one.queue)
        if counts is None:
            await self.forget(one.queue)
            return
        page = await self._source.events(one.queue, one.cursor)
        if one.is_scanning or page.events or page.gap:
            return  # it is about to change: another time
        query = select(tally.c.state, func.sum(tally.c.jobs)).where(tally.c.queue == one.queue).group_by(tally.c.state)
        async with self._database.reading() as connection:
            known = {state: int(jobs) for state, jobs in await connection.execute(query)}
        if any(getattr(counts, state.value.replace("-", "_")) != known.get(state.value, 0) for state in State):
            one.is_scanning, one.scan = True, one.scan + 1

    # ── one queue ────────────────────────────────────────────────────────────────────────

    async def _turn(self, one: Stream) -> bool:
        moved = await self._read_events(one)
        if not one.is_scanning:
            return moved
        # Between its pages events are read and other queues have their turns, or their logs would run over.
        scan = self._scans.setdefault(one.queue, self._scan(one))
        async for _ in scan:
            return True
        del self._scans[one.queue]
        return True

    async def _read_events(self, one: Stream) -> bool:
        moved = False
        for _ in range(_ROUNDS):
            page = await self._source.events(one.queue, one.cursor)
            is_all = len(page.events) < EVENTS
            if page.gap:
                one.is_scanning, one.scan = True, one.scan + 1
            if page.events or page.gap or page.cursor != one.cursor:
                one.cursor = page.cursor
                await self._take(one, page.events, is_all=is_all)
                moved = True
            elif not one.is_scanning:
                await self._note_caught_up(one)
            if is_all:
                break
        return moved

    async def _take(self, one: Stream, events: Sequence[Event], *, is_all: bool) -> None:
        ids = list(dict.fromkeys(event.job_id for event in events if event.job_id is not None))
        swept = {_TELLING[event.kind] for event in events if event.kind in _TELLING}
        if any(event.kind is EventKind.CLEANED for event in events):
            swept = set(FINISHED)
        looked = await self._source.look(one.queue, ids)
        await self._write(one, looked, events=events, swept=swept, is_all=is_all)

    async def _write(
        self,
        one: Stream,
        looked: Mapping[str, JobRecord | None],
        *,
        events: Sequence[Event] = (),
        swept: set[State] | frozenset[State] = frozenset(),
        is_all: bool = False,
    ) -> None:
        """Rows, cursor and lease in one transaction; the store was asked before it begins."""
        oldest = {state: await self._source.oldest(one.queue, state) for state in swept}
        looked = {**looked, **await self._ties(one.queue, oldest, looked)}
        async with self._database.writing() as connection:
            await self._lease.renew(connection)
            await self._writer.apply(connection, one.queue, looked, scan=one.scan, events=events)
            for state, job in oldest.items():
                before_ms = None if job is None else job.finished_ms or 0
                await self._writer.drop(connection, one.queue, state, before_ms=before_ms)
            now_ms = self._database.clock.now_ms()
            values = {"cursor": one.cursor, "is_scanning": one.is_scanning, "scan": one.scan}
            if events:
                values["event_ms"] = events[-1].at_ms
            if is_all and not one.is_scanning:
                values["caught_up_ms"] = now_ms
            new = insert_for(self._database, stream).values(queue=one.queue, **values)
            await connection.execute(new.on_conflict_do_update(index_elements=[stream.c.queue], set_=values))

    async def _ties(
        self, queue: str, oldest: Mapping[State, JobRecord | None], known: Mapping[str, JobRecord | None]
    ) -> Looked:
        """Jobs that finished in the same millisecond as the oldest one that is kept: they may be gone or not."""
        ids: list[str] = []
        async with self._database.reading() as connection:
            for state, job in oldest.items():
                if job is not None:
                    is_tie = (job_table.c.queue == queue) & (job_table.c.state == state.value)
                    is_tie &= job_table.c.finished_ms == job.finished_ms
                    ids += (await connection.execute(select(job_table.c.id).where(is_tie).limit(JOBS))).scalars()
        return await self._source.look(queue, [job_id for job_id in ids if job_id not in known])

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

    async def rescan(self) -> None:
        """Look at every job again, from the next turn on."""
        for one in self._streams.values():
            one.is_scanning, one.scan = True, one.scan + 1

    async def forget(self, queue: str) -> None:
        """Drop all that is known of a queue."""
        self._streams.pop(queue, None)
        self._scans.pop(queue, None)
        async with self._database.writing() as connection:
            await self._lease.renew(connection)
            for state in State:
                await self._writer.drop(connection, queue, state.value, before_ms=None)
            for table in (stream, minute, tally):
                await connection.execute(delete(table).where(table.c.queue == queue))
