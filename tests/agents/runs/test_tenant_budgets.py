"""Runs against budgets of their tenant: refused at submission, stopped before a call, and never over."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from bullpen.agents.llm.prices import micro
from bullpen.agents.llm.scripted import Turn
from bullpen.agents.llm.words import Request, Usage
from bullpen.clock import SystemClock
from bullpen.errors import BudgetSpent
from bullpen.records.credits.periods import DAY_MS
from bullpen.records.credits.words import Period, TenantBudget
from bullpen.records.records import Records
from tests.agents.runs.conftest import TENANT, Making, says, working
from tests.agents.runs.test_budgets import (
    CALL,
    DEAR,
    ESTIMATE,
    LONGEST,
    PAID_FOR,
    PRICE,
    REPLY_TOKENS,
    RUNS,
    Talker,
    check_sums,
    look,
    results_of,
    submitted,
)

_RICH = 100_000
_PATIENCE_S = 100


class _Noon(SystemClock):
    """It is noon, in UTC, when a test begins: no day ends in the midst of it."""

    def __init__(self) -> None:
        now_ms = super().now_ms()
        self._later_ms = now_ms - now_ms % DAY_MS + DAY_MS // 2 - now_ms

    def now_ms(self) -> int:
        return super().now_ms() + self._later_ms


@pytest.fixture
async def records(address: str) -> AsyncIterator[Records]:
    async with await Records.open(address, clock=_Noon()) as records:
        yield records


async def _budget(records: Records) -> TenantBudget:
    [found] = await records.credits.budgets_of(TENANT)
    return found


async def test_fifty_that_a_day_has_no_room_for_are_refused_at_once(agents_with: Making, records: Records) -> None:
    talker = Talker()
    await records.credits.set_budget(TENANT, Period.DAY, micro(PAID_FOR * ESTIMATE))
    async with agents_with(talker, [look], deposit=_RICH, models=DEAR) as agents:
        sent = await submitted(agents, [1] * RUNS)
        assert len(sent) == PAID_FOR
        assert len((await records.runs.page(tenant=TENANT, limit=500)).runs) == PAID_FOR
        assert (await _budget(records)).held == micro(PAID_FOR * ESTIMATE)
        results = await results_of(agents, sent)
        assert {result.status for result in results} == {"completed"}
        await check_sums(records, talker, results, _RICH)
    used = await _budget(records)
    assert (used.held, used.spent) == (0, talker.asked * CALL)
    assert used.spent <= used.most


async def test_fifty_that_a_day_has_no_more_room_for_stop_before_the_call(
    agents_with: Making, records: Records
) -> None:
    """All have set their estimate aside, and go beyond it; the purse would have paid."""
    talker, most = Talker(), micro(PAID_FOR * LONGEST * PRICE)
    await records.credits.set_budget(TENANT, Period.DAY, most)
    async with agents_with(talker, [look], deposit=_RICH, models=DEAR) as agents:
        sent = await submitted(agents, [1 + n % LONGEST for n in range(RUNS)])
        assert len(sent) == RUNS
        results = await results_of(agents, sent)
        stopped = [result for result in results if result.status != "completed"]
        assert 0 < len(stopped) < RUNS
        renews_ms = (await _budget(records)).renews_ms
        assert renews_ms is not None
        for result in stopped:
            assert result.error is not None
            assert (result.stop_reason, result.error.code, result.error.retryable) == ("credits", "E003", False)
            for text in (result.error.message, result.error.user_facing_message):
                assert "budget of the day" in text
                assert "00:00 UTC" in text
        await check_sums(records, talker, results, _RICH)
    used = await _budget(records)
    assert (used.held, used.spent) == (0, talker.asked * CALL)
    assert used.spent <= most


async def test_a_run_that_is_cancelled_gives_its_room_back(agents_with: Making, records: Records) -> None:
    await records.credits.set_budget(TENANT, Period.DAY, micro(ESTIMATE))
    async with agents_with(says("never"), deposit=_RICH) as agents:
        sent = await agents.submit("1", tenant=TENANT)
        assert (await _budget(records)).left == 0
        with pytest.raises(BudgetSpent, match="budget of the day"):
            await agents.submit("1", tenant=TENANT)
        await agents.cancel(sent.run_id)
        assert (await _budget(records)).left == micro(ESTIMATE)
        await agents.submit("1", tenant=TENANT)
    assert await records.credits.unbalanced() == []


async def test_a_call_under_way_when_its_run_is_cancelled_stays_charged(agents_with: Making, records: Records) -> None:
    """Nobody knows whether it was made: the day pays for it as the purse does."""
    asked = asyncio.Event()

    async def never(_: float) -> None:
        asked.set()
        await asyncio.Event().wait()

    def answer(_: Request) -> Turn:
        return Turn(text="too late", usage=Usage(1, 1), delay=1.0)

    await records.credits.set_budget(TENANT, Period.DAY, micro(1_000))
    async with agents_with(answer, deposit=_RICH, models=DEAR, sleep=never) as agents, working(agents):
        sent = await agents.submit("1", tenant=TENANT, max_tokens=REPLY_TOKENS, stream=False)
        await asyncio.wait_for(asked.wait(), _PATIENCE_S)
        await agents.cancel(sent.run_id)
        result = await agents.result(sent.run_id, timeout=_PATIENCE_S)
    used = await _budget(records)
    assert result.credits_charged == CALL
    assert (used.held, used.spent) == (0, CALL)
    assert await records.credits.unbalanced() == []
