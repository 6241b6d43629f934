"""The credits that are held for the steps of one task, and how they are settled with what came of each."""

from collections.abc import Iterable, Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.agents.loop.booking import Cost, Overruns, booked, booking, settle_all
from bullpen.job.entries import JournalEntry
from bullpen.records.chained import Chain
from bullpen.records.credits.budget import Budget
from bullpen.records.credits.ledger import Ledger
from bullpen.records.credits.words import Hold
from bullpen.records.database import Database


class Holds:
    """Those of one activation, within the transactions of its recorder."""

    def __init__(
        self, database: Database, task: str, accounts: Sequence[str], budget: Budget | None, overruns: Overruns
    ) -> None:
        self._database = database
        self._task = task
        self._budget = budget
        self._accounts = (*accounts, budget.account) if budget else tuple(accounts)
        """Whose credits are spent: the organisation's or the task's own, and every other that applies."""
        self._overruns = overruns
        self._held: dict[str, Hold] = {}
        """Those that nobody has settled or presumed, by id."""

    def found(self, holds: Iterable[Hold]) -> None:
        """On record, of the activations before."""
        self._held = {hold.id: hold for hold in holds}

    def asked(self, entry: JournalEntry, most: int) -> Hold | None:
        """For a step that may cost this; None if nothing needs to be held."""
        accounts = self._accounts if most else ()
        return Ledger.asked(self._id_of(entry), accounts, most, run=self._task) if accounts else None

    def hold(self, held: Hold, ledger: Ledger, chain: Chain, *, memo: str) -> None:
        """As the chain's next part."""
        more = None if self._budget is None else self._budget.cover
        chain.add(booked(ledger.holding(held, memo=memo, more=more)))

    def keep(self, held: Hold) -> None:
        """It is on record now."""
        self._held[held.id] = held

    async def settle(self, ledger: Ledger, entry: JournalEntry, price: int, chain: Chain, memo: str) -> None:
        if (held := self._held.get(self._id_of(entry))) is None:
            return
        if price <= held.amount:
            chain.add(booked(ledger.settling(held, price, memo=memo)))
            return
        await chain.run()
        await self._overruns.settle(ledger, self._budget, held, price, memo=memo)

    async def book(self, connection: AsyncConnection, entry: JournalEntry, price: int | None, memo: str) -> None:
        """Settle what it cost, or presume that where nobody knows."""
        ledger, chain = Ledger(connection, self._database), Chain(connection, self._database)
        if price is not None:
            await self.settle(ledger, entry, price, chain, memo)
            await chain.run()
        elif self._id_of(entry) in self._held:
            with booking():
                await ledger.presume(self._id_of(entry))

    async def settle_all(self, connection: AsyncConnection) -> Cost:
        """At the end of the task: what it comes to."""
        return await settle_all(Ledger(connection, self._database), self._task, self._budget)

    def _id_of(self, entry: JournalEntry) -> str:
        return f"{self._task}/{entry.place}/{entry.attempts}"
