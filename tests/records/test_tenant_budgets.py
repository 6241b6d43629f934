"""Budgets of tenants: so much in a day, a month, in all; whatever the purse has, and whoever asks at once."""

import asyncio
import contextlib
import random
from datetime import UTC, datetime

import pytest
from sqlalchemy import func, select, update

from bullpen.errors import BadOption, BudgetSpent, CreditsShort, RecordMissing
from bullpen.records.credits.budget import Budget
from bullpen.records.credits.credits import purse
from bullpen.records.credits.periods import DAY_MS, window_at
from bullpen.records.credits.words import Period
from bullpen.records.records import Records
from bullpen.records.tables.credits import window as window_table
from bullpen.testing.clock import ManualClock

ACME = purse("acme")
_EVENING = datetime(2026, 11, 18, 23, 50, tzinfo=UTC)
_MIDNIGHT_MS = round(datetime(2026, 11, 19, tzinfo=UTC).timestamp() * 1000)
_TEN_MINUTES_MS = 600_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock.at(_EVENING)


@pytest.fixture
async def rich(records: Records) -> Records:
    """A tenant whose purse does not end."""
    await records.credits.deposit("acme", 1_000_000, key="first")
    return records


async def _hold(records: Records, name: str, amount: int, tenant: str = "acme") -> None:
    async with records.credits.ledger() as ledger:
        await ledger.hold(name, [purse(tenant)], amount)


async def _settle(records: Records, name: str, price: int) -> None:
    async with records.credits.ledger() as ledger:
        await ledger.settle(name, price)


async def _used(records: Records, tenant: str = "acme") -> dict[str, tuple[int, int, int]]:
    """Held, spent and left, by period."""
    return {one.period.value: (one.held, one.spent, one.left) for one in await records.credits.budgets_of(tenant)}


def _ms(*at: int) -> int:
    return round(datetime(*at, tzinfo=UTC).timestamp() * 1000)  # type: ignore[arg-type,misc]  # year, month, day


@pytest.mark.parametrize(
    "at, month, after",
    [
        ((2026, 11, 18, 23, 59, 59), (2026, 11, 1), (2026, 12, 1)),
        ((2026, 12, 31, 23, 59, 59), (2026, 12, 1), (2027, 1, 1)),
        ((2028, 2, 29), (2028, 2, 1), (2028, 3, 1)),
    ],
)
def test_days_and_months_are_those_of_utc(at: tuple[int, ...], month: tuple[int, ...], after: tuple[int, ...]) -> None:
    at_ms = _ms(*at) + 999
    assert window_at(Period.MONTH, at_ms) == (_ms(*month), _ms(*after))
    assert window_at(Period.DAY, at_ms) == (_ms(*at[:3]), _ms(*at[:3]) + DAY_MS)
    assert window_at(Period.TOTAL, at_ms) == (0, None)


async def test_fifty_at_once_against_a_day_for_ten(rich: Records) -> None:
    """On connections of their own: whoever finds no room is refused, and not one micro-credit is over."""
    await rich.credits.set_budget("acme", Period.DAY, 500)

    async def run(n: int) -> bool:
        try:
            await _hold(rich, f"run-{n}", 50)
        except BudgetSpent:
            return False
        await _settle(rich, f"run-{n}", 50)
        return True

    assert sum(await asyncio.gather(*map(run, range(50)))) == 10
    assert await _used(rich) == {"day": (0, 500, 0)}
    assert (await rich.credits.balance("acme")).spent == 500
    assert await rich.credits.unbalanced() == []


async def test_the_refusal_says_which_budget_it_is_and_when_it_renews(rich: Records) -> None:
    await rich.credits.set_budget("acme", Period.DAY, 500)
    await rich.credits.set_budget("acme", Period.MONTH, 300)
    await _hold(rich, "call-1", 250)
    with pytest.raises(BudgetSpent, match=r"budget of the month, 300, leaves 50; it renews at 2026-12-01") as refused:
        await _hold(rich, "call-2", 51)
    assert (refused.value.code, refused.value.agent_code, refused.value.retryable) == ("budget-spent", "E003", False)
    assert (refused.value.required, refused.value.available) == (51, 50)
    assert (refused.value.period, refused.value.renews_ms) == ("month", _ms(2026, 12, 1))
    assert "budget of the month" in refused.value.safe_message
    assert "2026-12-01 00:00 UTC" in refused.value.safe_message
    # Nothing of it was held, in the purse nor in the day that had room.
    assert await _used(rich) == {"day": (250, 0, 250), "month": (250, 0, 50)}
    assert (await rich.credits.balance("acme")).held == 250


async def test_a_purse_with_less_than_the_budget_is_short_as_ever(rich: Records) -> None:
    await rich.credits.set_budget("acme", Period.DAY, 5_000_000)
    with pytest.raises(CreditsShort, match=ACME) as short:
        await _hold(rich, "call-1", 1_000_001)
    assert not isinstance(short.value, BudgetSpent)


