"""From queue events to deliveries.

    events after the cursor ─▶ who is to be told ─▶ add the delivery jobs ─▶ one transaction: cursor, counts, lease

Whoever dies between the add and the transaction leaves events that are read again; their jobs have the
same ids, and the store says that these are taken. So each event becomes each delivery once, however
often the follower dies. The lease only saves work: two at once would add the same jobs.

Who is to be told is asked after the events are read: a subscription that was there before an event
is never missed. Events of the deliveries' own queue are not read, or each delivery would beget another.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from sqlalchemy import delete, select

from bullpen.builtin.counting import Crossed, Tally
from bullpen.builtin.messages import QUEUE, alerting, delivery, told
from bullpen.builtin.subscribers import Subscribers, Watch
from bullpen.errors import BadOption, GroupFull, RecordsError, RecordsUnavailable, StoreError
from bullpen.job.events import Event, EventKind
from bullpen.job.record import JobRecord
from bullpen.job.spec import NewJob
from bullpen.queue.trips import add_jobs
from bullpen.records import turn_lease
from bullpen.records.model.sql import insert_for
from bullpen.records.records import Records
from bullpen.records.setbacks import Setbacks
from bullpen.records.stopping import end, wait_for_any
from bullpen.records.tables.webhooks import webhook_stream
from bullpen.records.turn_lease import TurnLease, TurnLost
from bullpen.scheduling.pauses import Pauses
from bullpen.stores.base import FROM_START, EventPage, Store

logger = logging.getLogger("bullpen.webhooks")

Names = Callable[[], Awaitable[Sequence[str]]]

_EVENTS = 500
_ADDS = 200
_ROUNDS = 5
"""Pages of one queue before the next has its turn."""
_GATHER_S = 0.1
_LONGEST_PAUSE_S = 1.0


class Follower:
    """Turns events into deliveries. Of several, on any machines, one at a time does.

    `names` tells the queues that there are, and is asked every `find_every` seconds.
    """

    def __init__(self, records: Records, store: Store, *, names: Names | None = None, find_every: float = 10) -> None:
        self._records = records
        self._database = records.database
        self._store = store
        self._names = names or store.queues
        self._find_ms = round(find_every * 1000)
        self._lease = TurnLease(self._database, "webhooks")
        self._cursors: dict[str, str] = {}
        self._found: Sequence[str] = ()
        self._found_mono_ms: int | None = None
        self._setbacks = Setbacks(self._database.clock)
        self._is_ours = False
        self._taken_mono_ms = 0
        self._running: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._nudged = asyncio.Event()

    # ── running ──────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        if self._running is None:
            # Owned by this follower; ended and awaited by `stop`.
            self._stopping.clear()
            self._running = asyncio.create_task(self.run(), name="webhooks")

    async def stop(self) -> None:
        """Stop, and let another take over at once; safe to call twice."""
        running, self._running = self._running, None
        if running is not None:
            await end(running, self._stopping)
            await self._lease.give_back()

    def nudge(self) -> None:
        """Look at once: a webhook was just made."""
        self._nudged.set()

    async def run(self) -> None:
        """Follow until stopped or cancelled; what is away is waited for, and so is one's turn."""
        pauses = Pauses(_GATHER_S, _LONGEST_PAUSE_S)
        while not self._stopping.is_set():
            moved = False
            try:
                moved = await self.step()
            except (StoreError, RecordsUnavailable) as error:
                logger.warning("events cannot become deliveries, trying again: %s", error)
            except Exception:
                # Whatever it is, silence would be worse; it begins again from what was written.
                logger.exception("the follower of events met an error, trying again")
            if moved:
                pauses.begin_anew()
            await wait_for_any(self._stopping, self._nudged, seconds=_GATHER_S if moved else pauses.next_s())
            self._nudged.clear()

    async def catch_up(self) -> None:
        """Follow until nothing is left to read, if it is ours to do."""
        self._found_mono_ms = None
        while await self.step():
            pass

    async def step(self) -> bool:
        """One turn for each queue that somebody wants to hear of; whether any had something to tell."""
        try:
            if not await self._is_our_turn():
                return False
            queues = await self._wanted()
            moved = [await self._apart(queue) for queue in queues]
        except TurnLost:
            self._is_ours = False
            return False
        except BaseException:
            # What is in hand may be ahead of what was written: begin again from there.
            self._is_ours = False
            raise
        return any(moved)

    async def _is_our_turn(self) -> bool:
        """The lease is renewed with all that is written, and here while nothing is."""
        mono_ms = self._database.clock.mono_ms()
        if self._is_ours and mono_ms - self._taken_mono_ms < turn_lease.HOLD_MS // 3:
            return True
        was_ours, self._is_ours = self._is_ours, await self._lease.take()
        self._taken_mono_ms = mono_ms
        if self._is_ours and not was_ours:
            async with self._database.reading() as connection:
                rows = await connection.execute(select(webhook_stream.c.queue, webhook_stream.c.cursor))
                self._cursors = {row.queue: row.cursor for row in rows}
            self._found_mono_ms = None
        return self._is_ours

    async def _wanted(self) -> list[str]:
        """The queues that somebody wants to hear of.

        Of all others the place is forgotten: from when on a later subscription is told, it says itself.
        """
        subscribers = await Subscribers.load(self._records)
        named = subscribers.named_queues
        wanted = sorted(await self._all_queues() if named is None else named)
        unwanted = self._cursors.keys() - set(wanted)
        if unwanted:
            async with self._database.writing() as connection:
                await self._lease.renew(connection)
                await connection.execute(delete(webhook_stream).where(webhook_stream.c.queue.in_(unwanted)))
            for queue in unwanted:
                del self._cursors[queue]
        return wanted

    async def _all_queues(self) -> set[str]:
        mono_ms = self._database.clock.mono_ms()
        if self._found_mono_ms is None or mono_ms - self._found_mono_ms >= self._find_ms:
            self._found, self._found_mono_ms = await self._names(), mono_ms
        # One that is followed stays so until it is not wanted: its last events may still be to come.
        return {*self._found, *self._cursors} - {QUEUE}

    # ── one queue ────────────────────────────────────────────────────────────────────────

    async def _apart(self, queue: str) -> bool:
        """What goes wrong in one queue, such as with an event that another program wrote, stays there."""
        if self._setbacks.is_resting(queue):
            return False
        try:
            moved = await self._turn(queue)
        except (TurnLost, StoreError, RecordsError):
            raise
        except Exception:
            logger.exception("events of queue %s cannot become deliveries, trying again later", queue)
            self._setbacks.note(queue)
            return False
        self._setbacks.end(queue)
        return moved

    async def _turn(self, queue: str) -> bool:
        moved = False
        for _ in range(_ROUNDS):
            before = self._cursors.get(queue, FROM_START)
            page = await self._read(queue, before)
            if page.gap:
                logger.warning("events of queue %s were dropped from its log before they became deliveries", queue)
            if page.cursor == before and not page.events:
                return moved
            await self._take(queue, page)
            moved = True
            if len(page.events) < _EVENTS:
                return moved
        return moved

    async def _read(self, queue: str, after: str) -> EventPage:
        try:
            return await self._store.events(queue, after=after, limit=_EVENTS, timeout_ms=0)
        except BadOption:
            # The queue was removed and begun anew: all that its log has is new.
            return await self._store.events(queue, after=FROM_START, limit=_EVENTS, timeout_ms=0)

    async def _take(self, queue: str, page: EventPage) -> None:
        tally = Tally()
        if page.events:
            subscribers = await Subscribers.load(self._records)
            names = await self._names_of_failed(queue, page.events, subscribers.watches)
            async with self._database.reading() as connection:
                crossed = await tally.count(connection, queue, page.events, subscribers.watches, names)
            await self._add(await self._jobs_for(queue, page.events, subscribers, crossed))
        values: dict[str, Any] = {"cursor": page.cursor}
        async with self._database.writing() as connection:
            await self._lease.renew(connection)
            await tally.write(connection, self._database)
            new = insert_for(self._database, webhook_stream).values(queue=queue, **values)
            await connection.execute(new.on_conflict_do_update(index_elements=[webhook_stream.c.queue], set_=values))
        self._cursors[queue] = page.cursor

    async def _jobs_for(
        self, queue: str, events: Sequence[Event], subscribers: Subscribers, crossed: Sequence[Crossed]
    ) -> list[NewJob]:
        telling = [(event, hooks) for event in events if (hooks := subscribers.of(queue, event))]
        known = await self._look(queue, [event for event, _ in telling] + [one.event for one in crossed])
        jobs = [
            delivery(hook, event, told(queue, event, known.get(event.job_id), with_result=hook.with_result))
            for event, hooks in telling
            for hook in hooks
        ]
        for one in crossed:
            summary = told(queue, one.event, known.get(one.event.job_id))
            jobs.append(alerting(one.watch.alert, one.window_ms, one.failed, summary))
        return jobs

    async def _names_of_failed(
        self, queue: str, events: Sequence[Event], watches: Sequence[Watch]
    ) -> dict[str | None, str]:
        """Where an alert asks for a name, which the event of a failure does not tell."""
        if all(watch.condition.name is None for watch in watches):
            return {}
        failed = [event for event in events if event.kind is EventKind.FAILED]
        return {job_id: job.name for job_id, job in (await self._look(queue, failed)).items()}

    async def _look(self, queue: str, events: Sequence[Event]) -> dict[str | None, JobRecord]:
        """The jobs that these are about, as far as they are still there."""
        ids = list(dict.fromkeys(event.job_id for event in events if event.job_id is not None))
        found = await self._store.look(queue, ids) if ids else ()
        return {job.id: job for job in found if job is not None}

    async def _add(self, jobs: Sequence[NewJob]) -> None:
        for start in range(0, len(jobs), _ADDS):
            some = jobs[start : start + _ADDS]
            try:
                await add_jobs(self._store, some)
            except GroupFull:
                await self._add_apart(some)

    async def _add_apart(self, jobs: Sequence[NewJob]) -> None:
        """An operator has limited the line of one receiver, which is not to hold up the others."""
        for job in jobs:
            try:
                await add_jobs(self._store, [job])
            except GroupFull:
                logger.warning("delivery %s is dropped: as many as may wait for this receiver already", job.id)
