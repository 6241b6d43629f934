"""The relay: moves rows of an outbox to the queue's store, each to exactly one job.

    hold rows, note the first try ──▶ add the jobs, each under its row's id ──▶ delete the rows

A relay that dies after the add leaves rows whose jobs are there; they are sent again, and the store
answers that the id is taken. It remembers an explicit id for a day after the add, also when the job
has run and was pruned. So a row may be sent again for less than a day after it was first tried. A
row that is older, whose try ended nobody knows how (no relay ran for a day), is not added blindly: if
its job is still there all is well, and if not, nobody can tell whether it ran. It is kept as a
problem for a person, who sends it again or discards it.

Holding a row only saves work: if two relays send the same row, the second add is a duplicate.
Removing by hand a job whose row is not deleted yet makes the store forget its id; such a job may
come again. A job that is deduplicated by subject is added or not as the store says at that moment.
"""

import asyncio
import logging
import uuid
from collections.abc import Sequence
from typing import Self

import msgspec
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.errors import BadData, BullpenError, GroupFull, JobMissing, StoreError, StoreFull
from bullpen.job.record import JobRef
from bullpen.job.spec import NewJob
from bullpen.queue.trips import add_jobs
from bullpen.records.outbox import job_of
from bullpen.records.outbox_rows import HeldRow, OutboxProblem, OutboxRows, OutboxStanding
from bullpen.records.stopping import end, wait_for_any
from bullpen.scheduling.pauses import Pauses
from bullpen.stores.base import ID_MEMORY_MS, Store

logger = logging.getLogger("bullpen.records")

_MARGIN_MS = 3_600_000
"""Clocks differ, and a process may be held up between its look at the clock and its add."""
_SURE_MS = ID_MEMORY_MS - _MARGIN_MS


