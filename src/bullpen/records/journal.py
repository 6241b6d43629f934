"""The journal's home in SQL, for runs whose other state is there too.

`SqlJournal` keeps the promises of `bullpen.journal.base.Journal`, each verb in a transaction of its own.
`JournalOn` is the same on a transaction of the caller's: what a step did and what it cost become true together.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, bindparam, delete, func, insert, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.errors import LeaseLost, MailboxFull, RecordMissing, WrongState
from bullpen.job.entries import EntryState, JournalEntry, JournalPage
from bullpen.records.chained import Link, Part, run_alone
from bullpen.records.database import Database
from bullpen.records.model.sql import new_in
from bullpen.records.prepared import Followed, Parameters, Prepared
from bullpen.records.tables.journal import entry as entry_table
from bullpen.records.tables.journal import journal, signal
from bullpen.stores.base import MAX_SIGNALS
from bullpen.stores.entries import decode_entry, encode_head


class Statements:
    """Those of every step."""

    def __init__(self, database: Database) -> None:
        standing = select(journal.c.epoch, journal.c.ended_ms).where(journal.c.run == bindparam("run"))
        standing = standing.with_for_update()
        self.hold = Prepared(database, standing)
        self.put = Followed(database, _active, entry_table, replaced=("is_done", "head", "value"))
        """Nothing for an activation that was overtaken."""


def _active(parameter: Parameters, *only_if: ColumnElement[bool]) -> Any:
    this = (journal.c.run == parameter("run"), journal.c.epoch == parameter("epoch"), journal.c.ended_ms.is_(None))
    return select(journal.c.epoch).where(*this, *only_if).with_for_update()


class JournalOn:
    """The journal on one transaction, which whoever began it ends."""

    def __init__(self, connection: AsyncConnection, database: Database) -> None:
        self._connection = connection
        self._database = database
        self._statements = database.own(Statements)

    async def open(self, run: str) -> None:
        """A run that has recorded nothing, unless there is one of this name."""
        await self._connection.execute(new_in(self._database, journal), {"run": run, "epoch": 0})

    async def begin(self, run: str, epoch: int) -> None:
        """An activation, which ends those before it. LeaseLost if a later one has begun, or the run has ended."""
        await self._row(run)
        later = (journal.c.run == run, journal.c.epoch <= epoch, journal.c.ended_ms.is_(None))
        begun = await self._connection.execute(update(journal).where(*later).values(epoch=epoch))
        if begun.rowcount == 0:
            raise LeaseLost(f"run {run!r} is beyond its activation {epoch}")

    async def end(self, run: str, *, epoch: int) -> None:
        """Nothing is recorded from now on. LeaseLost as everywhere."""
        await self._hold(run, epoch)
        ended = {"ended_ms": self._database.clock.now_ms()}
        await self._connection.execute(update(journal).where(journal.c.run == run).values(**ended))

    async def stop(self, run: str) -> None:
        """End it whoever is active in it: that one's next entry is refused."""
        await self.end(run, epoch=(await self._row(run))[0])

    async def take_off(self, run: str, place: int) -> None:
        """What is on record there has served its turn."""
        there = (entry_table.c.run == run, entry_table.c.place == place)
        await self._connection.execute(delete(entry_table).where(*there))

    async def append(self, run: str, entries: Sequence[JournalEntry], *, epoch: int) -> list[JournalEntry]:
        await self._hold(run, epoch)
        return [await self._append_one(run, each, epoch) for each in entries]

    async def put(self, run: str, entries: Sequence[JournalEntry], *, epoch: int) -> None:
        """The same for whoever knows what stands there, having read it in this activation: it is replaced."""
        await run_alone(self._connection, self._database, self.putting(run, entries, epoch=epoch))

    def putting(self, run: str, entries: Sequence[JournalEntry], *, epoch: int) -> Part[None]:
        """`put` as a part of a chain."""

        async def otherwise(_: int) -> None:
            raise LeaseLost(f"run {run!r} is gone, or no longer in its activation {epoch}")

        rows = [_row_of(run, each) for each in entries]
        return Part([Link(self._statements.put, f"journal:{run}", {"run": run, "epoch": epoch}, rows)], otherwise)

    async def receive(self, run: str, entry: JournalEntry, *, epoch: int) -> JournalEntry | None:
        await self._hold(run, epoch)
        if (standing := await self._done_at(run, entry.place)) is not None:
            return standing
        oldest = select(func.min(signal.c.number)).where(signal.c.run == run, signal.c.name == entry.name)
        taken = delete(signal).where(signal.c.number == oldest.scalar_subquery()).returning(signal.c.payload)
        payload = (await self._connection.execute(taken)).scalar_one_or_none()
        if payload is None:
            return None
        return await self._append_one(run, msgspec.structs.replace(entry, value=payload), epoch)

    async def read(self, run: str, *, start: int = 0, limit: int = 1_000) -> JournalPage:
        places = (entry_table.c.run == run, entry_table.c.place >= start, entry_table.c.place < start + limit)
        query = select(entry_table.c.head, entry_table.c.value).where(*places).order_by(entry_table.c.place)
        entries = tuple(decode_entry(row.head, row.value) for row in await self._connection.execute(query))
        last = select(func.max(entry_table.c.place)).where(entry_table.c.run == run)
        newest = (await self._connection.execute(last)).scalar()
        return JournalPage(entries, start + limit if newest is not None and newest >= start + limit else None)

    async def fork(self, run: str, at: int, new_run: str) -> int:
        await self._row(run)
        await self._row(new_run)
        if (await self._connection.execute(select(entry_table.c.run).where(entry_table.c.run == new_run))).first():
            raise WrongState(f"run {new_run!r} has a journal of its own")
        columns = ("place", "is_done", "head", "value")
        source = select(literal(new_run), *(entry_table.c[name] for name in columns))
        before = source.where(entry_table.c.run == run, entry_table.c.place < at)
        copied = await self._connection.execute(insert(entry_table).from_select(["run", *columns], before))
        return copied.rowcount

    async def forget(self, run: str) -> None:
        for table in (entry_table, signal):
            await self._connection.execute(delete(table).where(table.c.run == run))

    async def signal(self, run: str, name: str, payload: bytes) -> None:
        """Keep it until the run asks. RecordMissing; WrongState if it has ended; MailboxFull if it takes none."""
        ended_ms = (await self._row(run))[1]
        if ended_ms is not None:
            raise WrongState(f"run {run!r} has ended, and cannot be signalled")
        waiting = select(func.count()).select_from(signal).where(signal.c.run == run)
        if (found := (await self._connection.execute(waiting)).scalar_one()) >= MAX_SIGNALS:
            raise MailboxFull(f"{found} signals wait for run {run!r}; it does not take them")
        await self._connection.execute(insert(signal), {"run": run, "name": name, "payload": payload})

    async def has_signal(self, run: str, name: str) -> bool:
        """Whether one lies there that the run has not asked for yet."""
        kept = select(signal.c.run).where(signal.c.run == run, signal.c.name == name)
        return (await self._connection.execute(kept)).first() is not None

    async def has_ended(self, run: str) -> bool:
        return (await self._row(run))[1] is not None

    async def value_of(self, run: str, name: str) -> bytes | None:
        """Of the last step, if that has this name."""
        last = select(entry_table.c.head, entry_table.c.value).where(entry_table.c.run == run)
        row = (await self._connection.execute(last.order_by(entry_table.c.place.desc()).limit(1))).one_or_none()
        found = None if row is None else decode_entry(row.head, row.value)
        return found.value if found is not None and found.name == name else None

    # ── shared ───────────────────────────────────────────────────────────────────────────

    async def _row(self, run: str) -> tuple[int, int | None]:
        """Its epoch and end; whoever else would change the run waits until this transaction is over."""
        if not (found := await self._statements.hold.fetch(self._connection, {"run": run})):
            raise RecordMissing(f"no run {run!r}")
        epoch, ended_ms = found[0]
        return epoch, ended_ms

    async def _hold(self, run: str, epoch: int) -> None:
        try:
            current, ended_ms = await self._row(run)
        except RecordMissing as missing:
            raise LeaseLost(f"run {run!r} is gone") from missing
        if current != epoch or ended_ms is not None:
            raise LeaseLost(f"run {run!r} is no longer in its activation {epoch}")

    async def _append_one(self, run: str, entry: JournalEntry, epoch: int) -> JournalEntry:
        if (standing := await self._done_at(run, entry.place)) is not None:
            return standing
        await self.put(run, [entry], epoch=epoch)
        return entry

    async def _done_at(self, run: str, place: int) -> JournalEntry | None:
        done = (entry_table.c.run == run, entry_table.c.place == place, entry_table.c.is_done)
        query = select(entry_table.c.head, entry_table.c.value).where(*done)
        row = (await self._connection.execute(query)).one_or_none()
        return None if row is None else decode_entry(row.head, row.value)


