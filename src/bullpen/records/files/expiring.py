"""What becomes of files whose time is over, and of blobs that no row names any more."""

from collections.abc import Sequence
from itertools import islice

from sqlalchemy import ColumnElement, Table, delete, select

from bullpen.records.blobs.blobs import Blobs
from bullpen.records.blobs.folder import now_ms as file_clock_ms
from bullpen.records.database import Database
from bullpen.records.deleting_in_parts import TOGETHER
from bullpen.records.files.holding import exclude, named
from bullpen.records.files.words import Expired
from bullpen.records.tables.files import checkpoint as checkpoint_table
from bullpen.records.tables.files import file as file_table
from bullpen.records.tables.runs import run as run_table
from bullpen.records.tables.runs import task as task_table

YOUNG_MS = 3_600_000
"""A blob below this age may be about to be named."""
_TOGETHER = 20
"""Blobs removed in one transaction: others wait for it."""
_LOOKED_AT = 500


async def expire(database: Database, blobs: Blobs, *, now_ms: int, keep_ms: int, young_ms: int = YOUNG_MS) -> Expired:
    """Remove rows whose time is over, then blobs that none names. Any number of processes may do this at once."""
    files, checkpoints = await _expire_rows(database, now_ms=now_ms, keep_ms=keep_ms)
    # The age of a blob is told by the clock that dated it, not by that of the records.
    file_now_ms = file_clock_ms()
    removed = await _remove_unnamed(database, blobs, before_ms=file_now_ms - young_ms)
    await blobs.home.tidy(before_ms=file_now_ms - YOUNG_MS)
    return Expired(files, checkpoints, removed)


async def _expire_rows(database: Database, *, now_ms: int, keep_ms: int) -> tuple[int, int]:
    over = select(run_table.c.id).where(run_table.c.finished_ms <= now_ms - keep_ms)
    tasks = select(task_table.c.id).where(task_table.c.run.in_(over))

    async def remove(table: Table, of_a_run_that_is_over: ColumnElement[bool]) -> int:
        # One after the other, since each has an index.
        return sum(
            [await _remove_rows(database, table, one) for one in (table.c.expires_ms <= now_ms, of_a_run_that_is_over)]
        )

    files = await remove(file_table, file_table.c.run.in_(over))
    return files, await remove(checkpoint_table, checkpoint_table.c.task.in_(tasks))


async def _remove_rows(database: Database, table: Table, is_over: ColumnElement[bool]) -> int:
    """Some at a time. They are looked for before others have to wait, and may have been given to a run meanwhile."""
    removed = 0
    while True:
        async with database.reading() as connection:
            found = list((await connection.execute(select(table.c.id).where(is_over).limit(TOGETHER))).scalars())
        if found:
            async with database.writing() as connection:
                gone = await connection.execute(delete(table).where(table.c.id.in_(found), is_over))
                removed += gone.rowcount
        if len(found) < TOGETHER:
            return removed


async def _remove_unnamed(database: Database, blobs: Blobs, *, before_ms: int) -> int:
    removed = 0
    old: list[str] = []
    async for found in blobs.all():
        if found.written_ms < before_ms:
            old.append(found.name)
        if len(old) == _LOOKED_AT:
            removed += await _remove(database, blobs, old)
            old = []
    return removed + await _remove(database, blobs, old)


async def _remove(database: Database, blobs: Blobs, old: Sequence[str]) -> int:
    async with database.reading() as connection:
        used = await named(connection, old) if old else set()
    waiting = iter([name for name in old if name not in used])
    removed = 0
    while some := list(islice(waiting, _TOGETHER)):
        async with database.writing() as connection:
            await exclude(connection, database)
            used = await named(connection, some)
            for name in some:
                if name not in used:
                    await blobs.remove(name)
                    removed += 1
    return removed
