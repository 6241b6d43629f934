"""A PostgreSQL server that goes away: who asks next gets an answer, who was in the middle is told in our words."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import column, table, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.clock import SYSTEM_CLOCK
from bullpen.errors import RecordsUnavailable
from bullpen.records import postgres
from bullpen.records.database import Database, database_at
from bullpen.records.prepared import Prepared
from tests.support.postgres_server import PostgresServer

_NOTE = table("note", column("n"))


@pytest.fixture
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    database = database_at(postgres_server.new_database(), SYSTEM_CLOCK)
    async with database.writing() as connection:
        await connection.execute(text("CREATE TABLE note (n INTEGER)"))
        await connection.execute(text("INSERT INTO note VALUES (0)"))
    yield database
    await database.close()


async def _more(database: Database, connection: AsyncConnection) -> int:
    more = Prepared(database, update(_NOTE).values(n=_NOTE.c.n + text("1")).returning(_NOTE.c.n))
    ((n,),) = await more.fetch(connection, {})
    return int(n)


async def test_who_asks_after_a_restart_does_not_notice(database: Database, postgres_server: PostgresServer) -> None:
    """Several connections, all of them lost, known to be closed since the loop went on."""
    async with database.reading() as one, database.reading() as other:
        for connection in (one, other):
            assert (await connection.execute(text("SELECT n FROM note"))).scalar_one() == 0
    await asyncio.to_thread(postgres_server.restart)
    async with database.writing(brief=True) as connection, database.reading() as other:
        assert await _more(database, connection) == 1
        assert (await other.execute(text("SELECT n FROM note"))).scalar_one() == 0


async def test_one_that_was_lost_in_silence_is_replaced_after_a_rest(
    database: Database, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_RESTED_S", -1.0)
    postgres_server.restart()  # on the loop's thread: it has heard nothing when it goes on
    async with database.writing(brief=True) as connection:
        assert await _more(database, connection) == 1


async def test_one_that_was_used_a_moment_ago_is_not_asked(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """To ask takes three round trips."""
    asked: list[object] = []
    monkeypatch.setattr(database.engine.dialect, "do_ping", asked.append)
    monkeypatch.setattr(postgres, "_RESTED_S", 3_600.0)
    for n in range(3):
        async with database.writing(brief=True) as connection:
            assert await _more(database, connection) == n + 1
    assert asked == []
    monkeypatch.setattr(postgres, "_RESTED_S", -1.0)
    async with database.writing(brief=True) as connection:
        assert await _more(database, connection) == 4
    assert len(asked) == 1


@pytest.mark.parametrize("prepared", [True, False], ids=["by the driver", "by SQLAlchemy"])
async def test_who_was_in_the_middle_is_told(
    database: Database, postgres_server: PostgresServer, *, prepared: bool
) -> None:
    async def ask(connection: AsyncConnection) -> None:
        if prepared:
            await _more(database, connection)
        else:
            await connection.execute(text("UPDATE note SET n = n + 1"))

    async def be_in_the_middle() -> None:
        async with database.writing(brief=True) as connection:
            await ask(connection)
            await asyncio.to_thread(postgres_server.restart)
            await ask(connection)

    with pytest.raises(RecordsUnavailable, match="does not answer"):
        await be_in_the_middle()
    async with database.writing(brief=True) as connection:
        assert await _more(database, connection) == 1


async def test_a_server_without_room_for_one_more_is_out_of_reach(
    database: Database, postgres_server: PostgresServer
) -> None:
    """What is answered is 503, to be tried again, and not 500."""
    async with database.writing() as connection:
        await connection.execute(text("CREATE ROLE crowded LOGIN CONNECTION LIMIT 0"))
    crowded = database_at(str(database.engine.url).replace("bullpen@", "crowded@"), SYSTEM_CLOCK)
    for transaction in (crowded.reading(), crowded.reading(brief=True), crowded.writing(), crowded.writing(brief=True)):
        with pytest.raises(RecordsUnavailable, match="too many connections"):
            async with transaction:
                raise AssertionError("there is no room")
    async with database.writing() as connection:
        await connection.execute(text("DROP ROLE crowded"))
    await crowded.close()


async def test_a_server_that_is_starting_up_is_out_of_reach(postgres_server: PostgresServer) -> None:
    """SQLAlchemy has no class of its own for what the server says then."""
    database = database_at(postgres_server.new_database(), SYSTEM_CLOCK)

    async def be_told_to_come_later() -> None:
        async with database.writing() as connection:
            await connection.execute(
                text("DO $$ BEGIN RAISE EXCEPTION 'the database system is starting up' USING ERRCODE = '57P03'; END $$")
            )

    with pytest.raises(RecordsUnavailable, match="starting up"):
        await be_told_to_come_later()
    await database.close()
