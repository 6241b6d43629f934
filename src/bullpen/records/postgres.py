"""PostgreSQL as records use it: fewer round trips, and less around them, than SQLAlchemy alone would make.

No connection is asked whether it lives that was used a moment ago: to ask takes three round trips. One whose server
went away in good order is known to be closed without being asked; one that has rested may have been lost in silence.

Brief transactions are begun and ended by the driver: what SQLAlchemy does for that takes longer than the server needs
for both. It is told that each statement commits itself, which within a transaction none does. One that may begin later
need not begin at all: a statement before that is a transaction of its own.

The pool gives out the connection that was used last: it knows the statements, and the server has their plans. None is
closed for being one too many, since the next is needed a moment later, and to open one takes longer than to use it.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.exc import DisconnectionError, InvalidatePoolError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.pool import PoolProxiedConnection, PoolResetState

_RESTED_S = 1.0
_USED_S = "bullpen_used_s"
"""When a connection came back to its pool."""
POOL = {"pool_size": 15, "max_overflow": 0, "pool_use_lifo": True}
_WAITS = "bullpen_waits"
"""Whether a connection is yet to begin its transaction."""
_IS_OPEN = "bullpen_is_open"
"""Whether a connection has, or may have, a transaction that SQLAlchemy does not know of."""


def listen(engine: Engine) -> None:
    """Replace a connection that is dead before anybody is given it."""

    def check(connection: Any, record: Any, _: object) -> None:
        if connection.driver_connection.is_closed():
            raise DisconnectionError
        # A new one has not been used.
        if time.monotonic() - record.info.get(_USED_S, float("inf")) > _RESTED_S:
            try:
                engine.dialect.do_ping(connection)
            except (engine.dialect.loaded_dbapi.Error, OSError) as error:
                raise InvalidatePoolError from error  # where one is lost, the others are

    event.listen(engine, "checkout", check)
    event.listen(engine, "checkin", _note_use)
    event.listen(engine, "reset", _roll_back)


def _note_use(connection: Any, record: Any) -> None:
    if connection is not None:
        record.info[_USED_S] = time.monotonic()


def brief(engine: AsyncEngine) -> AsyncEngine:
    """The same engine, for `transaction`."""
    return engine.execution_options(isolation_level="AUTOCOMMIT")


@asynccontextmanager
async def transaction(engine: AsyncEngine, *, begun: bool) -> AsyncIterator[AsyncConnection]:
    """One that is committed at its end. Whatever else ends it, the pool rolls it back: see `_roll_back`."""
    async with engine.connect() as connection:
        pooled = _pooled(connection)
        pooled.info[_WAITS] = True
        if begun:
            await begin(connection)
        yield connection
        if _IS_OPEN in pooled.info:
            await _driver(pooled).execute("COMMIT")
            del pooled.info[_IS_OPEN]


def waits(connection: AsyncConnection) -> bool:
    """Whether its transaction is yet to begin."""
    return _WAITS in _pooled(connection).info


async def begin(connection: AsyncConnection) -> None:
    """Its transaction, if that waits for it."""
    pooled = _pooled(connection)
    if pooled.info.pop(_WAITS, False):
        # Before it begins: who is cancelled just then does not hear that it has begun.
        pooled.info[_IS_OPEN] = True
        await _driver(pooled).execute("BEGIN")


def _pooled(connection: AsyncConnection) -> PoolProxiedConnection:
    assert connection.sync_connection is not None
    return connection.sync_connection.connection


def _driver(pooled: PoolProxiedConnection) -> Any:
    return pooled.driver_connection


def _roll_back(connection: Any, record: Any, state: PoolResetState) -> None:
    """As a connection comes back, whoever was cancelled meanwhile and however often: no lock stays with it."""
    record.info.pop(_WAITS, None)
    if record.info.pop(_IS_OPEN, False) and state.asyncio_safe and not connection.driver_connection.is_closed():
        connection.run_async(lambda driver: driver.execute("ROLLBACK"))


def lost(engine: Engine) -> tuple[type[Exception], ...]:
    """What the driver raises when the server is gone, goes, comes, or has no room for one more."""
    driver: Any = engine.dialect.dbapi
    errors = driver.asyncpg.exceptions
    gone = errors.InterfaceError, errors.PostgresConnectionError, errors.OperatorInterventionError
    return (*gone, errors.InsufficientResourcesError)


def undone(engine: Engine) -> type[Exception]:
    """What the driver raises for a statement that divides by zero, as one does that would undo itself."""
    driver: Any = engine.dialect.dbapi
    error: type[Exception] = driver.asyncpg.exceptions.DivisionByZeroError
    return error
