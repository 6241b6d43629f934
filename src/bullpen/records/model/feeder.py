"""Feeding the read model from the event log of each queue.

    events after the cursor ─▶ fold them, look where they tell too little ─┬▶ one transaction: rows, cursor, lease
    the oldest finished job that is kept ──────────────────────────────────┘

Each queue has its turn, see turns.py; now and then new queues are looked for, and all are compared with the store.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from sqlalchemy import delete, func, select

from bullpen.errors import RecordsError, RecordsUnavailable, StoreError, StoreUnavailable
from bullpen.job.state import State
from bullpen.records.database import Database
from bullpen.records.model.source import Source, Stream
from bullpen.records.model.turns import Turns
from bullpen.records.setbacks import Setbacks
from bullpen.records.stopping import end, wait_for_any
from bullpen.records.tables.model import minute, stream, tally
from bullpen.records.turn_lease import TurnLease, TurnLost
from bullpen.scheduling.pauses import Pauses
from bullpen.stores.base import Store

logger = logging.getLogger("bullpen.records")

_GATHER_S = 0.25
"""Between two turns that leave nothing unread: under load each reads many events, instead of many turns a few each."""
_FINDING_MS = 1_000
"""Between two looks for new queues. `queues` may be slow on a large server: it is asked the less often the slower."""
_FINDING_SHARE = 100
"""It takes no more than one part in so many of the time."""
_SWEEPING_MS = 10_000
"""Retention is not in a hurry."""
_STREAMS = select(stream.c.queue, stream.c.cursor, stream.c.is_scanning, stream.c.scan)


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
        self._lease = TurnLease(database, "read-model")
        self._turns = Turns(database, self._source, self._lease, fields)
        self._streams: dict[str, Stream] = {}
        self._find_ms = 0
        """When to look for new queues again, by the clock that only goes on."""
        self._took_ms = deque([0, 0], maxlen=3)
        """How long the last looks for them took."""
        self._sweep_ms = 0
        self._setbacks = Setbacks(database.clock)
        self._is_ours = False
        self._running: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    # ── running ──────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        if self._running is None:
            # Owned by this feeder; ended and awaited by `stop`.
            self._stopping.clear()
            self._running = asyncio.create_task(self.run(), name="read model")

    async def stop(self) -> None:
        """Stop, and let another take over at once; safe to call twice."""
        running, self._running = self._running, None
        if running is not None:
            await end(running, self._stopping)
            await self._lease.give_back()

    async def run(self) -> None:
        """Feed until stopped or cancelled; what is away is waited for, and so is one's turn."""
        pauses = Pauses(self._look_every, 1.0)
        while not self._stopping.is_set():
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
            if not moved or not any(one.is_behind for one in self._streams.values()):
                pause_s = _GATHER_S if moved else pauses.next_s()
                await wait_for_any(self._stopping, seconds=pause_s)

    def nudge(self) -> None:
        """Look for new queues with the next step: one was just begun."""
        self._find_ms = 0

    async def catch_up(self) -> None:
        """Feed until nothing is left to read, if it is ours to do."""
        self._find_ms = self._sweep_ms = 0
        while await self.step():
            pass

    async def step(self) -> bool:
        """One turn for each queue; whether any had something to tell."""
        try:
            if not await self._is_our_turn():
                return False
            await self._find_queues()
            await self._sweep()
            moved = [await self._apart(one, self._turns.turn) for one in list(self._streams.values())]
        except TurnLost:
            self._is_ours = False
            return False
        except BaseException:
            # What was in hand may be ahead of what was written: begin again from there.
            self._is_ours = False
            raise
        return any(moved)

    async def _is_our_turn(self) -> bool:
        if not self._is_ours and await self._lease.take():
            await self._turns.begin()
            async with self._database.reading() as connection:
                self._streams = {row.queue: Stream(*row) for row in await connection.execute(_STREAMS)}
            self._is_ours, self._find_ms, self._sweep_ms = True, 0, 0
        return self._is_ours

    async def _apart(self, one: Stream, act: Callable[[Stream], Awaitable[bool]]) -> bool:
        """What goes wrong in one queue, such as with a job that another program wrote, stays there."""
        if self._setbacks.is_resting(one.queue):
            return False
        try:
            moved = await act(one)
        except (TurnLost, StoreError, RecordsError):
            raise
        except Exception:
            logger.exception("the read model cannot go on with queue %s, trying again later", one.queue)
            self._setbacks.note(one.queue)
            await self._begin_again(one.queue)
            return False
        self._setbacks.end(one.queue)
        return moved

    async def _begin_again(self, queue: str) -> None:
        """From what was written: what is in hand may be ahead of that."""
        await self._turns.begin_again(queue)
        async with self._database.reading() as connection:
            row = (await connection.execute(_STREAMS.where(stream.c.queue == queue))).one_or_none()
        self._streams[queue] = Stream(queue) if row is None else Stream(*row)

    # ── now and then ─────────────────────────────────────────────────────────────────────

    async def _find_queues(self) -> None:
        clock = self._database.clock
        begun_ms = clock.mono_ms()
        if self._find_ms and begun_ms < self._find_ms:
            return
        for queue in await self._source.store.queues() if self._queues is None else self._queues:
            self._streams.setdefault(queue, Stream(queue))
        ended_ms = clock.mono_ms()
        self._took_ms.append(ended_ms - begun_ms)
        # By the quickest of them: one that took long, in a busy moment, says nothing of the store.
        self._find_ms = ended_ms + max(_FINDING_MS, min(self._took_ms) * _FINDING_SHARE)

    async def _sweep(self) -> None:
        """What retention took, what changed in silence, minutes that are old."""
        now_ms, mono_ms = self._database.clock.now_ms(), self._database.clock.mono_ms()
        if self._sweep_ms and mono_ms < self._sweep_ms:
            return
        for one in list(self._streams.values()):
            await self._apart(one, self._sweep_queue)
        async with self._database.writing() as connection:
            await self._lease.renew(connection)
            await connection.execute(delete(minute).where(minute.c.minute_ms < now_ms - self._keep_minutes_ms))
        self._sweep_ms = mono_ms + _SWEEPING_MS

    async def _sweep_queue(self, one: Stream) -> bool:
        await self._turns.sweep(one)
        await self._compare(one)
        return False

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

    # ── by order ─────────────────────────────────────────────────────────────────────────

    async def rescan(self) -> None:
        """Look at every job again, from the next turn on."""
        for one in self._streams.values():
            one.is_scanning, one.scan = True, one.scan + 1

    async def forget(self, queue: str) -> None:
        """Drop all that is known of a queue."""
        self._streams.pop(queue, None)
        await self._turns.forget(queue)
