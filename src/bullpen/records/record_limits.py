"""How many records of a kind one tenant may have: lists of them come whole, and each is looked at with every event."""

from typing import Any

from sqlalchemy import Table, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.errors import RecordLimit
from bullpen.records.database import Database

_LOCK = 0x426F6F6D
"""Any number that nobody else locks together with a tenant's records."""


def of_tenant(table: Table, tenant: str | None) -> Any:
    """Those of a tenant; without one, those of nobody."""
    return table.c.tenant.is_(None) if tenant is None else table.c.tenant == tenant


async def take_turn(connection: AsyncConnection, database: Database, table: Table, tenant: str | None) -> None:
    """Whoever adds to these of a tenant waits from here on for the end of the transaction.

    On SQLite there is one writer at a time anyway.
    """
    if database.is_postgres:
        lock = text("SELECT pg_advisory_xact_lock(:lock, hashtext(:records))")
        await connection.execute(lock, {"lock": _LOCK, "records": f"{table.name}/{tenant or ''}"})


async def check_room(
    connection: AsyncConnection, database: Database, table: Table, tenant: str | None, *, most: int
) -> None:
    """RecordLimit if there are so many of the tenant's already; those who add take turns from here on."""
    await take_turn(connection, database, table, tenant)
    query = select(func.count()).select_from(table).where(of_tenant(table, tenant))
    if (await connection.execute(query)).scalar_one() >= most:
        kind = table.name.removeprefix("bullpen_")
        raise RecordLimit(f"there are {most} {kind}s already, which is all that a tenant may have; remove some")
