"""Fifty runs of one organisation against credits for ten: not one micro-credit is spent that was not there."""

import asyncio

from bullpen.agents.agents import Agents
from bullpen.agents.llm.models import ModelTable, table_of
from bullpen.agents.llm.prices import micro
from bullpen.agents.llm.scripted import CallTurn, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.loop.booking import settle_all
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import tool
from bullpen.agents.words import Submitted, TaskResult
from bullpen.errors import CreditsShort
from bullpen.records.credits.budget import Budget, account_of
from bullpen.records.credits.credits import purse
from bullpen.records.credits.words import Entry, EntryKind, HoldState
from bullpen.records.records import Records
from tests.agents.runs.conftest import TENANT, Making, working

RUNS, PAID_FOR = 50, 10
_PATIENCE_S = 100
ESTIMATE = 11
"""Whole credits that a run of these sets aside at its submission."""
REPLY_TOKENS = 2_200
DEAR: ModelTable = table_of(
    {
        "version": "test",
        "credits_per_dollar": "100",
        "models": {
            "parrot": {
                "provider": "scripted", "context_window": 100_000, "max_output": 4_096, "input": "0", "output": "50",
            }
        },
    }
)  # fmt: skip
PRICE = 11
CALL = micro(PRICE)
"""The price of each call: 2,200 tokens at fifty dollars the million."""
LONGEST = 5
"""Calls of a run: fifty-five credits."""


@tool(policy=Policy.READ_ONLY)
async def look() -> str:
    """Look."""
    return "seen"


class Talker:
    """Asks for a tool as often as the prompt says, and then answers; counts what it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: Request) -> Turn:
        self.asked += 1
        wanted = int(request.messages[0].text)
        said = sum(message.role is Role.ASSISTANT for message in request.messages)
        usage = Usage(500, REPLY_TOKENS)
        if said + 1 == wanted:
            return Turn(text="done", usage=usage)
        return Turn(calls=(CallTurn("look", {}, id=f"c{said}"),), usage=usage)


async def submitted(agents: Agents, calls: list[int]) -> list[Submitted]:
    """All at once; those that were not refused."""

    async def submit(wanted: int) -> Submitted | CreditsShort:
        try:
            return await agents.submit(
                str(wanted), tenant=TENANT, max_tokens=REPLY_TOKENS, max_credits=100, stream=False
            )
        except CreditsShort as short:
            return short

    answers = await asyncio.gather(*map(submit, calls))
    refused = [one for one in answers if isinstance(one, CreditsShort)]
    assert all((one.agent_code, one.retryable) == ("E003", False) for one in refused)
    return [one for one in answers if isinstance(one, Submitted)]


async def results_of(agents: Agents, sent: list[Submitted]) -> list[TaskResult]:
    async with working(agents, concurrency=RUNS):
        return await asyncio.gather(*(agents.result(one.run_id, timeout=_PATIENCE_S) for one in sent))


async def _entries(records: Records) -> list[Entry]:
    found: list[Entry] = []
    for account in await records.credits.accounts(TENANT):
        cursor: str | None = None
        while True:
            page = await records.credits.statement(TENANT, account.id, limit=500, cursor=cursor)
            found += page.entries
            cursor = page.next_cursor
            if cursor is None:
                break
    return found


async def check_sums(records: Records, talker: Talker, results: list[TaskResult], deposit: int) -> None:
    """By the script's prices, to the micro-credit; and no account was ever below nothing."""
    purse = await records.credits.balance(TENANT)
    assert purse.spent == talker.asked * CALL == sum(result.credits_charged for result in results)
    assert purse.held == 0
    assert purse.available == micro(deposit) - purse.spent >= 0
    for result in results:
        assert result.credits_charged == result.llm_calls_made * CALL
    entries = await _entries(records)
    assert min(min(entry.available, entry.held, entry.spent) for entry in entries) >= 0
    assert await records.credits.unbalanced() == []


async def test_those_that_nobody_could_pay_are_refused_at_once(agents_with: Making, records: Records) -> None:
    talker, deposit = Talker(), PAID_FOR * ESTIMATE
    async with agents_with(talker, [look], deposit=deposit, models=DEAR) as agents:
        sent = await submitted(agents, [1] * RUNS)
        assert len(sent) == PAID_FOR
        assert len((await records.runs.page(tenant=TENANT, limit=500)).runs) == PAID_FOR
        results = await results_of(agents, sent)
        assert {result.status for result in results} == {"completed"}
        await check_sums(records, talker, results, deposit)


