"""Credits: held before they are spent, never below nothing, and the same key twice is once."""

import asyncio
import contextlib
import random

import pytest
from sqlalchemy import ColumnElement, Table, update

from bullpen.errors import BadOption, CreditsShort, IdempotencyConflict, RecordMissing
from bullpen.records.credits.budget import Budget
from bullpen.records.credits.credits import purse
from bullpen.records.credits.ledger import Ledger
from bullpen.records.credits.words import Account, EntryKind, HoldState, Settled
from bullpen.records.records import Records
from bullpen.records.tables.credits import account as account_table
from bullpen.records.tables.credits import hold as hold_table

ACME = purse("acme")


def _sums(account: Account) -> tuple[int, int, int]:
    return account.available, account.held, account.spent


async def _purse(records: Records) -> tuple[int, int, int]:
    return _sums(await records.credits.balance("acme"))


@pytest.fixture
async def rich(records: Records) -> Records:
    """A tenant with a thousand."""
    await records.credits.deposit("acme", 1_000, key="first", memo="a gift")
    return records


async def _budget(records: Records, name: str, amount: int, tenant: str = "acme") -> str:
    async with records.credits.ledger() as ledger:
        await ledger.open(name, tenant)
        await ledger.deposit(name, amount, key="budget")
    return name


async def test_a_deposit_counts_once_for_its_key(rich: Records) -> None:
    await rich.credits.deposit("acme", 1_000, key="first")
    assert await _purse(rich) == (1_000, 0, 0)
    with pytest.raises(IdempotencyConflict, match="key: 'first'"):
        await rich.credits.deposit("acme", 5, key="first")
    await rich.credits.deposit("acme", 5, key="second")
    assert await _purse(rich) == (1_005, 0, 0)


@pytest.mark.parametrize("amount", [0, -1, 2**63])
async def test_an_amount_that_is_none_is_refused(records: Records, amount: int) -> None:
    with pytest.raises(BadOption, match="amount: more than 0"):
        await records.credits.deposit("acme", amount, key="first")


async def test_what_is_held_is_charged_and_the_rest_given_back(rich: Records) -> None:
    async with rich.credits.ledger() as ledger:
        await ledger.hold("call-1", [ACME], 400, run="r1")
    assert await _purse(rich) == (600, 400, 0)
    async with rich.credits.ledger() as ledger:
        assert await ledger.settle("call-1", 150) == Settled(charged=150, refunded=250)
    assert await _purse(rich) == (850, 0, 150)


async def test_a_hold_and_a_settlement_are_done_once(rich: Records) -> None:
    for _ in range(2):
        async with rich.credits.ledger() as ledger:
            await ledger.hold("call-1", [ACME], 400)
    assert await _purse(rich) == (600, 400, 0)
    for price in (150, 390):
        async with rich.credits.ledger() as ledger:
            assert (await ledger.settle("call-1", price)).charged == 150, "what the first one found"
    assert await _purse(rich) == (850, 0, 150)
    with pytest.raises(IdempotencyConflict):
        async with rich.credits.ledger() as ledger:
            await ledger.hold("call-1", [ACME], 401)


@pytest.mark.parametrize("meanwhile", ["settled", "presumed", "nothing"])
async def test_who_has_a_hold_may_be_wrong_about_what_became_of_it(rich: Records, meanwhile: str) -> None:
    async with rich.credits.ledger() as ledger:
        held = await ledger.hold("call-1", [ACME], 400)
        if meanwhile == "settled":
            await ledger.settle("call-1", 150)
        if meanwhile == "presumed":
            await ledger.presume("call-1")
    async with rich.credits.ledger() as ledger:
        found = await ledger.settle(held, 100)
    spent = 150 if meanwhile == "settled" else 100
    assert found == Settled(charged=spent, refunded=400 - spent)
    assert await _purse(rich) == (1_000 - spent, 0, spent)
    assert await rich.credits.unbalanced() == []


