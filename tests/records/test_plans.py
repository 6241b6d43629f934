"""What SQLite reads for a page: an index leads to it, however many other jobs and minutes there are."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert

from bullpen.records.audit import AuditFilter
from bullpen.records.model import leading
from bullpen.records.model.reasons import Order
from bullpen.records.model.searching import JobFilter
from bullpen.records.records import Records
from bullpen.records.runs.words import TaskState
from bullpen.records.tables.model import tally
from tests.support.migrated import migrated_file


@pytest.fixture
async def file_records(tmp_path: Path) -> AsyncIterator[Records]:
    address, blobs = migrated_file(tmp_path / "records.db"), str(tmp_path / "blobs")
    async with await Records.open(address, blobs=blobs) as records:
        yield records


class Asked:
    """The statements that are run from now on."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._statements: list[str] = []
        event.listen(records.database.engine.sync_engine, "before_cursor_execute", self._note)

    def _note(self, *call: Any) -> None:
        self._statements.append(call[2])

    def statements(self, table: str) -> list[str]:
        """Those that read this table."""
        return [one for one in self._statements if f"FROM {table} " in one.replace("\n", "")]

    def count(self, table: str) -> int:
        return len(self.statements(table))

    async def plan(self, table: str) -> list[str]:
        """How the last one that reads this table finds its rows."""
        return await self.plan_of(self.statements(table)[-1])

    async def plan_of(self, statement: str) -> list[str]:
        async with self._records.database.reading() as connection:
            plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", (1,) * statement.count("?"))
            return [row[-1] for row in plan]


@pytest.mark.parametrize(
    "wanted, index",
    [
        ({}, "ix_bullpen_job_added"),
        ({"queue": "mail"}, "ix_bullpen_job_queue_added (queue=?)"),
        ({"queues": ["mail"]}, "ix_bullpen_job_queue_added (queue=?)"),
        ({"queues": ["mail", "reports"], "queue": "mail"}, "ix_bullpen_job_queue_added (queue=?)"),
        ({"queues": ["mail"], "states": ["failed"]}, "ix_bullpen_job_state_added (queue=? AND state=?)"),
        ({"states": ["failed"]}, "ix_bullpen_job_any_state_added (<expr>=?)"),
        ({"queue": "mail", "states": ["failed"]}, "ix_bullpen_job_state_added (queue=? AND state=?)"),
        ({"tenant": "acme"}, "ix_bullpen_job_tenant_added (tenant=?)"),
        ({"tenant": "acme", "queue": "mail"}, "ix_bullpen_job_tenant_queue_added (tenant=? AND queue=?)"),
        ({"tenant": "acme", "states": ["failed"]}, "ix_bullpen_job_tenant_state_added (tenant=? AND state=?)"),
        ({"name": "work"}, "ix_bullpen_job_name_added (name=?)"),
        ({"workspace": "team"}, "ix_bullpen_job_workspace_added (workspace=?)"),
        ({"fingerprint": "3f9a2c41d07e"}, "ix_bullpen_job_fingerprint_added (fingerprint=?)"),
    ],
    ids=str,
)
async def test_a_list_goes_down_an_index(file_records: Records, wanted: dict[str, Any], index: str) -> None:
    """Without one, a list of 50 sorts all jobs of a queue, or passes by all that are in other states."""
    asked = Asked(file_records)
    assert JobFilter(**wanted).has_index
    await file_records.jobs.list(JobFilter(**wanted))
    (step,) = await asked.plan("bullpen_job")
    assert step.endswith(index)


async def test_a_queue_outside_the_scope_is_not_looked_at(file_records: Records) -> None:
    """All its jobs would be passed by, and the time that takes would tell that it is there."""
    asked = Asked(file_records)
    page = await file_records.jobs.list(JobFilter(queue="reports", queues=["mail"]))
    assert (page.jobs, asked.count("bullpen_job")) == ((), 0)


@pytest.mark.parametrize("wanted", [{}, {"tenant": "acme"}, {"states": ["failed"], "name": "work"}], ids=str)
async def test_a_list_of_a_tag_goes_down_the_tags(file_records: Records, wanted: dict[str, Any]) -> None:
    """Whatever else is asked for: they have the list's order, so that nothing is sorted."""
    asked = Asked(file_records)
    assert JobFilter(tag="vip", **wanted).has_index == (not wanted)
    await file_records.jobs.list(JobFilter(tag="vip", **wanted))
    by_tag, by_key = await asked.plan("bullpen_job JOIN")
    assert by_tag.startswith("SEARCH bullpen_job_tag")
    assert by_tag.endswith("(tag=?)")
    assert by_key.endswith("INTEGER PRIMARY KEY (rowid=?)")


