"""PostgreSQL as records use it: fewer round trips, and less around them, than SQLAlchemy alone would make.

No connection is asked whether it lives that was used a moment ago: to ask takes three round trips. One whose server
went away in good order is known to be closed without being asked; one that has rested may have been lost in silence.

Brief transactions are begun and ended by the driver: what SQLAlchemy does for that takes longer than the server needs
for both. It is told that each statement commits itself, which within a transaction none does.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.exc import DisconnectionError, InvalidatePoolError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.pool import PoolResetState

_RESTED_S = 1.0
_USED_S = "bullpen_used_s"
"""When a connection came back to its pool."""
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
async def transaction(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """One that is committed at its end. Whatever else ends it, the pool rolls it back: see `_roll_back`."""
    async with engine.connect() as connection:
        assert connection.sync_connection is not None
        pooled = connection.sync_connection.connection
        driver: Any = pooled.driver_connection
        # Before it begins: who is cancelled just then does not hear that it has begun.
        pooled.info[_IS_OPEN] = True
        await driver.execute("BEGIN")
        yield connection
        await driver.execute("COMMIT")
        del pooled.info[_IS_OPEN]


def _roll_back(connection: Any, record: Any, state: PoolResetState) -> None:
    """As a connection comes back, whoever was cancelled meanwhile and however often: no lock stays with it."""
    if record.info.pop(_IS_OPEN, False) and state.asyncio_safe and not connection.driver_connection.is_closed():
        connection.run_async(lambda driver: driver.execute("ROLLBACK"))


def lost(engine: Engine) -> tuple[type[Exception], ...]:
    """What the driver raises when the server is gone, or goes."""
    driver: Any = engine.dialect.dbapi
    errors = driver.asyncpg.exceptions
    return errors.InterfaceError, errors.PostgresConnectionError, errors.OperatorInterventionError
