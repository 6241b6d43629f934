"""What becomes of runs that ended long ago: all that is known of them goes, but for their bookings."""

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.records.credits.budget import account_of
from bullpen.records.database import Database
from bullpen.records.model.sql import as_list
from bullpen.records.runs.wording import RUN_TEXTS
from bullpen.records.tables.credits import hold
from bullpen.records.tables.journal import journal
from bullpen.records.tables.runs import run as run_table
from bullpen.records.tables.runs import task as task_table
from bullpen.settings import whole_from

RUN_DAYS = "BULLPEN_RUN_DAYS"
_DAY_MS = 86_400_000
_MOST_DAYS = 36_500
_TOGETHER = 50
"""Runs in one transaction: others wait for it."""


async def forget_old(database: Database, *, now_ms: int | None = None) -> int:
    """Remove runs that ended so many days ago as `BULLPEN_RUN_DAYS` says; how many. Without it all are kept.

    Any number of processes may do this at once. Files are let go of, and their blobs expire by themselves.
    """
    days = days_kept()
    if days is None:
        return 0
    before_ms = (database.clock.now_ms() if now_ms is None else now_ms) - days * _DAY_MS
    forgotten = 0
    while True:
        async with database.writing() as connection:
            some = await _forget_some(connection, database, before_ms)
        forgotten += some
        if some < _TOGETHER:
            return forgotten


def days_kept() -> int | None:
    """BadOption for what is no number of days."""
    return whole_from(RUN_DAYS, 0, 1, _MOST_DAYS) or None


async def _forget_some(connection: AsyncConnection, database: Database, before_ms: int) -> int:
    # By when they began, which has an index; who began long ago and has not ended is one of few.
    is_old = (run_table.c.created_ms < before_ms, run_table.c.finished_ms < before_ms)
    oldest = select(run_table.c.id, run_table.c.number).where(*is_old).order_by(run_table.c.created_ms)
    found = (await connection.execute(oldest.limit(_TOGETHER))).all()
    runs = [row.id for row in found]
    if not runs:
        return 0
    tasks = list((await connection.execute(select(task_table.c.id).where(task_table.c.run.in_(runs)))).scalars())
    await connection.execute(delete(journal).where(journal.c.run.in_(tasks)))
    await connection.execute(delete(hold).where(hold.c.run.in_([*tasks, *map(account_of, tasks)])))
    numbers = [row.number for row in found if row.number is not None]
    await connection.execute(RUN_TEXTS.drop(database), {"listed": as_list(database, numbers)})
    # Tasks, their log, files and checkpoints go with it.
    await connection.execute(delete(run_table).where(run_table.c.id.in_(runs)))
    return len(runs)