async def test_more_is_asked_for_only_where_there_is_less(rich: Records) -> None:
    task = await _budget(rich, "task:t1", 100)
    asked: list[int] = []

    async def more(ledger: Ledger, need: int) -> None:
        asked.append(need)
        await ledger.deposit(task, 50, key=f"more {len(asked)}")

    async with rich.credits.ledger() as ledger:
        await ledger.hold("call-1", [task], 90, more=more)
        assert asked == []
        await ledger.hold("call-2", [task], 60, more=more)
        assert asked == [60]
        assert _sums(await ledger.account(task)) == (0, 150, 0)
    with pytest.raises(CreditsShort, match="task:t1: 60 micro-credits are needed, and 50 are available"):
        async with rich.credits.ledger() as ledger:
            await ledger.hold("call-3", [task], 60, more=more)


async def test_every_budget_is_asked_and_one_that_is_short_holds_nothing_anywhere(rich: Records) -> None:
    run = await _budget(rich, "run:r1", 100)
    with pytest.raises(CreditsShort, match="run:r1: 101 micro-credits are needed, and 100 are available"):
        async with rich.credits.ledger() as ledger:
            await ledger.hold("call-1", [ACME, run], 101)
    assert await _purse(rich) == (1_000, 0, 0)
    async with rich.credits.ledger() as ledger:
        await ledger.hold("call-1", [ACME, run], 100)
        await ledger.settle("call-1", 60)
    assert [_sums(found) for found in await rich.credits.accounts("acme")] == [(40, 0, 60), (940, 0, 60)]


async def test_a_call_that_may_have_been_made_is_charged_until_it_is_known(rich: Records) -> None:
    async with rich.credits.ledger() as ledger:
        await ledger.hold("call-1", [ACME], 400, run="r1")
        await ledger.presume("call-1")
    assert await _purse(rich) == (600, 0, 400)
    async with rich.credits.ledger() as ledger:
        await ledger.presume("call-1")
        assert [held.id for held in await ledger.holds_of("r1", HoldState.PRESUMED)] == ["call-1"]
        assert await ledger.settle("call-1", 100) == Settled(charged=100, refunded=300)
    assert await _purse(rich) == (900, 0, 100)


@pytest.mark.parametrize("was_presumed", [False, True])
async def test_a_bill_above_what_was_held_takes_what_is_there_and_no_more(rich: Records, *, was_presumed: bool) -> None:
    async with rich.credits.ledger() as ledger:
        await ledger.hold("call-1", [ACME], 900)
        if was_presumed:
            await ledger.presume("call-1")
        assert await ledger.settle("call-1", 1_300) == Settled(charged=900, refunded=0, overrun=400, uncovered=300)
    assert await _purse(rich) == (0, 0, 1_000)
    told = {one.kind: one.amount for one in (await rich.credits.statement("acme")).entries}
    assert told[EntryKind.OVERRUN] == 100
    assert told[EntryKind.UNCOVERED] == 300
    assert await rich.credits.unbalanced() == []


async def test_what_a_run_still_holds_can_be_given_back(rich: Records) -> None:
    async with rich.credits.ledger() as ledger:
        for n in range(3):
            await ledger.hold(f"call-{n}", [ACME], 100, run="r1")
        await ledger.hold("other", [ACME], 100, run="r2")
        await ledger.settle("call-1", 10)
    async with rich.credits.ledger() as ledger:
        for held in await ledger.holds_of("r1"):
            await ledger.release(held.id)
    assert await _purse(rich) == (890, 100, 10)


async def test_nothing_is_written_by_a_transaction_that_fails(rich: Records) -> None:
    async def hold_and_fail() -> None:
        async with rich.credits.ledger() as ledger:
            await ledger.hold("call-1", [ACME], 400)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await hold_and_fail()
    assert await _purse(rich) == (1_000, 0, 0)
    with pytest.raises(RecordMissing, match="call-1"):
        async with rich.credits.ledger() as ledger:
            await ledger.settle("call-1", 1)


async def test_a_statement_tells_each_move_by_pages(rich: Records) -> None:
    async with rich.credits.ledger() as ledger:
        await ledger.hold("call-1", [ACME], 400, memo="gpt")
        await ledger.settle("call-1", 150)
    page = await rich.credits.statement("acme", limit=3)
    assert [(one.kind, one.amount) for one in page.entries] == [
        (EntryKind.REFUND, 250), (EntryKind.CHARGE, 150), (EntryKind.HOLD, 400)
    ]  # fmt: skip
    rest = await rich.credits.statement("acme", cursor=page.next_cursor)
    assert [(one.kind, one.memo, one.available) for one in rest.entries] == [(EntryKind.DEPOSIT, "a gift", 1_000)]
    assert rest.next_cursor is None


