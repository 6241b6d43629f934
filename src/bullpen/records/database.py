"""One database of records: SQLite in a file, or PostgreSQL; reading and writing in transactions.

SQLite: one writer at a time takes its turn with `BEGIN IMMEDIATE`, so that no transaction finds out
at its end that another was quicker; readers see the state before it and wait for nobody.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from bullpen.clock import Clock
from bullpen.errors import BadOption, RecordsUnavailable

_BUSY_MS = 30_000
_WRITES = "bullpen_writes"
_SQLITE = "sqlite+aiosqlite"
_POSTGRES = "postgresql+asyncpg"
_DRIVERS = {"sqlite": _SQLITE, _SQLITE: _SQLITE, "postgresql": _POSTGRES, "postgres": _POSTGRES, _POSTGRES: _POSTGRES}


class Database:
    """Transactions on one engine; what goes wrong below is told in our words."""

    def __init__(self, engine: AsyncEngine, clock: Clock) -> None:
        self.engine = engine
        self.clock = clock
        self.is_postgres = engine.dialect.name == "postgresql"

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that sees one moment and changes nothing."""
        try:
            async with self.engine.connect() as connection, connection.begin():
                yield connection
        except _UNREACHABLE as error:
            raise _unavailable(error) from error

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that is committed at its end, or leaves no trace if that end is an error."""
        try:
            async with self.engine.execution_options(**{_WRITES: True}).begin() as connection:
                yield connection
        except _UNREACHABLE as error:
            raise _unavailable(error) from error

    async def close(self) -> None:
        await self.engine.dispose()


def database_at(address: str, clock: Clock) -> Database:
    """The database at `sqlite:PATH` or `postgresql://USER:PASSWORD@HOST/NAME`; it is not opened yet."""
    url = parse_address(address)
    if url.drivername == _POSTGRES:
        return Database(create_async_engine(url, pool_pre_ping=True), clock)
    if url.database and url.database != ":memory:":
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_async_engine(url)
    event.listen(engine.sync_engine, "connect", _prepare_sqlite)
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return Database(engine, clock)


def parse_address(address: str) -> URL:
    """The address in SQLAlchemy's form; BadOption if it is none of ours."""
    scheme, _, rest = address.partition(":")
    if scheme == "sqlite" and not rest.startswith("//"):
        return URL.create(_SQLITE, database=rest)
    try:
        url = make_url(address)
    except ArgumentError:
        url = None
    if url is None or url.drivername not in _DRIVERS:
        # Not quoted: what is no address of ours may still have a password in it.
        raise BadOption("records: use sqlite:PATH or postgresql://USER:PASSWORD@HOST/NAME")
    return url.set(drivername=_DRIVERS[url.drivername])


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions of its own kind
    cursor = connection.cursor()
    for pragma in (f"busy_timeout={_BUSY_MS}", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


_UNREACHABLE = (OperationalError, InterfaceError, PoolTimeout, OSError)


def _unavailable(error: Exception) -> RecordsUnavailable:
    # The statement and its values are left out: they may hold what is nobody's business.
    cause = getattr(error, "orig", None) or error
    return RecordsUnavailable(f"the database of records does not answer: {type(cause).__name__}: {cause}")
