"""Whether the books balance: what each account says of itself, and what accounts say of each other."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Row, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.records.credits.periods import Window
from bullpen.records.credits.tenant_budgets import used_in
from bullpen.records.credits.words import PURSE, EntryKind, HoldState
from bullpen.records.tables.credits import account, entry, hold, window


async def find_unbalanced(connection: AsyncConnection) -> list[str]:
    """The accounts of which one of these is not true.

    - All that came in is available, held, spent or has gone out.
    - What is held is what its open holds come to.
    - What a task was given is what its payers set aside for it, and at its end what they were charged is what it spent.
    - What is used of a budget is what was held in the purse meanwhile, and what became of that.
    """
    moved = await _moved(connection)
    held, given = await _held(connection), await _given(connection)
    wrong = []
    for row in await connection.execute(select(account).order_by(account.c.id)):
        came, went = moved.get((row.id, EntryKind.DEPOSIT), 0), moved.get((row.id, EntryKind.WITHDRAWAL), 0)
        is_right = row.available + row.held + row.spent == came - went and row.held == held[row.id]
        if not (is_right and _is_paid(row, given.get(row.id), came)):
            wrong.append(row.id)
    return wrong + await _windows(connection)


def _is_paid(task: Row[Any], by: Row[Any] | None, came: int) -> bool:
    # An account that nobody pays for: a purse, or a task of which only the bookings were kept.
    if by is None:
        return True
    is_over = by.open == 0
    return bool(by.amount == came and (not is_over or (by.charged, 0) == (task.spent, task.available)))


async def _windows(connection: AsyncConnection) -> list[str]:
    """Those of budgets that do not say what the purse's entries do."""
    wrong = []
    for row in (await connection.execute(select(window))).all():
        used = await used_in(connection, f"{PURSE}{row.tenant}", Window(row.start_ms, row.until_ms))
        if used != (row.held, row.spent):
            wrong.append(f"{PURSE}{row.tenant}/{row.period}")
    return wrong


async def _moved(connection: AsyncConnection) -> dict[tuple[str, str], int]:
    sums = select(entry.c.account, entry.c.kind, func.sum(entry.c.amount)).group_by(entry.c.account, entry.c.kind)
    return {(name, kind): int(amount) for name, kind, amount in await connection.execute(sums)}


async def _held(connection: AsyncConnection) -> Counter[str]:
    held: Counter[str] = Counter()
    is_open = select(hold.c.accounts, hold.c.amount).where(hold.c.state == HoldState.HELD)
    for row in await connection.execute(is_open):
        names: Iterable[str] = row.accounts
        held.update(dict.fromkeys(names, row.amount))
    return held


async def _given(connection: AsyncConnection) -> dict[str, Row[Any]]:
    """What was set aside for each task by who pays for it."""
    sums = (
        func.sum(hold.c.amount).label("amount"),
        func.sum(hold.c.charged).label("charged"),
        func.count().filter(hold.c.state == HoldState.HELD).label("open"),
    )
    query = select(account.c.id, *sums).join(hold, hold.c.run == account.c.id).group_by(account.c.id)
    return {row.id: row for row in await connection.execute(query)}