async def test_a_foreign_account_is_not_there(rich: Records) -> None:
    for account in (None, ACME):
        with pytest.raises(RecordMissing):
            await rich.credits.statement("globex", account)
    with pytest.raises(RecordMissing):
        await rich.credits.balance("globex")
    with pytest.raises(RecordMissing):
        async with rich.credits.ledger() as ledger:
            await ledger.open(ACME, "globex")
    assert await rich.credits.accounts("globex") == []


async def test_fifty_runs_at_once_against_a_budget_for_ten(rich: Records) -> None:
    """Whoever comes too late is refused before it spends; nothing is below zero at any moment, nor over by one."""
    period = await _budget(rich, "period:2026-11", 500)

    async def run(n: int) -> bool:
        try:
            async with rich.credits.ledger() as ledger:
                await ledger.hold(f"run-{n}", [ACME, period], 50, run=f"run-{n}")
        except CreditsShort:
            return False
        async with rich.credits.ledger() as ledger:
            await ledger.settle(f"run-{n}", 50)
        return True

    ran = await asyncio.gather(*map(run, range(50)))
    assert sum(ran) == 10
    assert [_sums(found) for found in await rich.credits.accounts("acme")] == [(0, 0, 500), (500, 0, 500)]
    assert await rich.credits.unbalanced() == []


async def test_any_order_of_moves_on_many_budgets_balances(rich: Records) -> None:
    """Holds on overlapping budgets, from all sides: none waits for ever, and the sums are those of the entries."""
    budgets = [await _budget(rich, f"budget:{n}", 300) for n in range(4)]
    dice = random.Random(7)
    plans = [(f"call-{n}", dice.sample(budgets, 2), dice.randint(1, 120), dice.choice("srpn")) for n in range(60)]

    async def call(name: str, accounts: list[str], amount: int, end: str) -> None:
        with contextlib.suppress(CreditsShort):
            async with rich.credits.ledger() as ledger:
                await ledger.hold(name, [ACME, *accounts], amount, run="r1")
            async with rich.credits.ledger() as ledger:
                match end:
                    case "s":
                        await ledger.settle(name, amount // 2)
                    case "r":
                        await ledger.release(name)
                    case "p":
                        await ledger.presume(name)
                    case "n":
                        await ledger.settle(name, amount + 7)

    await asyncio.gather(*(call(*plan) for plan in plans))
    assert await rich.credits.unbalanced() == []
    for account in await rich.credits.accounts("acme"):
        assert min(_sums(account)) >= 0
        assert account.held == 0


async def _change(records: Records, table: Table, this: ColumnElement[bool], **values: int) -> None:
    """What no code of ours does."""
    async with records.database.writing() as connection:
        await connection.execute(update(table).where(this).values(**values))


async def test_what_is_held_without_a_hold_is_found(rich: Records) -> None:
    async with rich.credits.ledger() as ledger:
        await ledger.hold("call-1", [ACME], 400)
    assert await rich.credits.unbalanced() == []
    await _change(rich, account_table, account_table.c.id == ACME, available=700, held=300)
    assert await rich.credits.unbalanced() == [ACME]


async def test_what_a_task_spent_and_nobody_paid_is_found(rich: Records) -> None:
    budget = Budget(task="t", tenant="acme", payer=ACME, most=200)
    async with rich.credits.ledger() as ledger:
        await budget.open(ledger, 100)
        await ledger.hold("call-1", [budget.account], 60, run="t")
        assert (await ledger.settle("call-1", 50)).charged == 50
    assert await rich.credits.unbalanced() == []
    async with rich.credits.ledger() as ledger:
        await budget.close(ledger)
    assert await rich.credits.unbalanced() == []
    assert await _purse(rich) == (950, 0, 50)
    await _change(rich, hold_table, hold_table.c.run == budget.account, charged=40)
    assert await rich.credits.unbalanced() == [budget.account]
