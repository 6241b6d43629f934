"""Runs that ended long ago are forgotten, with all that is known of them but their bookings."""

import pytest
from sqlalchemy import func, select

from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import tool
from bullpen.errors import BadOption, RecordMissing
from bullpen.records.records import Records
from bullpen.records.runs.forgetting import forget_old
from bullpen.records.tables.credits import hold
from bullpen.records.tables.journal import entry, journal
from bullpen.records.tables.runs import progress
from tests.agents.runs.conftest import TENANT, Making, says, working

_DAY_MS = 86_400_000


@tool(policy=Policy.READ_ONLY)
async def look() -> str:
    """Look."""
    return "seen"


async def _rows(records: Records) -> int:
    """In every table that has what happened in runs."""
    async with records.database.reading() as connection:
        counts = [
            (await connection.execute(select(func.count()).select_from(table))).scalar_one()
            for table in (journal, entry, progress, hold)
        ]
    return sum(counts)


async def test_old_runs_go_and_their_bookings_stay(
    agents_with: Making, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BULLPEN_RUN_DAYS", "7")
    async with agents_with(says("done"), [look]) as agents, working(agents):
        sent = await agents.submit("go", tenant=TENANT)
        charged = (await agents.result(sent.run_id, timeout=60)).credits_charged
    now_ms = records.database.clock.now_ms()
    assert await forget_old(records.database, now_ms=now_ms + 6 * _DAY_MS) == 0
    assert (await records.runs.get(sent.run_id)).id == sent.run_id
    assert await forget_old(records.database, now_ms=now_ms + 8 * _DAY_MS) == 1
    with pytest.raises(RecordMissing):
        await records.runs.get(sent.run_id)
    assert await _rows(records) == 0
    balance = await records.credits.balance(TENANT)
    assert (balance.spent, balance.held) == (charged, 0)
    assert await records.credits.unbalanced() == []


async def test_a_run_that_goes_on_is_never_forgotten(
    agents_with: Making, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BULLPEN_RUN_DAYS", "1")
    async with agents_with(says("done")) as agents:
        sent = await agents.submit("go", tenant=TENANT)
        assert await forget_old(records.database, now_ms=records.database.clock.now_ms() + 900 * _DAY_MS) == 0
        assert (await agents.run(sent.run_id)).id == sent.run_id


async def test_without_the_setting_all_are_kept(
    agents_with: Making, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BULLPEN_RUN_DAYS", raising=False)
    async with agents_with(says("done")) as agents, working(agents):
        sent = await agents.submit("go", tenant=TENANT)
        await agents.result(sent.run_id, timeout=60)
        assert await forget_old(records.database, now_ms=records.database.clock.now_ms() + 900 * _DAY_MS) == 0


@pytest.mark.parametrize("days", ["0", "-1", "a week", "99999999999"])
async def test_what_is_no_number_of_days_is_told(records: Records, monkeypatch: pytest.MonkeyPatch, days: str) -> None:
    monkeypatch.setenv("BULLPEN_RUN_DAYS", days)
    with pytest.raises(BadOption, match="BULLPEN_RUN_DAYS"):
        await forget_old(records.database)