@pytest.mark.parametrize(
    "few, index", [(10_000, "ix_bullpen_job_name_added (name=?)"), (-1, "ix_bullpen_job_tenant_state_added")]
)
async def test_a_name_that_few_jobs_have_leads_past_tenant_and_state(
    few: int, index: str, file_records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All jobs of the tenant were looked at for one that few have; one that many have is soon met among them."""
    monkeypatch.setattr(leading, "_FEW", few)
    asked = Asked(file_records)
    await file_records.jobs.list(JobFilter(name="work", tenant="acme", states=["failed"]))
    (step,) = await asked.plan("bullpen_job")
    assert f"USING INDEX {index}" in step


@pytest.mark.parametrize(
    "wanted",
    [
        {"text": "work"},
        {"queue": "mail", "tenant": "acme", "states": ["failed"]},
        {"queue": "mail", "name": "work"},
        {"states": ["failed", "active"]},
        {"name": "work", "states": ["failed"]},
        {"name": "work", "workspace": "team"},
        {"tag": "vip", "until_ms": 1},
        {"error_kind": "timeout"},
    ],
    ids=str,
)
def test_what_no_index_leads_to_is_known_as_such(wanted: dict[str, Any]) -> None:
    assert not JobFilter(**wanted).has_index


@pytest.mark.parametrize(
    "wanted, index",
    [
        ({}, "ix_bullpen_job_failed_why (queue=? AND name=? AND fingerprint=?)"),
        ({"queue": "mail"}, "ix_bullpen_job_failed_why (queue=? AND name=? AND fingerprint=?)"),
        (
            {"tenant": "acme"},
            "ix_bullpen_job_failed_why_of_tenant (tenant=? AND queue=? AND name=? AND fingerprint=?)",
        ),
    ],
    ids=str,
)
async def test_of_each_reason_of_failures_two_jobs_are_read(
    file_records: Records, wanted: dict[str, Any], index: str
) -> None:
    """The last and the first, at the ends of an index: however many failed, the others are not looked at."""
    asked = Asked(file_records)
    await file_records.jobs.failures(**wanted)
    steps = await asked.plan("bullpen_reason")
    jobs = [step for step in steps if "bullpen_job" in step]
    assert [step.partition("USING INDEX ")[2] for step in jobs] == [index] * 2
    assert "SEARCH newest USING INTEGER PRIMARY KEY (rowid=?)" in steps


@pytest.mark.parametrize("tenant", [None, "acme"])
@pytest.mark.parametrize("order", Order)
async def test_late_failures_are_counted_down_an_index(file_records: Records, order: Order, tenant: str | None) -> None:
    """Those of last week are not looked at, however many they are."""
    asked = Asked(file_records)
    await file_records.jobs.failures(since_ms=1, order=order, tenant=tenant)
    steps = [step for step in await asked.plan("bullpen_reason") if "bullpen_job" in step]
    assert steps
    assert all("ix_bullpen_job_failed_why" in step and "fingerprint=?" in step for step in steps)
    assert any(step.endswith("finished_ms>?)") for step in steps)


async def test_the_split_of_a_queue_by_tenant_reads_its_tallies_once(file_records: Records) -> None:
    """There are as many as tenants have states, and a page of a queue asks again while it is looked at."""
    row = {"queue": "mail", "state": "waiting", "tenant": "acme", "jobs": 1}
    async with file_records.database.writing() as connection:
        await connection.execute(insert(tally), row)
    asked = Asked(file_records)
    await file_records.jobs.counts_by_tenant("mail")
    assert asked.count("bullpen_tally") == 2
    steps = await asked.plan("bullpen_tally")
    assert steps == [
        "SEARCH bullpen_tally USING INDEX sqlite_autoindex_bullpen_tally_1 (queue=? AND state=? AND tenant=?)"
    ]


async def test_minutes_of_a_queue_are_found_by_their_time(file_records: Records) -> None:
    """All of its minutes are those of a week and of each tenant, and a page shows an hour."""
    asked = Asked(file_records)
    await file_records.jobs.rates(since_ms=1, until_ms=2, queue="mail")
    step, *_ = await asked.plan("bullpen_minute")
    assert step.endswith("ix_bullpen_minute_minute_ms (minute_ms>? AND minute_ms<?)")


@pytest.mark.parametrize(
    "wanted, index",
    [({"actor": "user:ann"}, "actor_number (actor=?)"), ({"action": "queue.pause"}, "action_number (action=?)")],
    ids=str,
)
async def test_the_audit_log_by_who_and_what_goes_down_an_index(
    file_records: Records, wanted: dict[str, Any], index: str
) -> None:
    asked = Asked(file_records)
    await file_records.audit.list(AuditFilter(**wanted))
    (step,) = await asked.plan("bullpen_audit")
    assert step.endswith(f"ix_bullpen_audit_{index}")


@pytest.mark.parametrize(
    "wanted, index",
    [
        ({"state": TaskState.RUNNING}, "state_created (state=?)"),
        ({"state": TaskState.RUNNING, "tenant": "acme"}, "tenant_state_created (tenant=? AND state=?)"),
        ({"workspace": "sales", "tenant": "acme"}, "tenant_workspace_created (tenant=? AND workspace=?)"),
    ],
    ids=str,
)
async def test_runs_in_a_state_or_a_workspace_go_down_an_index(
    file_records: Records, wanted: dict[str, Any], index: str
) -> None:
    asked = Asked(file_records)
    await file_records.runs.page(**wanted)
    (step,) = await asked.plan("bullpen_run")
    assert step.endswith(f"ix_bullpen_run_{index}")


_DOWN_WORDS = ("bullpen_run_text VIRTUAL TABLE", "uq_bullpen_run_number (number=?)")


@pytest.mark.parametrize(
    "wanted",
    [{}, {"tenant": "acme", "workspace": "sales"}, {"state": TaskState.FAILED}, {"state": TaskState.COMPLETED}],
    ids=str,
)
async def test_a_search_of_runs_goes_down_the_index_of_words(file_records: Records, wanted: dict[str, Any]) -> None:
    """Neither all runs of a tenant or in a state are looked at, nor all that have the word sorted."""
    asked = Asked(file_records)
    await file_records.runs.page(text="moon", **wanted)
    words, by_number = await asked.plan("bullpen_run")
    assert _DOWN_WORDS[0] in words
    assert by_number.endswith(_DOWN_WORDS[1])


async def test_a_long_word_is_looked_for_among_the_newest_runs_first(file_records: Records) -> None:
    asked = Asked(file_records)
    await file_records.runs.page(text="typewriters", tenant="acme")
    newest, down = asked.statements("bullpen_run")
    assert "LIMIT" in newest.partition("bullpen_run_text")[2]
    for statement in (newest, down):
        steps = [step for step in await asked.plan_of(statement) if "bullpen_run" in step]
        assert [part in step for part, step in zip(_DOWN_WORDS, steps, strict=True)] == [True, True]


@pytest.mark.parametrize(
    "wanted, index",
    [
        ({"state": TaskState.RUNNING}, "state_created (state=?)"),
        ({"state": TaskState.RUNNING, "tenant": "acme"}, "tenant_state_created (tenant=? AND state=?)"),
        ({"is_asking": True, "tenant": "acme", "workspace": "sales"}, "tenant_state_created (tenant=? AND state=?)"),
    ],
    ids=str,
)
async def test_a_search_of_runs_that_are_not_over_reads_those(
    file_records: Records, wanted: dict[str, Any], index: str
) -> None:
    """They are few, and may be far down among all runs that have the word."""
    asked = Asked(file_records)
    await file_records.runs.page(text="moon", **wanted)
    first, *others = [step for step in await asked.plan("bullpen_run") if "TEMP" not in step]
    assert first.endswith(f"ix_bullpen_run_{index}")
    assert not [step for step in others if step.startswith("SCAN bullpen_run ")]


async def test_runs_that_ask_a_person_are_looked_for_among_those_that_are_suspended(file_records: Records) -> None:
    asked = Asked(file_records)
    await file_records.runs.page(is_asking=True)
    first, *others = await asked.plan("bullpen_run")
    assert first.endswith("ix_bullpen_run_state_created (state=?)")
    assert not [step for step in others if step.startswith("SCAN")]


@pytest.mark.parametrize("cursor", [None, "1~k"], ids=["first", "next"])
@pytest.mark.parametrize("tenant, index", [(None, "created"), ("acme", "tenant_created")])
async def test_a_page_of_keys_goes_down_an_index(
    file_records: Records, tenant: str | None, index: str, cursor: str | None
) -> None:
    """Without one, each page sorts all keys that were ever made: those that are revoked stay."""
    asked = Asked(file_records)
    await file_records.keys.list(tenant=tenant, cursor=cursor)
    (step,) = await asked.plan("bullpen_api_key")
    assert f"USING INDEX ix_bullpen_api_key_{index}" in step


async def test_runs_that_ended_long_ago_are_found_by_their_end(file_records: Records) -> None:
    """Their files are looked for each hour."""
    asked = Asked(file_records)
    await file_records.files.expire()
    steps = await asked.plan("bullpen_file")
    assert any("ix_bullpen_run_finished (finished_ms<?)" in step for step in steps)
    assert not any(step.startswith("SCAN bullpen_run") for step in steps)
