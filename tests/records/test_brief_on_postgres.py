"""Brief transactions on PostgreSQL, begun and ended by the driver: whatever becomes of who asked, none stays open."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text

from bullpen.clock import SYSTEM_CLOCK
from bullpen.records.database import Database, database_at
from tests.support.postgres_server import PostgresServer


@pytest.fixture
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    database = database_at(postgres_server.new_database(), SYSTEM_CLOCK)
    async with database.writing() as connection:
        await connection.execute(text("CREATE TABLE note (n INTEGER)"))
        await connection.execute(text("INSERT INTO note VALUES (0)"))
    yield database
    await database.close()


async def _more(database: Database, *, brief: bool = True) -> None:
    async with database.writing(brief=brief) as connection:
        await connection.execute(text("UPDATE note SET n = n + 1"))


async def _number(database: Database) -> int:
    async with database.reading() as connection:
        return int((await connection.execute(text("SELECT n FROM note"))).scalar_one())


async def _left_open(database: Database) -> int:
    """Transactions of others that nobody ended."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND pid <> pg_backend_pid()"
    async with database.reading() as connection:
        return int((await connection.execute(text(query))).scalar_one())


async def test_an_error_leaves_no_trace_of_what_sqlalchemy_was_asked(database: Database) -> None:
    """It is told that each statement commits itself, and is wrong about that."""
    with contextlib.suppress(ZeroDivisionError):
        async with database.writing(brief=True) as connection:
            await connection.execute(text("UPDATE note SET n = 7"))
            raise ZeroDivisionError
    assert await _number(database) == 0
    assert await _left_open(database) == 0


@pytest.mark.parametrize("brief", [True, False])
async def test_a_connection_is_as_before_for_who_has_it_next(database: Database, *, brief: bool) -> None:
    for _ in range(2):
        await _more(database)
        with contextlib.suppress(ZeroDivisionError):
            async with database.writing(brief=brief) as connection:
                await connection.execute(text("UPDATE note SET n = 7"))
                raise ZeroDivisionError
    assert await _number(database) == 2
    assert database.engine.sync_engine.pool.checkedin() == 1  # type: ignore[attr-defined]


async def test_what_fails_in_the_database_is_not_committed_in_part(database: Database) -> None:
    with contextlib.suppress(Exception):
        async with database.writing(brief=True) as connection:
            await connection.execute(text("UPDATE note SET n = 7"))
            await connection.execute(text("SELECT 1 / 0"))
    assert await _number(database) == 0
    await _more(database)
    assert await _number(database) == 1


@pytest.mark.parametrize("cancels", [1, 2, 3])
async def test_who_is_cancelled_while_it_waits_holds_no_lock(database: Database, cancels: int) -> None:
    async with database.writing() as connection:
        await connection.execute(text("UPDATE note SET n = n + 10"))
        waiting = asyncio.create_task(_more(database))
        async with asyncio.timeout(10):
            locks = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            while not (await connection.execute(locks)).scalar_one():
                await asyncio.sleep(0.01)
        for _ in range(cancels):
            waiting.cancel()
            await asyncio.sleep(0)
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    await asyncio.wait_for(_more(database), 10)
    assert await _number(database) == 11


async def test_who_is_cancelled_at_any_moment_leaves_no_transaction(database: Database) -> None:
    """From before it begins until after it is committed, one turn of the loop later each time."""
    await _more(database)
    done, turns = 1, 0
    while True:
        working = asyncio.create_task(_more(database))
        for _ in range(turns):
            await asyncio.sleep(0)
        is_over = working.done()
        working.cancel()
        await asyncio.wait([working])
        # Who is cancelled while it commits does not know: it is all there, or nothing is.
        number = await asyncio.wait_for(_number(database), 10)
        assert number in {done, done + 1}
        assert await _left_open(database) == 0
        done, turns = number, turns + 1
        if is_over:
            return
