"""What a task may spend: set aside in the account that pays, spent from one of its own.

    payer: available ──hold──▶ held ─────────────charge──▶ spent        when the task ends
                                │                └─refund─▶ available
    task:                   deposit ─▶ available ─▶ calls hold, charge, refund

The payer is the purse of a tenant, or the account of the task that made this one. A first amount is set aside when
the task is submitted; a call that may cost more than is left takes more, up to the task's own limit. Where a task
pays that has too little left, it takes more in its turn. The tenant's budgets have room for both, or there is no task,
and no call.

Accounts are locked from a task upward: its own, that of the task that pays for it, the purse.
"""

import msgspec

from bullpen.errors import CreditsShort
from bullpen.records.credits.ledger import Ledger
from bullpen.records.credits.words import Account, HoldState

_TASK = "task:"


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Whose money a task spends, and how much of it at most."""

    task: str
    tenant: str
    payer: str
    """The account that pays."""
    most: int
    """Micro-credits, for all of its calls."""
    above: "Budget | None" = None
    """Of the task that pays, where one does."""

    @property
    def account(self) -> str:
        return account_of(self.task)

    async def open(self, ledger: Ledger, amount: int) -> None:
        """Set the first amount aside; CreditsShort if the payer has less."""
        is_first = await ledger.open(self.account, self.tenant)
        await self._take(ledger, amount, given=0, is_first=is_first)

    async def cover(self, ledger: Ledger, need: int) -> None:
        """Have so much available. CreditsShort if that is above the limit, or the payer has too little left."""
        there = await ledger.locked(self.account)
        missing = need - there.available
        if missing <= 0:
            return
        given = there.available + there.held + there.spent
        if given + missing > self.most:
            raise CreditsShort(
                f"{self.account}: {need} micro-credits are needed, and its limit of {self.most} leaves"
                f" {self.most - there.held - there.spent}"
            )
        if self.above is not None:
            await self.above.cover(ledger, missing)
        await self._take(ledger, missing, given=given)

    async def stretch(self, ledger: Ledger, need: int) -> None:
        """Have so much available for a bill, beyond the limit too, as far as those have it who pay."""
        there = await ledger.locked(self.account)
        missing = need - there.available
        if missing <= 0:
            return
        if self.above is not None:
            await self.above.stretch(ledger, missing)
        amount = min(missing, (await ledger.locked(self.payer)).available)
        if amount:
            await self._take(ledger, amount, given=there.available + there.held + there.spent, is_owed=True)

    async def close(self, ledger: Ledger) -> Account:
        """Charge the payer what was spent, and give it back the rest. Nothing of the task's own may still be held."""
        there = await ledger.account(self.account)
        due = there.spent
        for held in await ledger.holds_of(self.account, HoldState.HELD):
            charged = min(due, held.amount)
            await ledger.settle(held.id, charged, memo=f"task {self.task}")
            due -= charged
        if there.available:
            await ledger.withdraw(self.account, there.available, key=f"{self.account}/end")
        return there

    async def _take(
        self, ledger: Ledger, amount: int, *, given: int, is_owed: bool = False, is_first: bool = False
    ) -> None:
        # All that was given so far makes a key that grows with each amount, and is the same if one is taken again.
        key = f"{self.account}/{given}"
        memo = f"task {self.task}"
        await ledger.hold(key, [self.payer], amount, run=self.account, memo=memo, is_owed=is_owed)
        await ledger.deposit(self.account, amount, key=key, is_first=is_first)


def account_of(task: str) -> str:
    return f"{_TASK}{task}"