async def test_a_day_ends_at_midnight_and_a_hold_stays_in_its_own(rich: Records, clock: ManualClock) -> None:
    await rich.credits.set_budget("acme", Period.DAY, 100)
    await rich.credits.set_budget("acme", Period.MONTH, 1_000)
    await _hold(rich, "late", 100)
    [day, month] = await rich.credits.budgets_of("acme")
    assert (day.renews_ms, month.renews_ms) == (_MIDNIGHT_MS, _ms(2026, 12, 1))
    clock.advance(_TEN_MINUTES_MS - 1)
    with pytest.raises(BudgetSpent, match="2026-11-19 00:00 UTC"):
        await _hold(rich, "too late", 1)
    clock.advance(1)
    assert await _used(rich) == {"day": (0, 0, 100), "month": (100, 0, 900)}
    await _hold(rich, "early", 30)
    await _settle(rich, "late", 60)
    await _settle(rich, "early", 20)
    # What the day before held and gave back is no room of this one, nor taken from it.
    assert await _used(rich) == {"day": (0, 20, 80), "month": (0, 80, 920)}
    assert await rich.credits.unbalanced() == []


async def test_what_is_given_back_can_be_held_again(rich: Records) -> None:
    await rich.credits.set_budget("acme", Period.DAY, 100)
    for n in range(5):
        await _hold(rich, f"call-{n}", 100)
        async with rich.credits.ledger() as ledger:
            await ledger.release(f"call-{n}")
    assert await _used(rich) == {"day": (0, 0, 100)}


async def test_a_call_whose_outcome_nobody_knows_stays_charged_until_it_is_known(rich: Records) -> None:
    await rich.credits.set_budget("acme", Period.DAY, 100)
    await _hold(rich, "call-1", 80)
    async with rich.credits.ledger() as ledger:
        await ledger.presume("call-1")
    assert await _used(rich) == {"day": (0, 80, 20)}
    with pytest.raises(BudgetSpent):
        await _hold(rich, "call-2", 21)
    await _settle(rich, "call-1", 30)
    assert await _used(rich) == {"day": (0, 30, 70)}
    assert await rich.credits.unbalanced() == []


async def test_a_bill_above_what_was_held_is_counted_beyond_the_budget(rich: Records) -> None:
    """It is owed: it cannot be refused any more. From then on nothing else has room."""
    await rich.credits.set_budget("acme", Period.DAY, 100)
    budget = Budget(task="t", tenant="acme", payer=ACME, most=100)
    async with rich.credits.ledger() as ledger:
        await budget.open(ledger, 100)
        await ledger.hold("call-1", [budget.account], 100, run="t")
        await budget.stretch(ledger, 40)
        await ledger.settle("call-1", 140)
        await budget.close(ledger)
    assert await _used(rich) == {"day": (0, 140, 0)}
    with pytest.raises(BudgetSpent, match="leaves 0"):
        await _hold(rich, "call-2", 1)
    assert await rich.credits.unbalanced() == []


async def test_a_task_takes_more_only_where_a_budget_has_room(rich: Records) -> None:
    await rich.credits.set_budget("acme", Period.DAY, 150)
    budget = Budget(task="t", tenant="acme", payer=ACME, most=1_000)
    async with rich.credits.ledger() as ledger:
        await budget.open(ledger, 100)
    async with rich.credits.ledger() as ledger:
        await ledger.hold("call-1", [budget.account], 150, run="t", more=budget.cover)
    with pytest.raises(BudgetSpent, match="1 micro-credits are needed"):
        async with rich.credits.ledger() as ledger:
            await ledger.hold("call-2", [budget.account], 1, run="t", more=budget.cover)
    async with rich.credits.ledger() as ledger:
        await ledger.settle("call-1", 120)
        await budget.close(ledger)
    assert await _used(rich) == {"day": (0, 120, 30)}
    assert await rich.credits.unbalanced() == []


async def test_what_was_used_before_a_budget_was_set_counts(rich: Records, clock: ManualClock) -> None:
    await _hold(rich, "yesterday", 7)
    await _settle(rich, "yesterday", 5)
    clock.advance(_TEN_MINUTES_MS)
    for name, amount in (("open", 40), ("settled", 30), ("unknown", 20), ("known", 10), ("above", 1)):
        await _hold(rich, name, amount)
    await _settle(rich, "settled", 11)
    async with rich.credits.ledger() as ledger:
        await ledger.presume("unknown")
        await ledger.presume("known")
        await ledger.settle("known", 4)
        await ledger.settle("above", 3)
    for period in Period:
        await rich.credits.set_budget("acme", period, 1_000)
    day = 11 + 20 + 4 + 3
    assert await _used(rich) == {
        "day": (40, day, 1_000 - 40 - day),
        "month": (40, day + 5, 1_000 - 40 - day - 5),
        "total": (40, day + 5, 1_000 - 40 - day - 5),
    }
    await _settle(rich, "open", 40)
    assert (await _used(rich))["day"] == (0, day + 40, 1_000 - day - 40)
    assert await rich.credits.unbalanced() == []


