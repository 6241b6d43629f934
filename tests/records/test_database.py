"""Transactions on records, whatever becomes of those who asked for them."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.clock import SYSTEM_CLOCK
from bullpen.records.database import Database, database_at
from bullpen.records.sqlite import Disk, RecordsConnection


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = database_at(f"sqlite:{tmp_path}/records.db", SYSTEM_CLOCK)
    async with database.writing() as connection:
        await connection.execute(text("CREATE TABLE note (words TEXT)"))
    yield database
    await database.close()


@pytest.mark.parametrize("brief", [True, False], ids=["brief", "in a thread"])
@pytest.mark.parametrize("cancels", [1, 2, 3])
async def test_who_is_cancelled_while_it_waits_for_its_turn_holds_no_lock(
    database: Database, tmp_path: Path, cancels: int, *, brief: bool
) -> None:
    """However often: a lock that nobody gives back stops every writer of the file."""
    other = sqlite3.connect(tmp_path / "records.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(_write(database, "never", brief=brief))
    await _until_in_a_thread(database)
    for _ in range(cancels):
        waiting.cancel()
        await asyncio.sleep(0)
    other.execute("COMMIT")
    await asyncio.wait([waiting])
    await asyncio.wait_for(_write(database, "now", brief=brief), 60)
    assert other.execute("SELECT words FROM note").fetchall() == [("now",)]
    other.close()


@pytest.mark.parametrize("brief", [True, False], ids=["brief", "in a thread"])
async def test_an_error_leaves_no_trace(database: Database, *, brief: bool) -> None:
    with contextlib.suppress(ZeroDivisionError):
        async with database.writing(brief=brief) as connection:
            await connection.execute(text("INSERT INTO note VALUES ('lost')"))
            raise ZeroDivisionError
    async with database.reading() as connection:
        assert (await connection.execute(text("SELECT count(*) FROM note"))).scalar_one() == 0


async def test_brief_writers_take_turns(database: Database) -> None:
    await asyncio.gather(*(_write(database, str(n), brief=True) for n in range(50)))
    async with database.reading() as connection:
        assert (await connection.execute(text("SELECT count(DISTINCT words) FROM note"))).scalar_one() == 50


async def test_what_is_brief_stays_in_the_loop_until_it_goes_aside(database: Database) -> None:
    """Both bring all rows, however they are fetched."""
    many = text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) SELECT i, thread() FROM n")
    here = threading.get_ident()
    async with database.reading(brief=True) as connection:
        _add_function(connection, "thread", threading.get_ident)
        near = (await connection.execute(many)).all()
        database.go_aside(connection)
        far = (await connection.execute(many)).all()
        first = (await connection.execute(many)).first()
    assert [i for i, _ in near] == [i for i, _ in far] == list(range(1, 1001))
    assert {thread for _, thread in near} == {here}
    assert here not in {thread for _, thread in far}
    assert first is not None
    assert first[0] == 1


async def test_commits_leave_the_loop_for_a_while_once_one_was_slow(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken_s = iter([0.0001, 0.0001, 0.5, *[0.0001] * 97])
    threads: list[int] = []
    note = Disk.note

    def noted(disk: Disk, _: float) -> None:
        threads.append(threading.get_ident())
        note(disk, next(taken_s))

    monkeypatch.setattr(Disk, "note", noted)
    for n in range(100):
        await _write(database, str(n), brief=True)
    in_the_loop = [thread == threading.get_ident() for thread in threads]
    assert in_the_loop[:4] == [False, True, True, False]
    assert in_the_loop[-1]


def _add_function(connection: AsyncConnection, name: str, function: Callable[[], int]) -> None:
    assert connection.sync_connection is not None
    driver = connection.sync_connection.connection.driver_connection
    assert isinstance(driver, RecordsConnection)
    driver._conn.create_function(name, 0, function)


async def _write(database: Database, words: str, *, brief: bool) -> None:
    async with database.writing(brief=brief) as connection:
        await connection.execute(text("INSERT INTO note VALUES (:words)"), {"words": words})


async def _until_in_a_thread(database: Database) -> None:
    """The connection is out of the pool, and its thread waits for the file's lock."""
    pool = database.engine.sync_engine.pool
    async with asyncio.timeout(60):
        while pool.checkedout() == 0:  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        # The call that begins the transaction is under way once the loop has nothing else to do.
        for _ in range(20):
            await asyncio.sleep(0)
