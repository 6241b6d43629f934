"""The ledger: every verb is a few entries and the sums they change, within the caller's transaction.

    available ──hold──▶ held ──charge──▶ spent
        ▲                │
        └────refund──────┘

Who journals a step moves its credits in the same transaction, so that neither is true without the other.
Each verb has a key: the same one again finds what the first did. An amount is taken from all accounts that a
hold names, or from none; accounts are touched in the order of their ids, so that two holds cannot wait for each other.
What is held in a tenant's purse is counted in its budgets too; see `windows`.
"""

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.errors import BadOption, CreditsShort, IdempotencyConflict, RecordMissing
from bullpen.records.chained import Link, Part, run_alone
from bullpen.records.credits.moves import Move, charges, hold_of, lines_of, outcome_of, sums_of
from bullpen.records.credits.statements import Statements, read_account, read_hold
from bullpen.records.credits.windows import Windows, tenants_of
from bullpen.records.credits.words import PURSE, Account, EntryKind, Hold, HoldState, Settled
from bullpen.records.database import Database
from bullpen.records.tables.credits import account, entry
from bullpen.records.tables.credits import hold as hold_table

MOST = 2**62

More = Callable[["Ledger", int], Awaitable[object]]
"""Sees to it that there is so much, or raises CreditsShort."""


