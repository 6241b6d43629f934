"""SQLite as records use it: fewer journeys between threads than its driver makes, and no lock that outlives a task.

aiosqlite carries each call to a thread of the connection: four journeys for a statement. Only what may wait long, for
the disk or for another process, needs one: what is read comes back with the statement that asked for it.
"""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiosqlite
from sqlalchemy import Connection, Engine, event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

_BUSY_MS = 30_000
_AGAIN_MS = 20
_ITERATED = 64
_FEW = 8
"""Rows of one statement that are no reason to leave the loop's thread."""
_QUICK_S = 0.002
_FORGOTTEN = 0.8
"""A slow commit is forgotten by so much with each one after it."""
_BEGIN, _BEGIN_WRITING = "BEGIN", "BEGIN IMMEDIATE"
BRIEF, WRITES = "bullpen_is_brief", "bullpen_writes"
"""Options of a transaction."""


class Disk:
    """How long commits take lately: on a quick disk less than the journey to a thread and back."""

    def __init__(self) -> None:
        self._slowest_s: float | None = None

    @property
    def is_quick(self) -> bool:
        return self._slowest_s is not None and self._slowest_s < _QUICK_S

    def commit(self, connection: sqlite3.Connection) -> None:
        start_s = time.perf_counter()
        try:
            connection.commit()
        finally:
            self.note(time.perf_counter() - start_s)

    def note(self, taken_s: float) -> None:
        self._slowest_s = max(taken_s, (self._slowest_s or 0) * _FORGOTTEN)


class Connections:
    """All of one database: whoever closes it waits for those too whose users were cancelled."""

    def __init__(self) -> None:
        self.endings: set[asyncio.Future[Any]] = set()
        self.disk = Disk()

    def make(self, database: str, **options: Any) -> aiosqlite.Connection:
        """One that is not open yet, as aiosqlite's own `connect` gives it."""
        options |= {"check_same_thread": False}
        made = RecordsConnection(lambda: sqlite3.connect(database, **options), self)
        made._thread.daemon = True  # noqa: SLF001 - as SQLAlchemy does for connections that it makes itself
        return made

    async def closed(self) -> None:
        if self.endings:
            await asyncio.wait(self.endings)


