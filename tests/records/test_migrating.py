"""Opening the records: making what is missing, waiting for who migrates, refusing what is newer."""

import asyncio

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, MetaData, text

from bullpen import BadOption, RecordsTooNew, RecordsUnavailable
from bullpen.records.migrating import HEAD, VERSION_TABLE
from bullpen.records.records import Records
from bullpen.records.tables import access, metadata, model
from bullpen.records.tables.outbox import OutboxBase

_TABLES = {*metadata.tables, *OutboxBase.metadata.tables}


def _differences(connection: Connection) -> list[object]:
    """Between the database and the tables that the code speaks of."""
    wanted = MetaData()
    for table in (*metadata.tables.values(), *OutboxBase.metadata.tables.values()):
        table.to_metadata(wanted)
    options = {"include_name": lambda name, kind, _: kind != "table" or name in _TABLES}
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), wanted))


async def test_the_migrations_make_the_tables_that_the_code_uses(records: Records) -> None:
    """A column that is in the code and in no migration is found here."""
    assert access.api_key.metadata is model.job.metadata
    async with records.database.reading() as connection:
        assert await connection.run_sync(_differences) == []


async def test_what_was_written_is_there_when_opened_again(address: str) -> None:
    async with await Records.open(address) as first:
        await first.tenants.create("acme")
    async with await Records.open(address) as second:
        assert [tenant.id for tenant in await second.tenants.list()] == ["acme"]


async def test_many_may_open_at_once(address: str) -> None:
    """One of them migrates; none of the others stumbles over it."""
    opened = await asyncio.gather(*[Records.open(address) for _ in range(8)])
    await opened[0].tenants.create("acme")
    for records in opened:
        assert (await records.tenants.get("acme")).id == "acme"
        await records.close()


async def test_a_newer_database_is_refused_and_left_as_it_is(address: str) -> None:
    """An old process beside new ones says what is the matter, instead of reading nonsense."""
    async with await Records.open(address) as records, records.database.writing() as connection:
        await connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(RecordsTooNew, match="9999") as refused:
        await Records.open(address)
    assert refused.value.code == "records-too-new"
    assert HEAD < "9999"


async def test_a_database_that_does_not_answer_is_told_without_its_password() -> None:
    with pytest.raises(RecordsUnavailable) as away:
        await Records.open("postgresql://ann:s3cret@127.0.0.1:1/nothing")
    assert "s3cret" not in str(away.value)


@pytest.mark.parametrize("address", ["mysql://ann:s3cret@host/name", "records", "", "sqlite+pysqlite:///x"])
async def test_another_kind_of_address_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_RECORDS", "elsewhere")
    with pytest.raises(BadOption, match="sqlite:PATH") as refused:
        await Records.open(address)
    assert "s3cret" not in str(refused.value)
