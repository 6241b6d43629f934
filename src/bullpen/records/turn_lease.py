"""Work that is done by one at a time, whichever replica it is: the read model, webhooks, chores.

The lease is a row. Who writes renews it in the same transaction, and writes nothing if it is
another's by now: so clocks that differ cost a change of hands at worst, never a wrong row.
"""

import uuid

from sqlalchemy import or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.records.database import Database
from bullpen.records.model.sql import insert_for
from bullpen.records.tables.access import lease

HOLD_MS = 15_000


class TurnLost(Exception):
    """It is another replica's turn now; what this one was about to write is nobody's loss."""


class TurnLease:
    """The turn at the work of this name, held for a while after each take or renewal."""

    def __init__(self, database: Database, name: str, *, hold_ms: int | None = None) -> None:
        self._database = database
        self._name = name
        self._hold_ms = HOLD_MS if hold_ms is None else hold_ms
        self.owner = uuid.uuid4().hex

    async def take(self) -> bool:
        """Whether the turn is ours, now and for a while."""
        now_ms = self._database.clock.now_ms()
        free = or_(lease.c.until_ms <= now_ms, lease.c.owner == self.owner)
        mine = {"owner": self.owner, "until_ms": now_ms + self._hold_ms}
        async with self._database.writing() as connection:
            new = insert_for(self._database, lease).values(name=self._name, **mine)
            await connection.execute(new.on_conflict_do_update(index_elements=[lease.c.name], set_=mine, where=free))
            found = select(lease.c.owner).where(lease.c.name == self._name)
            return bool((await connection.execute(found)).scalar_one() == self.owner)

    async def renew(self, connection: AsyncConnection) -> None:
        """Within the transaction that writes; TurnLost if it is another's."""
        is_mine = (lease.c.name == self._name) & (lease.c.owner == self.owner)
        until_ms = self._database.clock.now_ms() + self._hold_ms
        if (await connection.execute(update(lease).where(is_mine).values(until_ms=until_ms))).rowcount == 0:
            raise TurnLost

    async def give_back(self) -> None:
        is_mine = (lease.c.name == self._name) & (lease.c.owner == self.owner)
        async with self._database.writing() as connection:
            await connection.execute(update(lease).where(is_mine).values(until_ms=0))