class RecordsConnection(aiosqlite.Connection):
    """Its calls come one after the other, as SQLAlchemy makes them."""

    def __init__(self, connector: Callable[[], sqlite3.Connection], among: Connections) -> None:
        super().__init__(connector, _ITERATED)
        self.is_brief = False
        """Whether the statements of this transaction touch a few rows each: they run where they are asked for."""
        self.only_reads = False
        """Whether this transaction is known to change nothing: to end it waits for nothing."""
        self._away: set[object] = set()
        """Calls that the thread has: one whose caller was cancelled goes on, and nothing may pass it."""
        self._fetched: tuple[object, list[Any]] | None = None
        """The cursor of the thread's last statement, and all its rows: they are asked for next."""
        self._endings = among.endings
        self._disk = among.disk
        self._ending: asyncio.Future[Any] | None = None

    async def _execute(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        fetched, self._fetched = self._fetched, None
        if fetched is not None and fn.__name__ == "fetchall" and fn.__self__ is fetched[0]:  # type: ignore[attr-defined]
            return fetched[1]
        if self._connection is not None and self._running and not self._away and self._is_quick(fn, args):
            return fn(*args, **kwargs)
        call = object()
        self._away.add(call)

        def made() -> Any:
            try:
                done = fn(*args, **kwargs)
                if fn.__name__ == "execute" and done.description:
                    self._fetched = done, done.fetchall()
                return done
            finally:
                self._away.discard(call)

        return await super()._execute(made)  # type: ignore[no-untyped-call]

    async def begin_writing(self) -> None:
        """Take the turn to write at once if no other process has it, else wait for it beside the loop."""
        if self._away or not self._begins_at_once():
            await self._execute(self._conn.execute, _BEGIN_WRITING)

    def _begins_at_once(self) -> bool:
        self._conn.execute("PRAGMA busy_timeout=0")
        try:
            self._conn.execute(_BEGIN_WRITING)
        except sqlite3.OperationalError:
            return False
        finally:
            self._conn.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        return True

    async def commit_brief(self) -> None:
        """What a brief transaction wrote: where commits are quick in the loop, else beside it."""
        if self._disk.is_quick and not self._away:
            self._disk.commit(self._conn)
        else:
            await self._execute(self._disk.commit, self._conn)

    def is_in_transaction(self) -> bool:
        """As asyncpg has it."""
        return self._conn.in_transaction

    async def fetch(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        """As asyncpg has it: run a statement, and give its rows."""
        cursor = await self._execute(self._conn.execute, text, values)
        found: list[tuple[Any, ...]] = await self._execute(cursor.fetchall)
        return found

    def _is_quick(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> bool:
        match fn.__name__:
            case "cursor":
                return True
            case "close":
                return not isinstance(fn.__self__, sqlite3.Connection)  # type: ignore[attr-defined]
            case "fetchall":
                return self.is_brief
            case "execute":
                # Who begins to write waits for a turn, who begins to read does not even open the file.
                return args[0] == _BEGIN or (self.is_brief and args[0] != _BEGIN_WRITING)
            case "commit" | "rollback":
                # Also what a pool does to a connection that comes back.
                return not self._conn.in_transaction or self.only_reads
            case "executemany":
                return self.is_brief and len(args[1]) <= _FEW
            case _:
                return False

    def stop(self) -> asyncio.Future[Any] | None:
        """Close it, once, by its thread, after all that this was told to do."""
        if self._running:
            self._ending = super().stop()
            if self._ending is not None:
                self._endings.add(self._ending)
                self._ending.add_done_callback(self._endings.discard)
        return self._ending

    async def close(self) -> None:
        """The same, and wait. What aiosqlite does when this is cancelled twice leaves the file open, and its lock."""
        if (ending := self.stop()) is not None:
            await asyncio.shield(ending)


def listen(engine: Engine) -> None:
    """Prepare each connection, and begin each transaction in the way that it asks for."""
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)


def lost(_: Engine) -> tuple[type[Exception], ...]:
    """What the driver raises when the file cannot be read, or written, or had."""
    return sqlite3.OperationalError, sqlite3.InterfaceError


def _prepare(connection: Any, _: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions of its own kind
    cursor = connection.cursor()
    for pragma in (f"busy_timeout={_BUSY_MS}", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    _set_wal(cursor)
    cursor.close()


def _set_wal(cursor: Any) -> None:
    """SQLite does not wait here for others who open the file for the first time: so we do."""
    for _ in range(_BUSY_MS // _AGAIN_MS):
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            time.sleep(_AGAIN_MS / 1000)
        else:
            return
    cursor.execute("PRAGMA journal_mode=WAL")


def _begin(connection: Connection) -> None:
    driver = _driver_of(connection)
    if driver.is_in_transaction():
        return  # see `transaction`
    options = connection.get_execution_options()
    writes: bool | None = options.get(WRITES)
    driver.is_brief, driver.only_reads = options.get(BRIEF, False), writes is False
    connection.exec_driver_sql(_BEGIN_WRITING if writes else _BEGIN)


@asynccontextmanager
async def transaction(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """A brief one that writes, and is committed at its end. Whatever else ends it, the pool rolls it back.

    What SQLAlchemy does to begin and end one takes longer than the statements of a step.
    """
    async with engine.connect() as connection:
        assert connection.sync_connection is not None
        driver = _driver_of(connection.sync_connection)
        driver.is_brief, driver.only_reads = True, False
        await driver.begin_writing()
        yield connection
        await driver.commit_brief()


def go_aside(connection: Connection) -> None:
    """Let what follows in this transaction be done by the thread: it touches many rows."""
    _driver_of(connection).is_brief = False


def _driver_of(connection: Connection) -> RecordsConnection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, RecordsConnection)
    return driver
