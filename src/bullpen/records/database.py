"""One database of records: SQLite in a file, or PostgreSQL; reading and writing in transactions.

SQLite: one writer at a time takes its turn with `BEGIN IMMEDIATE`, so that no transaction finds out
at its end that another was quicker; readers see the state before it and wait for nobody.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar, cast

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from bullpen.clock import Clock
from bullpen.errors import BadOption, RecordsUnavailable
from bullpen.records import postgres, sqlite

_SQLITE = "sqlite+aiosqlite"
_POSTGRES = "postgresql+asyncpg"
_DRIVERS = {"sqlite": _SQLITE, _SQLITE: _SQLITE, "postgresql": _POSTGRES, "postgres": _POSTGRES, _POSTGRES: _POSTGRES}

T = TypeVar("T")


class Database:
    """Transactions on one engine; what goes wrong below is told in our words."""

    def __init__(self, engine: AsyncEngine, clock: Clock, connections: sqlite.Connections | None = None) -> None:
        self.engine = engine
        self.clock = clock
        self._connections = connections
        self.is_postgres = engine.dialect.name == "postgresql"
        self._readers = {
            brief: engine.execution_options(**{sqlite.WRITES: False, sqlite.BRIEF: brief}) for brief in (False, True)
        }
        """The same engine, by whether a transaction is brief."""
        self._writer = engine.execution_options(**{sqlite.WRITES: True})
        self._brief_on_postgres = postgres.brief(engine) if self.is_postgres else None
        self._own: dict[object, object] = {}
        self._lost = (postgres if self.is_postgres else sqlite).lost(engine.sync_engine)
        """What the driver raises when the database is out of reach."""
        # SQLite's own way to wait for a turn is to ask again after a pause: here those of one process wait in line.
        self._turns = contextlib.nullcontext() if self.is_postgres else asyncio.Lock()

    @asynccontextmanager
    async def reading(self, *, brief: bool = False) -> AsyncIterator[AsyncConnection]:
        """A transaction that sees one moment and changes nothing.

        `brief`: its statements touch a few rows each, by their keys. On SQLite that is less than a thread costs.
        """
        with self._in_our_words():
            async with self._readers[brief].connect() as connection, connection.begin():
                yield connection

    def go_aside(self, connection: AsyncConnection) -> None:
        """What follows in this brief transaction is not: it touches many rows."""
        if not self.is_postgres and connection.sync_connection is not None:
            sqlite.go_aside(connection.sync_connection)

    @asynccontextmanager
    async def writing(self, *, brief: bool = False, begun: bool = True) -> AsyncIterator[AsyncConnection]:
        """A transaction that is committed at its end, or leaves no trace if that end is an error; `brief` as above.

        Without `begun` a chain has to be run before anything else is done: on PostgreSQL a brief one begins with that.
        """
        with self._in_our_words():
            async with self._turns, self._transaction(brief=brief, begun=begun) as connection:
                yield connection

    def _transaction(self, *, brief: bool, begun: bool) -> AbstractAsyncContextManager[AsyncConnection]:
        if brief and self._brief_on_postgres is not None:
            return postgres.transaction(self._brief_on_postgres, begun=begun)
        if brief:
            return sqlite.transaction(self.engine)
        return self._writer.begin()

    @contextmanager
    def _in_our_words(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, PoolTimeout, OSError, *self._lost) as error:
            if isinstance(error, DBAPIError) and not self._is_lost(error):
                raise
            raise _unavailable(error) from error

    def _is_lost(self, error: DBAPIError) -> bool:
        """Whether it says that the database is out of reach; of some drivers only what lies below it does."""
        if isinstance(error, OperationalError | InterfaceError) or error.connection_invalidated:
            return True
        below = error.orig
        return isinstance(below, self._lost) or isinstance(getattr(below, "__cause__", None), self._lost)

    def own(self, kind: Callable[["Database"], T]) -> T:
        """The one of this kind that belongs to this database, made when it is first asked for: its statements."""
        if (found := self._own.get(kind)) is None:
            found = self._own[kind] = kind(self)
        return cast("T", found)

    async def close(self) -> None:
        await self.engine.dispose()
        if self._connections is not None:
            await self._connections.closed()


def database_at(address: str, clock: Clock) -> Database:
    """The database at `sqlite:PATH` or `postgresql://USER:PASSWORD@HOST/NAME`; it is not opened yet."""
    url = parse_address(address)
    if url.drivername == _POSTGRES:
        engine = create_async_engine(url, **postgres.POOL)
        postgres.listen(engine.sync_engine)
        return Database(engine, clock)
    if url.database and url.database != ":memory:":
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    connections = sqlite.Connections()
    engine = create_async_engine(url, connect_args={"async_creator_fn": connections.make}, pool_use_lifo=True)
    sqlite.listen(engine.sync_engine)
    return Database(engine, clock, connections)


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


def _unavailable(error: Exception) -> RecordsUnavailable:
    # The statement and its values are left out: they may hold what is nobody's business.
    cause = getattr(error, "orig", None) or error
    return RecordsUnavailable(f"the database of records does not answer: {type(cause).__name__}: {cause}")
