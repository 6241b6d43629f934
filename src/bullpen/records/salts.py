"""Secrets of this installation that nobody sets: made when they are first asked for, the same for all its servers.

They are kept as they are: what is hashed with them is in the same database, and no secret to who reads that.
"""

import secrets

from sqlalchemy import select

from bullpen.records.database import Database
from bullpen.records.model.sql import insert_for
from bullpen.records.tables.access import salt

_BYTES = 32


class Salts:
    """What names are hashed with before strangers see them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, name: str) -> bytes:
        """The secret of this name; it never changes."""
        query = select(salt.c.value).where(salt.c.name == name)
        async with self._database.reading(brief=True) as connection:
            found = await connection.scalar(query)
        if found is None:
            new = insert_for(self._database, salt).values(name=name, value=secrets.token_bytes(_BYTES))
            async with self._database.writing() as connection:
                await connection.execute(new.on_conflict_do_nothing())
                found = (await connection.execute(query)).scalar_one()
        return bytes(found)
