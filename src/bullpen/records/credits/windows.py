"""What tenants use of their budgets: a row for each period and window, changed with the purse.

    purse:   available ──hold──▶ held ──charge──▶ spent
    window:                  ┌─▶ held ──charge──▶ spent       the same amounts; a hold beyond the budget is refused
                             └─ in each window that the hold began in

Whoever changes a window, or a budget, has changed or locked the purse before in the same transaction: one waits for
the other, so that no two can find the same room. A hold stays in the windows that it began in, whenever it is settled:
a task that goes on past midnight is paid for by the day on which its credits were set aside.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, case, delete, literal_column, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.errors import BudgetSpent
from bullpen.records.credits.periods import DAY_MS, window_at
from bullpen.records.credits.words import PURSE, Hold, Period, TenantBudget
from bullpen.records.database import Database
from bullpen.records.model.sql import new_in
from bullpen.records.prepared import Prepared
from bullpen.records.tables.credits import budget, hold, window


class _Statements:
    def __init__(self, database: Database) -> None:
        tenant: BindParameter[str] = bindparam("of_tenant")
        there = and_(window.c.tenant == budget.c.tenant, window.c.period == budget.c.period, _has(bindparam("at_ms")))
        query = select(budget.c.period, budget.c.most, window.c.held, window.c.spent).outerjoin(window, there)
        self.budgets = Prepared(database, query.where(budget.c.tenant == tenant).order_by(budget.c.period))
        self.begin = Prepared(database, new_in(database, window), columns=[one.name for one in window.c])
        began = select(hold.c.at_ms).where(hold.c.id == bindparam("hold_id")).scalar_subquery()
        sums = {name: _at_least_nothing(window.c[name] + bindparam(f"more_{name}")) for name in ("held", "spent")}
        self.change = Prepared(database, update(window).where(window.c.tenant == tenant, _has(began)).values(sums))
        is_over = window.c.until_ms < bindparam("before_ms")
        of_one = (window.c.tenant == tenant, window.c.period == bindparam("of_period"))
        self.forget = Prepared(database, delete(window).where(*of_one, is_over))


def tenants_of(held: Hold) -> list[str]:
    """Those whose purses it is in."""
    return [account_id.removeprefix(PURSE) for account_id in held.accounts if account_id.startswith(PURSE)]


def _has(at_ms: Any) -> Any:
    """Whether a window has this moment in it."""
    return and_(window.c.start_ms <= at_ms, or_(window.c.until_ms.is_(None), window.c.until_ms > at_ms))


def _at_least_nothing(value: Any) -> Any:
    # A process of an older version counts nothing here: what it held can still be settled.
    nothing: ColumnElement[int] = literal_column("0")
    return case((value < nothing, nothing), else_=value)


_HELD = 2
"""Of a budget's row. None: nothing was held yet in this window, and it has none of its own."""


class Windows:
    """On a connection of the caller's, which has the purse."""

    def __init__(self, connection: AsyncConnection, database: Database) -> None:
        self._connection = connection
        self._statements = database.own(_Statements)

    async def budgets(self, tenant: str, at_ms: int) -> list[TenantBudget]:
        """All that the tenant has, with what is used of each."""
        found = [_read(tenant, row, at_ms) for row in await self._rows(tenant, at_ms)]
        return sorted(found, key=lambda one: list(Period).index(one.period))

    async def take(self, hold_id: str, tenant: str, amount: int, *, at_ms: int, is_owed: bool = False) -> None:
        """Count a new hold in each budget of the tenant; BudgetSpent names one that has no room for it.

        What `is_owed` already is counted, and refused by none.
        """
        rows = await self._rows(tenant, at_ms)
        for row in rows:
            one = _read(tenant, row, at_ms)
            if amount > one.left and not is_owed:
                raise BudgetSpent(
                    tenant, one.period, most=one.most, required=amount, available=one.left, renews_ms=one.renews_ms
                )
            if row[_HELD] is None:
                await self._begin(tenant, one.period, at_ms)
        if rows:
            await self.change(hold_id, tenant, more_held=amount)

    async def _rows(self, tenant: str, at_ms: int) -> Sequence[Sequence[Any]]:
        return await self._statements.budgets.fetch(self._connection, {"of_tenant": tenant, "at_ms": at_ms})

    async def change(self, hold_id: str, tenant: str, *, more_held: int = 0, more_spent: int = 0) -> None:
        """In the windows that the hold began in; those of which nobody knows any more are not missed."""
        values = {"of_tenant": tenant, "hold_id": hold_id, "more_held": more_held, "more_spent": more_spent}
        await self._statements.change.fetch(self._connection, values)

    async def _begin(self, tenant: str, period: Period, at_ms: int) -> None:
        """A new window. The one before stays for a day, for those whose clock is late; older ones go."""
        start_ms, until_ms = window_at(period, at_ms)
        row = {"tenant": tenant, "period": period, "start_ms": start_ms, "until_ms": until_ms, "held": 0, "spent": 0}
        await self._statements.begin.fetch(self._connection, row)
        over = {"of_tenant": tenant, "of_period": period, "before_ms": at_ms - DAY_MS}
        await self._statements.forget.fetch(self._connection, over)


def _read(tenant: str, row: Sequence[Any], at_ms: int) -> TenantBudget:
    period, most, held, spent = row
    renews_ms = window_at(Period(period), at_ms).until_ms
    return TenantBudget(
        tenant=tenant, period=Period(period), most=most, held=held or 0, spent=spent or 0, renews_ms=renews_ms
    )