class Ledger:
    """Moves credits on a connection of the caller's, whose transaction decides whether it happened."""

    def __init__(self, connection: AsyncConnection, database: Database) -> None:
        self._connection = connection
        self._database = database
        self._statements = database.own(Statements)
        self._windows = Windows(connection, database)
        self._now_ms = database.clock.now_ms()

    async def open(self, account_id: str, tenant: str) -> bool:
        """An account with nothing in it, unless there is one: whether it is new."""
        values = {"id": account_id, "tenant": tenant, "available": 0, "held": 0, "spent": 0, "created_ms": self._now_ms}
        if await self._statements.open.fetch(self._connection, values):
            return True
        if (await self.account(account_id)).tenant != tenant:
            raise RecordMissing(f"no account {account_id!r}")
        return False

    async def deposit(
        self, account_id: str, amount: int, *, key: str, memo: str = "", is_first: bool = False
    ) -> Account:
        """Put credits in. RecordMissing; IdempotencyConflict if the key stands for another amount.

        `is_first`: this transaction made the account, so that no key is known in it.
        """
        _check(amount)
        known = None if is_first else await self._known(account_id, EntryKind.DEPOSIT, key)
        if known is not None:
            if known.amount != amount:
                raise IdempotencyConflict(f"key: {key!r} was a deposit of {known.amount}, not of {amount}")
            return await self.account(account_id)
        return await self._move(account_id, key, memo, Move(EntryKind.DEPOSIT, amount, available=amount))

    async def withdraw(self, account_id: str, amount: int, *, key: str, memo: str = "") -> Account:
        """Take credits out; CreditsShort if there are fewer. The same key again changes nothing."""
        _check(amount)
        if await self._known(account_id, EntryKind.WITHDRAWAL, key) is not None:
            return await self.account(account_id)
        return await self._move(account_id, key, memo, Move(EntryKind.WITHDRAWAL, amount, available=-amount))

    async def hold(
        self,
        hold_id: str,
        accounts: Iterable[str],
        amount: int,
        *,
        run: str | None = None,
        memo: str = "",
        more: More | None = None,
        is_owed: bool = False,
    ) -> Hold:
        """Set it aside in each account, or CreditsShort naming the first, or the budget, that has less: then roll back.

        `more` is asked where an account has less, before it is too late. What `is_owed` no budget refuses.
        """
        asked = self.asked(hold_id, accounts, amount, run=run)
        part = self.holding(asked, memo=memo, more=more, is_owed=is_owed)
        return await run_alone(self._connection, self._database, part) or asked

    @staticmethod
    def asked(hold_id: str, accounts: Iterable[str], amount: int, *, run: str | None = None) -> Hold:
        """What `holding` is to hold."""
        _check(amount)
        names = tuple(sorted(set(accounts)))
        return Hold(id=hold_id, accounts=names, amount=amount, state=HoldState.HELD, charged=0, run=run)

    def holding(
        self, asked: Hold, *, memo: str = "", more: More | None = None, is_owed: bool = False
    ) -> Part[Hold]:  # fmt: skip
        """`hold` as a part of a chain."""
        row = msgspec.structs.asdict(asked) | {"accounts": json.dumps(asked.accounts)}
        row |= {"at_ms": self._now_ms, "settled_ms": None}
        move = hold_of(asked.amount)
        moves = [self._moving(account_id, asked.id, memo, move) for account_id in asked.accounts]

        async def count() -> None:
            for tenant in tenants_of(asked):
                await self._windows.take(asked.id, tenant, asked.amount, at_ms=self._now_ms, is_owed=is_owed)

        async def otherwise(n: int) -> Hold:
            if n == 0:
                return await self._same(asked)
            for account_id in asked.accounts[n - 1 :]:
                await self._move_or_get(account_id, asked.id, memo, move, more)
            await count()
            return asked

        then = count if tenants_of(asked) else None
        return Part([Link(self._statements.hold, f"hold:{asked.id}", row), *moves], otherwise, then)

    async def _same(self, asked: Hold) -> Hold:
        """What stands under this id, if it is what was asked for."""
        known = await self.get_hold(asked.id)
        if (known.accounts, known.amount) != (asked.accounts, asked.amount):
            raise IdempotencyConflict(f"key: {asked.id!r} is a hold on other accounts or of another amount")
        return known

    async def _move_or_get(self, account_id: str, key: str, memo: str, move: Move, more: More | None) -> None:
        try:
            await self._move(account_id, key, memo, move)
        except CreditsShort:
            if more is None:
                raise
            await more(self, move.amount)
            await self._move(account_id, key, memo, move)

    async def settle(self, hold: Hold | str, price: int, *, memo: str = "") -> Settled:
        """Charge what it cost and give back the rest; also a hold whose call was only presumed. RecordMissing.

        Who has the hold need not be right about its state: it is looked up if it is not what they think.
        """
        if price:
            _check(price)
        held = await self.get_hold(hold) if isinstance(hold, str) else hold
        if held.state == HoldState.SETTLED:
            return outcome_of(held, held.charged)
        if not await self._close(held, HoldState.SETTLED, price):
            return await self.settle(held.id, price, memo=memo)
        if held.state == HoldState.PRESUMED:
            await self._correct(held, price, memo)
        else:
            await self._charge(held, min(price, held.amount), memo)
        uncovered = await self._collect(held, max(0, price - held.amount), memo)
        return msgspec.structs.replace(outcome_of(held, price), uncovered=uncovered)

    def settling(self, held: Hold, price: int, *, memo: str = "") -> Part[None]:
        """`settle` as a part of a chain, of a hold that is thought to be held, at a price that it covers."""
        close = self._closing(held.id, HoldState.HELD, HoldState.SETTLED, price)
        moves = [self._moving(account_id, held.id, memo, *charges(held, price)) for account_id in held.accounts]

        async def count() -> None:
            for tenant in tenants_of(held):
                await self._count(held, tenant, *charges(held, price))

        async def otherwise(n: int) -> None:
            if n == 0:
                await self.settle(held.id, price, memo=memo)
                return
            for account_id in held.accounts[n - 1 :]:
                await self._move(account_id, held.id, memo, *charges(held, price))
            await count()

        return Part([close, *moves], otherwise, count if tenants_of(held) else None)

    async def release(self, hold_id: str, *, memo: str = "") -> Settled:
        """Give all of it back: it was not used."""
        return await self.settle(hold_id, 0, memo=memo)

    async def presume(self, hold_id: str, *, memo: str = "outcome unknown") -> None:
        """Charge all of it until somebody knows better: the call may have been made. `settle` corrects it."""
        held = await self.get_hold(hold_id)
        if held.state == HoldState.HELD:
            await self._close(held, HoldState.PRESUMED, held.amount)
            await self._charge(held, held.amount, memo)

    async def holds_of(self, run: str, state: HoldState = HoldState.HELD) -> list[Hold]:
        """What a run still holds; a run that ends settles or releases each."""
        query = select(hold_table).where(hold_table.c.run == run, hold_table.c.state == state).order_by(hold_table.c.id)
        return [read_hold(row) for row in await self._connection.execute(query)]

    async def account(self, account_id: str) -> Account:
        found = await self._statements.account.fetch(self._connection, {"account_id": account_id})
        if not found:
            raise RecordMissing(f"no account {account_id!r}")
        return read_account(found[0])

    async def locked(self, account_id: str) -> Account:
        """The same, which nobody else changes until this transaction ends."""
        found = await self._statements.lock.fetch(self._connection, {"account_id": account_id})
        if not found:
            raise RecordMissing(f"no account {account_id!r}")
        return read_account(found[0])

    async def get_hold(self, hold_id: str) -> Hold:
        """RecordMissing if there is none. Whoever has it changes it: others wait until this transaction ends."""
        if (found := await self._find(hold_id)) is None:
            raise RecordMissing(f"no hold {hold_id!r}")
        return found

    # ── moves ────────────────────────────────────────────────────────────────────────────

    async def _charge(self, held: Hold, price: int, memo: str) -> None:
        for account_id in held.accounts:
            await self._move_of(held, account_id, memo, *charges(held, price))

    async def _correct(self, held: Hold, price: int, memo: str) -> None:
        """What was presumed is known now: what it did not cost comes back from what was spent."""
        rest = held.amount - min(price, held.amount)
        for account_id in held.accounts if rest else ():
            await self._move_of(held, account_id, memo, Move(EntryKind.REFUND, rest, spent=-rest, available=rest))

    async def _collect(self, held: Hold, above: int, memo: str) -> int:
        """The bill was higher than what was held: take what is there, and write down what is not; the most of that."""
        uncovered = 0
        for account_id in held.accounts if above else ():
            there = min(above, (await self.locked(account_id)).available)
            uncovered = max(uncovered, above - there)
            if there:
                overrun = Move(EntryKind.OVERRUN, there, available=-there, spent=there)
                await self._move_of(held, account_id, memo, overrun)
            if there < above:
                await self._move(account_id, held.id, memo, Move(EntryKind.UNCOVERED, above - there))
        return uncovered

    async def _move_of(self, held: Hold, account_id: str, memo: str, *moves: Move) -> None:
        """The same of a hold; a purse's is counted in the budgets that the hold was."""
        await self._move(account_id, held.id, memo, *moves)
        if account_id.startswith(PURSE):
            await self._count(held, account_id.removeprefix(PURSE), *moves)

    async def _count(self, held: Hold, tenant: str, *moves: Move) -> None:
        sums = sums_of(moves)
        await self._windows.change(
            held.id, tenant, more_held=sums["more_held"], more_spent=sums["more_spent"]
        )  # fmt: skip

    async def _move(self, account_id: str, key: str, memo: str, *moves: Move) -> Account:
        """Change the sums and write an entry for each move. CreditsShort rather than less than nothing."""
        link = self._moving(account_id, key, memo, *moves)
        if (changed := await link.statement.fetch(self._connection, link.values, link.rows)) is None:
            there = await self.account(account_id)
            needed = sum(move.amount for move in moves)
            raise CreditsShort(
                f"{account_id}: {needed} micro-credits are needed, and {there.available} are available",
                required=needed,
                available=there.available,
            )
        return read_account(changed)

    def _moving(self, account_id: str, key: str, memo: str, *moves: Move) -> Link:
        """Gives the account after it; nothing if there is too little in it."""
        common = {"account": account_id, "key": key, "memo": memo[:200], "at_ms": self._now_ms}
        lines = [common | line for line in lines_of(moves)]
        sums = {"account_id": account_id, **sums_of(moves)}
        return Link(self._statements.move, f"account:{account_id}", sums, lines)

    async def _close(self, held: Hold, state: HoldState, price: int) -> bool:
        """Whether it was in the state in which we know it."""
        link = self._closing(held.id, held.state, state, price)
        return await link.statement.fetch(self._connection, link.values) is not None

    def _closing(self, hold_id: str, before: HoldState, state: HoldState, price: int) -> Link:
        new = {"state": state, "charged": price, "settled_ms": self._now_ms}
        return Link(self._statements.close, f"hold:{hold_id}", {"hold_id": hold_id, "state_before": before, **new})

    async def _find(self, hold_id: str) -> Hold | None:
        query = select(hold_table).where(hold_table.c.id == hold_id).with_for_update()
        row = (await self._connection.execute(query)).one_or_none()
        return None if row is None else read_hold(row)

    async def _known(self, account_id: str, kind: EntryKind, key: str) -> Row[Any] | None:
        # The account first: two deposits with one key take turns, and the second finds the first's entry.
        await self._connection.execute(select(account.c.id).where(account.c.id == account_id).with_for_update())
        same = (entry.c.account == account_id, entry.c.kind == kind, entry.c.key == key)
        return (await self._connection.execute(select(entry).where(*same))).one_or_none()


def _check(amount: int) -> None:
    if not 0 < amount <= MOST:
        raise BadOption(f"amount: more than 0 micro-credits, not {amount}")
