"""Pools of sandboxes of all workers: each tells of its own now and then, and hears whether it is to restart it."""

import msgspec
from sqlalchemy import delete, select, update

from bullpen.records.database import Database
from bullpen.records.model.sql import insert_for
from bullpen.records.tables.sandboxes import sandbox_pool as table

LATELY_MS = 60_000
"""A pool of which nobody told for longer is gone, and its worker with it."""


class ToldPool(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker told of its pool."""

    id: str
    worker: str
    standing: bytes
    """As its room writes it."""
    told_ms: int


class SandboxPools:
    """The pools that workers told of lately."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def tell(self, pool: str, worker: str, standing: bytes) -> bool:
        """Put in place how a pool stands; whether somebody asked meanwhile that it restarts, which is told once."""
        told = {"worker": worker, "standing": standing, "told_ms": self._database.clock.now_ms()}
        new = insert_for(self._database, table).values(id=pool, **told)
        put = new.on_conflict_do_update(index_elements=["id"], set_=told).returning(table.c.restart_ms)
        async with self._database.writing(brief=True) as connection:
            asked_ms = (await connection.execute(put)).scalar_one()
            if asked_ms is not None:
                await connection.execute(update(table).where(table.c.id == pool).values(restart_ms=None))
        return asked_ms is not None

    async def list(self) -> list[ToldPool]:
        """By worker."""
        columns = (table.c.id, table.c.worker, table.c.standing, table.c.told_ms)
        query = select(*columns).where(table.c.told_ms > self._gone_ms).order_by(table.c.worker, table.c.id)
        async with self._database.reading(brief=True) as connection:
            rows = (await connection.execute(query)).all()
        return [
            ToldPool(id=row.id, worker=row.worker, standing=bytes(row.standing), told_ms=row.told_ms) for row in rows
        ]

    async def ask_restart(self) -> int:
        """Have each replace its unused sandboxes when its worker tells of it next; how many there are."""
        ask = update(table).where(table.c.told_ms > self._gone_ms).values(restart_ms=self._database.clock.now_ms())
        async with self._database.writing(brief=True) as connection:
            return len((await connection.execute(ask.returning(table.c.id))).all())

    async def remove(self, pool: str) -> None:
        """It is closed."""
        async with self._database.writing(brief=True) as connection:
            await connection.execute(delete(table).where(table.c.id == pool))

    async def forget(self) -> None:
        """Those of workers that died."""
        async with self._database.writing(brief=True) as connection:
            await connection.execute(delete(table).where(table.c.told_ms <= self._gone_ms))

    @property
    def _gone_ms(self) -> int:
        return self._database.clock.now_ms() - LATELY_MS