async def test_a_budget_is_changed_below_what_is_used_and_taken_away(rich: Records) -> None:
    await rich.credits.set_budget("acme", Period.TOTAL, 100)
    await _hold(rich, "call-1", 90)
    lowered = await rich.credits.set_budget("acme", Period.TOTAL, 50)
    assert (lowered.most, lowered.held, lowered.left, lowered.renews_ms) == (50, 90, 0, None)
    with pytest.raises(BudgetSpent, match="it does not renew"):
        await _hold(rich, "call-2", 1)
    await _settle(rich, "call-1", 45)
    await _hold(rich, "call-2", 5)
    await rich.credits.remove_budget("acme", Period.TOTAL)
    assert await rich.credits.budgets_of("acme") == []
    await _hold(rich, "call-3", 1_000)
    await _settle(rich, "call-2", 5)
    # It is counted anew, with what happened while there was none.
    again = await rich.credits.set_budget("acme", Period.TOTAL, 50)
    assert (again.held, again.spent) == (1_000, 50)
    with pytest.raises(RecordMissing, match="no budget of the period 'day'"):
        await rich.credits.remove_budget("acme", Period.DAY)
    with pytest.raises(BadOption, match="most: 0 or more"):
        await rich.credits.set_budget("acme", Period.DAY, -1)
    assert await rich.credits.unbalanced() == []


async def test_a_budget_of_nothing_and_one_before_the_first_deposit(records: Records) -> None:
    assert (await records.credits.set_budget("acme", Period.DAY, 0)).left == 0
    await records.credits.deposit("acme", 10, key="first")
    with pytest.raises(BudgetSpent):
        await _hold(records, "call-1", 1)


async def test_tenants_do_not_share_their_budgets(rich: Records) -> None:
    await rich.credits.deposit("other", 1_000, key="first")
    await rich.credits.set_budget("acme", Period.DAY, 10)
    await _hold(rich, "call-1", 500, tenant="other")
    assert await _used(rich, "other") == {}
    assert await _used(rich) == {"day": (0, 0, 10)}


async def test_a_hold_that_is_asked_for_again_counts_once(rich: Records) -> None:
    await rich.credits.set_budget("acme", Period.DAY, 100)
    for _ in range(2):
        await _hold(rich, "call-1", 60)
        assert await _used(rich) == {"day": (60, 0, 40)}
    for _ in range(2):
        await _settle(rich, "call-1", 50)
        assert await _used(rich) == {"day": (0, 50, 50)}


async def test_days_that_are_over_do_not_gather(rich: Records, clock: ManualClock) -> None:
    await rich.credits.set_budget("acme", Period.DAY, 100)
    await rich.credits.set_budget("acme", Period.MONTH, 5_000)
    for n in range(70):
        await _hold(rich, f"call-{n}", 10)
        await _settle(rich, f"call-{n}", 10)
        clock.advance(DAY_MS)
    async with rich.database.reading() as connection:
        rows = (await connection.execute(select(func.count()).select_from(window_table))).scalar_one()
    assert rows <= 4
    assert await rich.credits.unbalanced() == []


async def test_budgets_set_while_others_hold_miss_nothing(rich: Records) -> None:
    """Whatever began before, between or after: the windows say what the purse's entries say."""
    dice = random.Random(11)

    async def call(n: int, amount: int, end: str) -> None:
        with contextlib.suppress(BudgetSpent):
            await _hold(rich, f"call-{n}", amount)
            async with rich.credits.ledger() as ledger:
                match end:
                    case "s":
                        await ledger.settle(f"call-{n}", amount // 2)
                    case "r":
                        await ledger.release(f"call-{n}")
                    case "p":
                        await ledger.presume(f"call-{n}")
                    case _:
                        pass

    async def change(period: Period, most: int) -> None:
        await rich.credits.set_budget("acme", period, most)
        if dice.random() < 0.3:
            with contextlib.suppress(RecordMissing):
                await rich.credits.remove_budget("acme", period)

    calls = [call(n, dice.randint(2, 90), dice.choice("srpo")) for n in range(60)]
    changes = [change(dice.choice(list(Period)), dice.randint(300, 2_000)) for _ in range(15)]
    mixed = [*calls, *changes]
    dice.shuffle(mixed)
    await asyncio.gather(*mixed)
    assert await rich.credits.unbalanced() == []


async def test_a_window_that_says_something_else_is_found(rich: Records) -> None:
    await rich.credits.set_budget("acme", Period.DAY, 100)
    await _hold(rich, "call-1", 10)
    async with rich.database.writing() as connection:
        await connection.execute(update(window_table).values(held=9))
    assert await rich.credits.unbalanced() == [f"{ACME}/day"]
    # A process of an older version held what nobody counted: it can be settled all the same.
    await _settle(rich, "call-1", 10)
    assert await _used(rich) == {"day": (0, 10, 90)}
