"""Bringing the tables up to date when the records are opened.

Many processes may open at once: the first migrates, the others wait for it (on SQLite for the
writer's turn, on PostgreSQL for an advisory lock that ends with the transaction) and find it done.
"""

from pathlib import Path

from sqlalchemy import Connection, inspect, select, text
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql import column, table

from bullpen.errors import RecordsTooNew
from bullpen.records.database import Database

HEAD = "0021"
"""The newest migration; they are numbered, so that a newer database is told from a damaged one."""
VERSION_TABLE = "bullpen_version"
_FOLDER = Path(__file__).parent / "migrations"
_LOCK = 0x42756C6C70656E
"""Any number that nobody else locks."""


async def migrate(database: Database) -> None:
    """Bring the database to HEAD; RecordsTooNew if it is beyond."""
    async with database.reading() as connection:
        if await connection.run_sync(_version) == HEAD:
            return
    async with database.writing() as connection:
        await _take_turn(connection, is_postgres=database.is_postgres)
        await connection.run_sync(_upgrade)


async def version_of(database: Database) -> str | None:
    """Where the database is; None for one that has no records yet. RecordsTooNew if it is beyond HEAD."""
    async with database.reading() as connection:
        return await connection.run_sync(_version)


async def _take_turn(connection: AsyncConnection, *, is_postgres: bool) -> None:
    if is_postgres:
        await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})


def _version(connection: Connection) -> str | None:
    """What the database says of itself; None for one that has no records yet."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found: str | None = connection.execute(select(table(VERSION_TABLE, column("version_num")))).scalar()
    if found is not None and found > HEAD:
        raise RecordsTooNew(f"the database of records is at version {found}, this Bullpen knows {HEAD}: upgrade it")
    return found


def _upgrade(connection: Connection) -> None:
    if _version(connection) != HEAD:
        upgrade_to(connection, HEAD)


def upgrade_to(connection: Connection, version: str) -> None:
    """Carry out the migrations up to this one."""
    # Late: whoever finds the tables up to date, which is nearly everyone, need not load it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, version)
