"""Credits as the API and the dashboard see them: each verb a transaction of its own."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from sqlalchemy import Row, select

from bullpen.errors import BadOption, RecordMissing
from bullpen.records.credits.balancing import find_unbalanced
from bullpen.records.credits.ledger import Ledger
from bullpen.records.credits.tenant_budgets import budgets_of, remove_budget, set_budget
from bullpen.records.credits.words import PURSE, Account, Entry, EntryKind, Period, Statement, TenantBudget
from bullpen.records.database import Database
from bullpen.records.paging import number_in
from bullpen.records.tables.credits import account, entry

_LIMIT = 500


class Credits:
    """Deposits, balances and statements; what agents hold and spend goes through `ledger`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ledger(self) -> AbstractAsyncContextManager[Ledger]:
        """A ledger on a transaction of its own."""
        return self._ledger()

    @asynccontextmanager
    async def _ledger(self) -> AsyncIterator[Ledger]:
        async with self._database.writing(brief=True) as connection:
            yield Ledger(connection, self._database)

    async def deposit(self, tenant: str, amount: int, *, key: str, memo: str = "") -> Account:
        """Put micro-credits into the tenant's purse, made with the first. The same key again changes nothing."""
        async with self.ledger() as ledger:
            await ledger.open(purse(tenant), tenant)
            return await ledger.deposit(purse(tenant), amount, key=key, memo=memo)

    async def balance(self, tenant: str) -> Account:
        """Of the purse; RecordMissing before its first deposit."""
        async with self._database.reading(brief=True) as connection:
            return await Ledger(connection, self._database).account(purse(tenant))

    async def accounts(self, tenant: str) -> list[Account]:
        """Its purse, and those of its tasks."""
        query = select(account).where(account.c.tenant == tenant).order_by(account.c.id)
        async with self._database.reading(brief=True) as connection:
            rows: Sequence[Row[Any]] = (await connection.execute(query)).all()
        return [_account(row) for row in rows]

    async def budgets(self, account_ids: Sequence[str]) -> dict[str, Account]:
        """Those of these accounts that there are, by id."""
        query = select(account).where(account.c.id.in_(account_ids))
        async with self._database.reading(brief=True) as connection:
            rows: Sequence[Row[Any]] = (await connection.execute(query)).all()
        return {row.id: _account(row) for row in rows}

    async def set_budget(self, tenant: str, period: Period, most: int) -> TenantBudget:
        """Let the tenant spend at most so many micro-credits in each such period; what this one has used counts."""
        await set_budget(self._database, tenant, period, most)
        [found] = [one for one in await self.budgets_of(tenant) if one.period is period]
        return found

    async def remove_budget(self, tenant: str, period: Period) -> None:
        """RecordMissing if there is none."""
        await remove_budget(self._database, tenant, period)

    async def budgets_of(self, tenant: str) -> list[TenantBudget]:
        """Those that are set, with what is used of each and when it renews."""
        return await budgets_of(self._database, tenant)

    async def statement(
        self,
        tenant: str,
        account_id: str | None = None,
        *,
        since_ms: int | None = None,
        until_ms: int | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Statement:
        """The account's entries, the newest first; the purse's if none is named. RecordMissing if it is another's."""
        if not 1 <= limit <= _LIMIT:
            raise BadOption(f"limit: from 1 to {_LIMIT}, not {limit}")
        wanted = account_id or purse(tenant)
        query = select(entry).where(entry.c.account == wanted).order_by(entry.c.number.desc()).limit(limit + 1)
        if since_ms is not None:
            query = query.where(entry.c.at_ms >= since_ms)
        if until_ms is not None:
            query = query.where(entry.c.at_ms < until_ms)
        if cursor is not None:
            query = query.where(entry.c.number < number_in(cursor))
        async with self._database.reading() as connection:
            owner = await connection.execute(select(account.c.tenant).where(account.c.id == wanted))
            if owner.scalar_one_or_none() != tenant:
                raise RecordMissing(f"no account {wanted!r}")
            found = [_read(row) for row in await connection.execute(query)]
        return Statement(tuple(found[:limit]), str(found[limit - 1].number) if len(found) > limit else None)

    async def unbalanced(self) -> list[str]:
        """Accounts whose sums are not those of their entries and holds: always none; for operators and tests."""
        async with self._database.reading() as connection:
            return await find_unbalanced(connection)


def purse(tenant: str) -> str:
    """The account that a tenant pays from."""
    return f"{PURSE}{tenant}"


def _account(row: Row[Any]) -> Account:
    return Account(id=row.id, tenant=row.tenant, available=row.available, held=row.held, spent=row.spent)


def _read(row: Row[Any]) -> Entry:
    values = dict(row._mapping)  # noqa: SLF001 - its public name, in SQLAlchemy's way
    return Entry(**values | {"kind": EntryKind(row.kind)})
