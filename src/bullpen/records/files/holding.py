"""Rows that name blobs, beside the chore that removes what no row names.

Whoever writes such a row looks, in its transaction, whether the blob is still there; whoever removes a blob looks, in
a transaction that excludes those, whether a row names it. So neither can miss the other.
"""

from collections.abc import Collection, Iterable

from sqlalchemy import select, text, union
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.errors import BlobMissing
from bullpen.records.blobs.blobs import Blobs
from bullpen.records.database import Database
from bullpen.records.tables.files import checkpoint, file, part

_LOCK = 0x42756C6C626C6F62
"""Any number that nobody else locks."""


async def hold(connection: AsyncConnection, database: Database, blobs: Blobs, names: Iterable[str]) -> None:
    """Nobody removes these until the transaction ends. BlobMissing if one is gone: put it again."""
    if database.is_postgres:
        await connection.execute(text("SELECT pg_advisory_xact_lock_shared(:lock)"), {"lock": _LOCK})
    for name in names:
        if not await blobs.has(name):
            raise BlobMissing(f"blob {name} was removed before it was named")


async def exclude(connection: AsyncConnection, database: Database) -> None:
    """Nobody names a blob until the transaction ends. SQLite has one writer anyway."""
    if database.is_postgres:
        await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})


async def named(connection: AsyncConnection, names: Collection[str]) -> set[str]:
    """Those of them that a row names."""
    columns = (file.c.sha256, checkpoint.c.sha256, part.c.sha256)
    query = union(*(select(column).where(column.in_(names)) for column in columns))
    return set((await connection.execute(query)).scalars())
