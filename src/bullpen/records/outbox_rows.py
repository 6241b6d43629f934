"""The rows of an outbox as a relay handles them, in whatever database they are."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
from sqlalchemy import ColumnElement, Connection, Delete, Engine, Update, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from bullpen.errors import RecordMissing
from bullpen.job.record import JobRef
from bullpen.records.tables.outbox import OutboxRow

T = TypeVar("T")

FOREVER_MS = 2**62
"""Until when a row is held that has a problem."""

_COUNTED = 100_000

_row = OutboxRow.__table__.c


class HeldRow(msgspec.Struct, frozen=True):
    number: int
    job_id: str
    queue: str
    job: bytes
    written_ms: int
    tried_ms: int


class OutboxProblem(msgspec.Struct, frozen=True):
    """A row that no relay will add any more, until a person decides."""

    number: int
    job_id: str
    queue: str
    problem: str
    written_ms: int


class OutboxStanding(msgspec.Struct, frozen=True):
    pending: int
    """Rows whose job is not added yet; no more than 100,000 are counted."""
    oldest_ms: int | None
    """When the oldest of them was written."""
    problems: int


class OutboxRows:
    """Each verb is one transaction, on an engine that is async or not."""

    def __init__(self, engine: AsyncEngine | Engine) -> None:
        self._engine = engine

    async def _run(self, work: Callable[[Connection], T]) -> T:
        if isinstance(self._engine, AsyncEngine):
            async with self._engine.begin() as connection:
                return await connection.run_sync(work)
        return await asyncio.to_thread(self._run_here, self._engine, work)

    @staticmethod
    def _run_here(engine: Engine, work: Callable[[Connection], T]) -> T:
        with engine.begin() as connection:
            return work(connection)

    async def hold(self, holder: str, *, limit: int, now_ms: int, hold_ms: int) -> list[HeldRow]:
        """Take the oldest rows that nobody holds, and note that they are about to be tried."""

        def work(connection: Connection) -> list[HeldRow]:
            # Updated before they are read: on SQLite that takes the writer's turn at once.
            free = select(_row.number).where(_row.held_until_ms <= now_ms).order_by(_row.number).limit(limit)
            connection.execute(
                update(OutboxRow)
                .where(_row.number.in_(free.with_for_update(skip_locked=True).scalar_subquery()))
                .values(holder=holder, held_until_ms=now_ms + hold_ms, tried_ms=func.coalesce(_row.tried_ms, now_ms))
            )
            held = select(_row.number, _row.job_id, _row.queue, _row.job, _row.written_ms, _row.tried_ms)
            rows = connection.execute(held.where(_row.holder == holder).order_by(_row.number))
            return [HeldRow(*row) for row in rows]

        return await self._run(work)

    async def remove(self, numbers: Sequence[int]) -> None:
        """Their jobs are in the queue's store."""
        await self._run(lambda connection: connection.execute(delete(OutboxRow).where(_row.number.in_(numbers))))

    async def put_off(self, numbers: Sequence[int], *, until_ms: int, was_tried: bool) -> None:
        """Let them be tried again later; `was_tried` if their jobs may have been added all the same."""
        values = {"held_until_ms": until_ms, "holder": None} | ({} if was_tried else {"tried_ms": None})
        change = update(OutboxRow).where(_row.number.in_(numbers)).values(**values)
        await self._run(lambda connection: connection.execute(change))

    async def set_problem(self, number: int, problem: str) -> None:
        change = update(OutboxRow).where(_row.number == number)
        change = change.values(problem=problem, held_until_ms=FOREVER_MS, holder=None)
        await self._run(lambda connection: connection.execute(change))

    async def among(self, job_ids: Sequence[str]) -> set[str]:
        """Those of these jobs that have a row here."""
        query = select(_row.job_id).where(_row.job_id.in_(job_ids))
        return await self._run(lambda connection: set(connection.execute(query).scalars()))

    async def problems(self, limit: int) -> list[OutboxProblem]:
        query = select(_row.number, _row.job_id, _row.queue, _row.problem, _row.written_ms)
        query = query.where(_row.held_until_ms == FOREVER_MS).order_by(_row.number).limit(limit)
        return await self._run(lambda connection: [OutboxProblem(*row) for row in connection.execute(query)])

    async def resend(self, number: int) -> JobRef:
        """Let a row with a problem be sent as if it had never been tried; which job that is. RecordMissing."""
        change = update(OutboxRow).values(problem=None, held_until_ms=0, tried_ms=None)
        return await self._decide(number, change)

    async def discard(self, number: int) -> JobRef:
        """Drop a row with a problem; which job that was. RecordMissing."""
        return await self._decide(number, delete(OutboxRow))

    async def _decide(self, number: int, decision: Update | Delete) -> JobRef:
        decision = decision.where((_row.number == number) & (_row.held_until_ms == FOREVER_MS))
        asked = decision.returning(_row.queue, _row.job_id)
        found = await self._run(lambda connection: connection.execute(asked).one_or_none())
        if found is None:
            raise RecordMissing(f"no outbox row {number} with a problem")
        return JobRef(*found)

    async def standing(self) -> OutboxStanding:
        pending, problems = _row.held_until_ms < FOREVER_MS, _row.held_until_ms == FOREVER_MS
        oldest = select(_row.written_ms).where(pending).order_by(_row.number).limit(1)

        def work(connection: Connection) -> OutboxStanding:
            oldest_ms = connection.execute(oldest).scalar()
            return OutboxStanding(_count(connection, pending), oldest_ms, _count(connection, problems))

        return await self._run(work)


def _count(connection: Connection, which: ColumnElement[bool]) -> int:
    """Up to a limit: it is asked again and again, also where a great many wait."""
    some = select(_row.number).where(which).limit(_COUNTED).subquery()
    return int(connection.execute(select(func.count()).select_from(some)).scalar_one())
