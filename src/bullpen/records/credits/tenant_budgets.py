"""Budgets of tenants: set, looked at, and taken away. What is used of them is in `windows`."""

from typing import Any

from sqlalchemy import case, delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.errors import BadOption, RecordMissing
from bullpen.records.credits.ledger import MOST, Ledger
from bullpen.records.credits.periods import Window, window_at
from bullpen.records.credits.windows import Windows
from bullpen.records.credits.words import PURSE, EntryKind, HoldState, Period, TenantBudget
from bullpen.records.database import Database
from bullpen.records.model.sql import insert_for
from bullpen.records.tables.credits import budget, entry, hold, window


async def set_budget(database: Database, tenant: str, period: Period, most: int) -> None:
    """At most so many micro-credits in each window of the period, from now on; what was used in this one counts."""
    if not 0 <= most <= MOST:
        raise BadOption(f"most: 0 or more micro-credits, not {most}")
    now_ms = database.clock.now_ms()
    async with database.writing() as connection:
        # The purse first: nobody holds anything in it until what they hold is counted.
        ledger = Ledger(connection, database)
        await ledger.open(f"{PURSE}{tenant}", tenant)
        await ledger.locked(f"{PURSE}{tenant}")
        is_new = (await connection.execute(select(budget.c.most).where(*_is(tenant, period)))).one_or_none() is None
        values = {"tenant": tenant, "period": period, "most": most, "changed_ms": now_ms}
        changed = {name: values[name] for name in ("most", "changed_ms")}
        new = insert_for(database, budget).values(values)
        await connection.execute(new.on_conflict_do_update(index_elements=[*budget.primary_key], set_=changed))
        if is_new:
            await _count(connection, database, tenant, period, window_at(period, now_ms))


async def remove_budget(database: Database, tenant: str, period: Period) -> None:
    """RecordMissing if there is none."""
    async with database.writing(brief=True) as connection:
        if (await connection.execute(select(budget.c.most).where(*_is(tenant, period)))).one_or_none() is None:
            raise RecordMissing(f"tenant {tenant!r} has no budget of the period {str(period)!r}")
        await Ledger(connection, database).locked(f"{PURSE}{tenant}")
        for each in (window, budget):
            await connection.execute(delete(each).where(each.c.tenant == tenant, each.c.period == period))


async def budgets_of(database: Database, tenant: str) -> list[TenantBudget]:
    """As they stand now: of days, of months, of all time."""
    async with database.reading(brief=True) as connection:
        return await Windows(connection, database).budgets(tenant, database.clock.now_ms())


async def used_in(connection: AsyncConnection, purse_id: str, at: Window) -> tuple[int, int]:
    """What is held and spent of the holds that began in a window, by the ledger's entries."""
    moved = entry.c.account == purse_id
    began = select(entry.c.key).where(moved, entry.c.kind == EntryKind.HOLD, entry.c.at_ms >= at.start_ms)
    if at.until_ms is not None:
        began = began.where(entry.c.at_ms < at.until_ms)
    counts = case(
        (entry.c.kind.in_([EntryKind.HOLD, EntryKind.OVERRUN]), entry.c.amount),
        (entry.c.kind == EntryKind.REFUND, -entry.c.amount),
        else_=0,
    )
    used = (await connection.execute(select(func.sum(counts)).where(moved, entry.c.key.in_(began)))).scalar_one()
    is_open = select(func.sum(hold.c.amount)).where(hold.c.state == HoldState.HELD, hold.c.id.in_(began))
    held = int((await connection.execute(is_open)).scalar_one() or 0)
    return held, int(used or 0) - held


async def _count(connection: AsyncConnection, database: Database, tenant: str, period: Period, at: Window) -> None:
    held, spent = await used_in(connection, f"{PURSE}{tenant}", at)
    values = {"tenant": tenant, "period": period, **at._asdict(), "held": held, "spent": spent}
    await connection.execute(insert_for(database, window).values(values))


def _is(tenant: str, period: Period) -> tuple[Any, Any]:
    return budget.c.tenant == tenant, budget.c.period == period