def _row_of(run: str, entry: JournalEntry) -> dict[str, Any]:
    return {
        "run": run,
        "place": entry.place,
        "is_done": entry.state == EntryState.DONE,
        "head": encode_head(entry),
        "value": entry.value,
    }


class SqlJournal:
    """The journal in the records; see `bullpen.journal.base.Journal`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[JournalOn]:
        async with self._database.writing() as connection:
            yield JournalOn(connection, self._database)

    async def append(self, run: str, entries: Sequence[JournalEntry], *, epoch: int) -> Sequence[JournalEntry]:
        async with self.writing() as on:
            return await on.append(run, entries, epoch=epoch)

    async def receive(self, run: str, entry: JournalEntry, *, epoch: int) -> JournalEntry | None:
        async with self.writing() as on:
            return await on.receive(run, entry, epoch=epoch)

    async def read(self, run: str, *, start: int = 0, limit: int = 1_000) -> JournalPage:
        async with self._database.reading(brief=True) as connection:
            return await JournalOn(connection, self._database).read(run, start=start, limit=limit)

    async def fork(self, run: str, at: int, new_run: str) -> int:
        async with self.writing() as on:
            return await on.fork(run, at, new_run)

    async def forget(self, run: str) -> None:
        async with self.writing() as on:
            await on.forget(run)


async def read_all(journal: JournalOn | SqlJournal, run: str) -> list[JournalEntry]:
    """All that a run has on record, in order."""
    found: list[JournalEntry] = []
    start: int | None = 0
    while start is not None:
        page = await journal.read(run, start=start)
        found += page.entries
        start = page.next_place
    return found
