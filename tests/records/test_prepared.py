"""Statements that pass SQLAlchemy by: within its transaction, with rows as they were given."""

import contextlib
from typing import Any

import pytest
from asyncpg.exceptions import StringDataRightTruncationError  # type: ignore[import-untyped]  # it has no types
from sqlalchemy import ColumnElement, insert, select, text, update

from bullpen.records.database import Database
from bullpen.records.prepared import Followed, Parameters, Prepared
from bullpen.records.records import Records
from bullpen.records.tables.credits import account, entry
from bullpen.records.tables.journal import entry as journal_entry
from bullpen.records.tables.journal import journal


@pytest.fixture
def database(records: Records) -> Database:
    return records.database


async def _runs(database: Database) -> list[tuple[str, int]]:
    async with database.reading() as connection:
        found = await connection.execute(select(journal.c.run, journal.c.epoch).order_by(journal.c.run))
        return [(row.run, row.epoch) for row in found]


@pytest.mark.parametrize("brief", [True, False])
@pytest.mark.parametrize("is_first", [True, False], ids=["first of its transaction", "after another"])
@pytest.mark.parametrize("many", [True, False])
async def test_what_is_rolled_back_leaves_no_trace(
    database: Database, *, brief: bool, is_first: bool, many: bool
) -> None:
    """Also where nothing was asked before it: it must not begin to write on its own."""
    new = Prepared(database, insert(journal))
    rows = [{"run": name, "epoch": 1, "ended_ms": None} for name in ("a", "b")]
    with contextlib.suppress(ZeroDivisionError):
        async with database.writing(brief=brief) as connection:
            if not is_first:
                await connection.execute(text("SELECT 1"))
            if many:
                await new.run(connection, rows)
            else:
                await new.fetch(connection, rows[0])
            raise ZeroDivisionError
    assert await _runs(database) == []
    async with database.writing(brief=brief) as connection:
        await new.run(connection, [])
        await new.run(connection, rows)
    assert await _runs(database) == [("a", 1), ("b", 1)]


def _put(database: Database) -> Followed:
    def standing(parameter: Parameters, *only_if: ColumnElement[bool]) -> Any:
        return select(journal.c.epoch).where(journal.c.run == parameter("run"), *only_if)

    return Followed(database, standing, journal_entry, replaced=("is_done", "head", "value"))


def _entry(place: int, value: bytes | None) -> dict[str, Any]:
    return {"run": "a", "place": place, "is_done": value is not None, "head": b"{}", "value": value}


async def test_rows_that_follow_replace_those_that_are_there(database: Database) -> None:
    put = _put(database)
    async with database.writing(brief=True) as connection:
        await Prepared(database, insert(journal)).run(connection, [{"run": "a", "epoch": 7, "ended_ms": None}])
        assert await put.fetch(connection, {"run": "b"}, [_entry(0, b"lost")]) is None
        assert [*(await put.fetch(connection, {"run": "a"}, [_entry(0, None), _entry(1, b"one")]) or ())] == [7]
        assert [*(await put.fetch(connection, {"run": "a"}, [_entry(0, b"zero"), _entry(2, None)]) or ())] == [7]
        assert [*(await put.fetch(connection, {"run": "a"}, []) or ())] == [7]
        columns = (journal_entry.c.place, journal_entry.c.is_done, journal_entry.c.value)
        found = (await connection.execute(select(*columns).order_by(journal_entry.c.place))).all()
    assert [tuple(row) for row in found] == [(0, True, b"zero"), (1, True, b"one"), (2, False, None)]


def _move(database: Database) -> Followed:
    """So much more is available, and entries count from what that comes to."""

    def more(parameter: Parameters, *only_if: ColumnElement[bool]) -> Any:
        this = update(account).where(account.c.id == parameter("account_id"), *only_if)
        return this.values(available=account.c.available + parameter("more")).returning(account.c.available)

    return Followed(database, more, entry, counted={"available": "available"})


def _line(key: str, available: int) -> dict[str, Any]:
    sums = {"available": available, "held": 1, "spent": 2}
    return {"account": "a", "kind": "hold", "amount": 5, "key": key, "memo": "", "at_ms": 9, **sums}


async def _open(database: Database) -> None:
    async with database.writing() as connection:
        empty = {"id": "a", "tenant": "t", "available": 0, "held": 0, "spent": 0, "created_ms": 0}
        await connection.execute(insert(account), empty)


async def test_rows_count_from_what_was_given_and_stay_in_order(database: Database) -> None:
    await _open(database)
    lines = [_line(f"k{n}", n - 19) for n in range(20)]
    async with database.writing(brief=True) as connection:
        await _move(database).fetch(connection, {"account_id": "a", "more": 100}, lines)
        found = await connection.execute(select(entry.c.key, entry.c.available, entry.c.spent).order_by(entry.c.number))
        assert [tuple(row) for row in found] == [(f"k{n}", 81 + n, 2) for n in range(20)]


async def test_what_is_too_long_for_its_column_is_not_cut(database: Database) -> None:
    await _open(database)
    long = "k" * 300
    if database.is_postgres:
        with pytest.raises(StringDataRightTruncationError, match="too long"):
            async with database.writing(brief=True) as connection:
                await _move(database).fetch(connection, {"account_id": "a", "more": 1}, [_line(long, 0)])
    else:
        async with database.writing(brief=True) as connection:
            await _move(database).fetch(connection, {"account_id": "a", "more": 1}, [_line(long, 0)])
            assert (await connection.execute(select(entry.c.key))).scalar_one() == long
