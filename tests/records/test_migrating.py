"""Opening the records: making what is missing, waiting for who migrates, refusing what is newer."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, MetaData, insert, select, text

from bullpen import BadOption, RecordsTooNew, RecordsUnavailable
from bullpen.clock import SYSTEM_CLOCK
from bullpen.records.database import database_at
from bullpen.records.migrating import HEAD, VERSION_TABLE, upgrade_to
from bullpen.records.migrations.versions import v0021_words_of_runs
from bullpen.records.records import Records
from bullpen.records.runs.words import TaskState
from bullpen.records.tables import access, metadata, model, runs
from bullpen.records.tables.files import part
from bullpen.records.tables.outbox import OutboxBase
from tests.records.files.runs import make_run

_TABLES = {*metadata.tables, *OutboxBase.metadata.tables}


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'records.db'}"
    return str(request.getfixturevalue("postgres_server").new_database())


def _differences(connection: Connection) -> list[object]:
    """Between the database and the tables that the code speaks of."""
    wanted = MetaData()
    for table in (*metadata.tables.values(), *OutboxBase.metadata.tables.values()):
        table.to_metadata(wanted)
    options = {"include_name": lambda name, kind, _: kind != "table" or name in _TABLES}
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), wanted))


# What SQLite's driver cannot compare, PostgreSQL's does; test_plans.py finds the index on SQLite.
@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
@pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression-based index")
async def test_the_migrations_make_the_tables_that_the_code_uses(records: Records) -> None:
    """A column that is in the code and in no migration is found here."""
    assert access.api_key.metadata is model.job.metadata
    async with records.database.reading() as connection:
        assert await connection.run_sync(_differences) == []


async def test_what_was_written_is_there_when_opened_again(address: str) -> None:
    async with await Records.open(address) as first:
        await first.tenants.create("acme")
    async with await Records.open(address) as second:
        assert [tenant.id for tenant in (await second.tenants.list()).items] == ["acme"]


async def test_an_older_read_model_is_scanned_anew(address: str) -> None:
    """Versions 2 and 7 have other words for each job: rows of version 1 would not be found by them."""
    database = database_at(address, SYSTEM_CLOCK)
    row = {"queue": "mail", "id": "1", "state": "waiting", "name": "n", "tags": "[]", "fields": "{}", "priority": 0}
    row |= {"key": 1, "attempts_made": 0, "added_ms": 1, "scan": 1}
    async with database.writing() as connection:
        await connection.run_sync(upgrade_to, "0001")
        columns, values = ", ".join(row), ", ".join(f":{name}" for name in row)
        await connection.execute(text(f"INSERT INTO bullpen_job ({columns}) VALUES ({values})"), row)
        await connection.execute(
            insert(model.stream), {"queue": "mail", "cursor": "7", "is_scanning": False, "scan": 3}
        )
    await database.close()
    async with await Records.open(address) as records:
        assert (await records.jobs.list()).jobs == ()
        assert (await records.jobs.lag())["mail"].is_scanning
        async with records.database.reading() as connection:
            found = (await connection.execute(select(model.stream.c.cursor, model.stream.c.scan))).one()
        assert tuple(found) == ("7", 5), "events are not counted twice"


async def test_failures_of_before_are_counted_by_their_reasons(address: str) -> None:
    """Version 13 begins with what the rows of version 12 tell."""
    database = database_at(address, SYSTEM_CLOCK)
    row = {"queue": "mail", "name": "n", "tags": [], "fields": {}, "priority": 0, "attempts_made": 1, "added_ms": 1}
    row |= {"state": "failed", "fingerprint": "3f9a2c41d07e", "scan": 1, "tenant": None, "error": "no host"}
    rows = [{**row, "key": n, "id": str(n), "finished_ms": n} for n in range(1, 4)]
    rows[0]["tenant"], rows[1]["state"] = "acme", "waiting"
    async with database.writing() as connection:
        await connection.run_sync(upgrade_to, "0012")
        await connection.execute(insert(model.job), rows)
    await database.close()
    async with await Records.open(address) as records:
        (group,) = await records.jobs.failures()
        assert (group.count, group.newest_ms, group.oldest_ms, group.error) == (2, 3, 1, "no host")
        assert [group.count for group in await records.jobs.failures(tenant="acme")] == [1]


async def test_checkpoints_of_before_keep_what_they_need(address: str) -> None:
    """Version 20 makes their table anew on SQLite, to which the rows of their blobs refer."""
    database = database_at(address, SYSTEM_CLOCK)
    async with database.writing() as connection:
        await connection.run_sync(upgrade_to, "0019")
        of = {"id": "r1", "tenant": "acme", "created_by": "ann", "state": "running", "told": 0, "created_ms": 1}
        await connection.execute(insert(runs.run), of)
        of = {"id": "t1", "run": "r1", "tenant": "acme", "kind": "agent_run", "state": "running", "queue": "q"}
        of |= {"prompt": "go", "terms": b"", "created_ms": 1, "changed_ms": 1}
        await connection.execute(insert(runs.task), of)
        row = {"id": "c1", "task": "t1", "place": 3, "sha256": "a" * 64, "size": 1, "created_ms": 1}
        columns, values = ", ".join(row), ", ".join(f":{name}" for name in row)
        await connection.execute(text(f"INSERT INTO bullpen_checkpoint ({columns}) VALUES ({values})"), row)
        await connection.execute(insert(part), {"checkpoint": "c1", "sha256": "b" * 64})
    await database.close()
    async with await Records.open(address) as records:
        found = await records.files.checkpoint("t1")
        assert found is not None
        assert found.id == "c1"
        async with records.database.reading() as connection:
            assert (await connection.execute(select(part.c.sha256))).scalars().all() == ["b" * 64]


async def test_runs_of_before_are_found_by_their_words(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 21 gives words to all that are there, some at a time, and goes on from their numbers."""
    monkeypatch.setattr(v0021_words_of_runs, "_AT_ONCE", 2)
    database = database_at(address, SYSTEM_CLOCK)
    run = {"created_by": "user:ann", "state": "completed", "told": 0}
    task = {"kind": "agent_run", "queue": "q", "terms": b"", "changed_ms": 1, "outcome": None}
    async with database.writing() as connection:
        await connection.run_sync(upgrade_to, "0020")
        for n in range(5):
            tenant, state = ("acme", "other")[n % 2], ("completed", "failed")[n == 3]
            # The last came first.
            of = {**run, "id": f"run_{n}", "tenant": tenant, "state": state, "created_ms": 10 - n}
            await connection.execute(insert(runs.run), of)
            problem = b'{"status": "failed", "error": {"code": "E007", "message": "no such moon", "retryable": false}}'
            first = {
                **task,
                "id": f"task_{n}",
                "run": f"run_{n}",
                "tenant": tenant,
                "state": state,
                "created_ms": 10 - n,
            }
            first |= {"prompt": f"Study planet {n}", "outcome": problem if state == "failed" else b"no JSON"}
            child = {**first, "id": f"part_{n}", "parent": f"task_{n}", "outcome": None, "prompt": "dust"}
            for one in (first, child):
                await connection.execute(insert(runs.task), one)
    await database.close()
    async with await Records.open(address) as records:

        async def found(text: str, **within: Any) -> list[str]:
            return [run.id for run in (await records.runs.page(text=text, **within)).runs]

        assert await found("planets") == []
        assert await found("planet") == await found("ann") == [f"run_{n}" for n in range(5)], "the newest first"
        assert await found("planet", tenant="other") == ["run_1", "run_3"]
        assert await found("moon e007") == await found("study", state=TaskState.FAILED) == ["run_3"]
        assert await found("planet 4") == await found("part_4") == ["run_4"]
        assert await found("dust") == []
        await make_run(records, "run_9", "task_9")
        assert (await found("run"))[0] == "run_9"


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