async def test_fifty_that_would_spend_more_than_there_is_stop_before_the_call(
    agents_with: Making, records: Records
) -> None:
    """All have set their estimate aside, and go beyond it: whoever finds nothing left stops before its call."""
    talker, deposit = Talker(), PAID_FOR * LONGEST * PRICE
    assert deposit == RUNS * ESTIMATE
    async with agents_with(talker, [look], deposit=deposit, models=DEAR) as agents:
        sent = await submitted(agents, [1 + n % LONGEST for n in range(RUNS)])
        assert len(sent) == RUNS
        results = await results_of(agents, sent)
        stopped = [result for result in results if result.status != "completed"]
        assert stopped
        assert len(stopped) < RUNS
        for result in stopped:
            assert result.error is not None
            assert (result.stop_reason, result.error.code, result.error.retryable) == ("credits", "E003", False)
        await check_sums(records, talker, results, deposit)


async def test_a_run_stops_at_its_own_limit_while_others_have_credits(agents_with: Making, records: Records) -> None:
    talker, deposit = Talker(), 1_000
    async with agents_with(talker, [look], deposit=deposit, models=DEAR) as agents:
        sent = await agents.submit("10", tenant=TENANT, max_tokens=REPLY_TOKENS, max_credits=23, stream=False)
        [result] = await results_of(agents, [sent])
        assert result.error is not None
        assert (result.error.code, result.credits_charged) == ("E003", 2 * CALL)
        # It took more than its estimate: all that it was given and did not spend has gone back.
        booked = (await records.credits.statement(TENANT, account_of(sent.task_id))).entries
        given = sum(entry.amount for entry in booked if entry.kind is EntryKind.DEPOSIT)
        assert given > micro(ESTIMATE)
        assert result.credits_refunded == given - result.credits_charged
        await check_sums(records, talker, [result], deposit)


async def test_nothing_of_a_task_is_open_after_its_end(records: Records) -> None:
    """Neither held nor presumed; who learns more of a call afterwards leaves no credits where nobody spends them."""
    await records.credits.deposit(TENANT, 1_000, key="first")
    budget = Budget(task="t", tenant=TENANT, payer=purse(TENANT), most=200)
    async with records.credits.ledger() as ledger:
        await budget.open(ledger, 100)
        await ledger.hold("t/0/1", [budget.account], 60, run="t")
        await ledger.presume("t/0/1")
        await ledger.hold("t/1/1", [budget.account], 30, run="t")
    async with records.credits.ledger() as ledger:
        assert await settle_all(ledger, "t", budget) == (90, 10)
        for run in ("t", budget.account):
            assert await ledger.holds_of(run, HoldState.HELD) == []
            assert await ledger.holds_of(run, HoldState.PRESUMED) == []
    async with records.credits.ledger() as ledger:
        await ledger.settle("t/0/1", 10)
        own = await ledger.account(budget.account)
    assert (own.available, own.held) == (0, 0)
    paid = await records.credits.balance(TENANT)
    assert (paid.available, paid.held, paid.spent) == (910, 0, 90)
    assert await records.credits.unbalanced() == []


async def test_tasks_that_another_pays_for_take_more_through_it_all_at_once(records: Records) -> None:
    """Each within its own limit, all of them within the limit of the one that pays, and nobody waits for another."""
    tasks, limit = 8, 350
    await records.credits.deposit(TENANT, 1_000, key="first")
    parent = Budget(task="p", tenant=TENANT, payer=purse(TENANT), most=limit)
    made = [
        Budget(task=f"c{n}", tenant=TENANT, payer=parent.account, most=50, above=parent) for n in range(tasks)
    ]  # fmt: skip
    async with records.credits.ledger() as ledger:
        await parent.open(ledger, 10 * tasks)
        for budget in made:
            await budget.open(ledger, 10)

    async def spend(budget: Budget) -> bool:
        try:
            async with records.credits.ledger() as ledger:
                await ledger.hold(f"{budget.task}/0/1", [budget.account], 50, run=budget.task, more=budget.cover)
        except CreditsShort:
            return False
        return True

    # Six times 50, and what was set aside for two that come too late, are all that the limit has room for.
    assert sum(await asyncio.gather(*map(spend, made))) == 6
    async with records.credits.ledger() as ledger:
        for budget in made:
            await settle_all(ledger, budget.task, budget)
        assert await settle_all(ledger, "p", parent) == (300, 20)
    paid = await records.credits.balance(TENANT)
    assert (paid.available, paid.held, paid.spent) == (700, 0, 300)
    assert await records.credits.unbalanced() == []