class OutboxRelay:
    """Moves what is written to an outbox to the queue's store. Several may run at once.

        async with OutboxRelay(engine, pen.store):
            await worker.run()

    It runs beside a worker, in the server, or alone. `engine` is that of the database with the
    outbox, async or not; neither it nor the store is closed here.
    """

    def __init__(
        self,
        engine: AsyncEngine | Engine,
        store: Store,
        *,
        batch: int = 200,
        look_every: float = 0.25,
        hold_ms: int = 30_000,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.rows = OutboxRows(engine)
        self._store = store
        self._batch = batch
        self._look_every = look_every
        self._hold_ms = hold_ms
        self._clock = clock
        self._nudged = asyncio.Event()
        self._stopping = asyncio.Event()
        self._is_away = False
        self._running: asyncio.Task[None] | None = None

    # ── running ──────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def start(self) -> None:
        if self._running is None:
            # Owned by this relay; ended and awaited by `stop`.
            self._stopping.clear()
            self._running = asyncio.create_task(self.run(), name="outbox relay")

    async def stop(self) -> None:
        """Stop; safe to call twice. What was under way is taken up by the next relay."""
        running, self._running = self._running, None
        if running is not None:
            await end(running, self._stopping)

    def nudge(self) -> None:
        """Look at once: this process has just committed a row."""
        self._nudged.set()

    async def run(self) -> None:
        """Relay until stopped or cancelled; what is away is waited for."""
        pauses = Pauses(0.05, 5.0)
        while not self._stopping.is_set():
            try:
                sent = await self.send()
            except (StoreError, SQLAlchemyError, OSError) as error:
                logger.warning("the outbox relay cannot go on, trying again: %s", type(error).__name__)
                await wait_for_any(self._stopping, seconds=pauses.next_s())
                continue
            except Exception:
                # Whatever it is, rows that nobody sends are worse; they are held for a while, then taken anew.
                logger.exception("the outbox relay met an error, trying again")
                await wait_for_any(self._stopping, seconds=pauses.next_s())
                continue
            pauses.begin_anew()
            if sent < self._batch:
                await self._pause()

    async def _pause(self) -> None:
        # Also when nobody nudged: another process may have written.
        await wait_for_any(self._nudged, self._stopping, seconds=self._look_every)
        self._nudged.clear()

    # ── sending ──────────────────────────────────────────────────────────────────────────

    async def send(self) -> int:
        """Move up to a batch of rows; how many were looked at."""
        await self._be_sure_of_the_store()
        now_ms = self._clock.now_ms()
        rows = await self._hold(now_ms)
        sure = [row for row in rows if now_ms - row.tried_ms < _SURE_MS]
        await self._send_all(sure)
        for row in rows:
            if now_ms - row.tried_ms >= _SURE_MS:
                await self._look_up(row)
        return len(rows)

    async def _be_sure_of_the_store(self) -> None:
        """While the store is away nothing is tried: what was tried, and nobody knows how it ended, is in doubt."""
        if self._is_away:
            await self._store.workers()
            self._is_away = False

    async def _hold(self, now_ms: int) -> list[HeldRow]:
        return await self.rows.hold(uuid.uuid4().hex, limit=self._batch, now_ms=now_ms, hold_ms=self._hold_ms)

    async def _send_all(self, rows: Sequence[HeldRow]) -> None:
        if not rows:
            return
        try:
            await self._add([self._job_of(row) for row in rows])
        except (StoreFull, GroupFull) as error:
            await self._send_apart(rows, error)
        except StoreError:
            self._is_away = True
            await self.rows.put_off([row.number for row in rows], until_ms=self._clock.now_ms(), was_tried=True)
            raise
        except BullpenError as error:
            await self._send_apart(rows, error)
        else:
            await self._settle([row.number for row in rows])

    async def _send_apart(self, rows: Sequence[HeldRow], error: BullpenError) -> None:
        """One row was refused, and with it nothing was added: that is its own trouble, not the others'."""
        if len(rows) > 1:
            for row in rows:
                await self._send_all([row])
        elif isinstance(error, GroupFull | StoreFull):
            # Refused for now, and surely not added.
            until_ms = self._clock.now_ms() + 1_000
            await self.rows.put_off([rows[0].number], until_ms=until_ms, was_tried=False)
        else:
            await self._give_up(rows[0], f"{error.code}: {error}")

    async def _look_up(self, row: HeldRow) -> None:
        """Of a row whose try is so old that the store may have forgotten its id."""
        try:
            await self._store.job(JobRef(row.queue, row.job_id))
        except JobMissing:
            await self._give_up(row, "in doubt: it was tried a day ago, and nobody knows whether the job was added")
        else:
            await self._settle([row.number])

    async def _add(self, jobs: Sequence[NewJob]) -> None:
        await add_jobs(self._store, jobs)

    async def _settle(self, numbers: Sequence[int]) -> None:
        await self.rows.remove(numbers)

    async def _give_up(self, row: HeldRow, problem: str) -> None:
        logger.error("outbox row %s for job %s/%s is not sent: %s", row.number, row.queue, row.job_id, problem)
        await self.rows.set_problem(row.number, problem)

    def _job_of(self, row: HeldRow) -> NewJob:
        """A delay counts from when the row was written, not from when the relay came to it."""
        try:
            job = job_of(row.job)
        except msgspec.DecodeError as error:
            raise BadData(f"the row cannot be read: {error}") from error
        if not job.spec.delay_ms:
            return job
        left_ms = max(0, job.spec.delay_ms - max(0, self._clock.now_ms() - row.written_ms))
        return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, delay_ms=left_ms))

    # ── looking and deciding ─────────────────────────────────────────────────────────────

    async def standing(self) -> OutboxStanding:
        """How many rows wait, since when, and how many have a problem."""
        return await self.rows.standing()

    async def problems(self, *, limit: int = 100) -> list[OutboxProblem]:
        """The rows that a person has to decide on, the oldest first."""
        return await self.rows.problems(limit)

    async def resend(self, number: int) -> JobRef:
        """Send a row with a problem as if it were new: its job, which is told, may run a second time. RecordMissing."""
        ref = await self.rows.resend(number)
        self.nudge()
        return ref

    async def discard(self, number: int) -> JobRef:
        """Drop a row with a problem: its job, which is told, is not added by it. RecordMissing."""
        return await self.rows.discard(number)
