"""How providers of models are doing, as whoever asks them writes it: one row for each, that all workers see."""

from collections.abc import Callable

from sqlalchemy import select, update

from bullpen.records.database import Database
from bullpen.records.model.sql import insert_for
from bullpen.records.tables.providers import provider as table


class Providers:
    """What is known of each provider; empty where that is nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def health(self, name: str) -> bytes:
        async with self._database.reading(brief=True) as connection:
            found = await connection.scalar(select(table.c.health).where(table.c.name == name))
        return b"" if found is None else bytes(found)

    async def all(self) -> dict[str, bytes]:
        """Of each that somebody wrote of, by name."""
        async with self._database.reading(brief=True) as connection:
            rows = (await connection.execute(select(table.c.name, table.c.health).order_by(table.c.name))).all()
        return {row.name: bytes(row.health) for row in rows}

    async def change(self, name: str, step: Callable[[bytes], bytes]) -> None:
        """Put in place what the step makes of it; nobody else changes it between."""
        now_ms = self._database.clock.now_ms()
        async with self._database.writing(brief=True) as connection:
            # The row must be there to be locked: two workers that are the first at once would both begin with nothing.
            new = insert_for(self._database, table).values(name=name, health=b"", changed_ms=now_ms)
            await connection.execute(new.on_conflict_do_nothing())
            locked = select(table.c.health).where(table.c.name == name).with_for_update()
            before = bytes((await connection.execute(locked)).scalar_one())
            after = step(before)
            if after != before:
                values = {"health": after, "changed_ms": now_ms}
                await connection.execute(update(table).where(table.c.name == name).values(values))
