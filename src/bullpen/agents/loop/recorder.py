"""A run's steps on record: what is intended before it is done, what came of it, and both with their credits.

    intend: entry open   + hold      ─┐
                                      ├─ in one transaction, refused to whoever was overtaken
    finish: entry done   + settle    ─┘

What came of a step may wait for what is intended next, which is a moment later: then one transaction has both. Who
dies in that moment dies between an effect and its record, as whoever dies a moment before.

A step that is found open was begun by a worker that died: its hold is presumed spent, unless somebody knows that it
was not done, and it is begun anew under another one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.agents.loop.booking import Cost, Overruns
from bullpen.agents.loop.finishing import Also, Finished, take_back, to_its_end
from bullpen.agents.loop.holding import Holds
from bullpen.agents.loop.steps import END
from bullpen.agents.redacting import Redactor
from bullpen.errors import RecordsUnavailable
from bullpen.job.entries import EntryKind, EntryState, JournalEntry
from bullpen.observing import Observers
from bullpen.records.chained import Chain
from bullpen.records.credits.budget import Budget
from bullpen.records.credits.ledger import Ledger
from bullpen.records.credits.words import Hold, HoldState
from bullpen.records.database import Database
from bullpen.records.journal import JournalOn, SqlJournal, read_all
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import NewProgress

AlsoEnd = Callable[[AsyncConnection, bytes], Awaitable[object]]
"""`Also` of a run that ends, with its result."""


class Recorder:
    """The journal of one activation of a run."""

    def __init__(
        self,
        database: Database,
        task_id: str,
        epoch: int,
        accounts: Sequence[str] = (),
        *,
        budget: Budget | None = None,
        run_id: str = "",
        redactor: Redactor | None = None,
        observers: Observers | None = None,
    ) -> None:
        self.task_id = task_id
        """Whose journal it is, and whose credits are held: in both tables the column is named `run`."""
        self._database = database
        self._epoch = epoch
        self._run_id = run_id
        """The run whose log is told of each step; without one nobody is."""
        self.redactor = Redactor(()) if redactor is None else redactor
        """Of what is told."""
        self._overruns = Overruns(run_id, task_id, Observers() if observers is None else observers)
        self._holds = Holds(database, task_id, accounts, budget, self._overruns)
        self._entries: dict[int, JournalEntry] = {}
        self._finished: list[Finished] = []
        self._writing = asyncio.Lock()
        self._is_short = False
        """Whether a hold needed more than was there: then the next one does too, and is not tried at once."""

    async def begin(self, also: Also | None = None) -> bytes | None:
        """End the activation before this one, and read what is on record. LeaseLost if this is not the latest.

        The result of a run that has ended; None for one that is to go on.
        """
        async with self._database.writing(brief=True) as connection:
            journal = JournalOn(connection, self._database)
            await journal.open(self.task_id)
            if await journal.has_ended(self.task_id):
                return await journal.value_of(self.task_id, END)
            await journal.begin(self.task_id, self._epoch)
            if also is not None:
                await also(connection)
            self._holds.found(await Ledger(connection, self._database).holds_of(self.task_id, HoldState.HELD))
        self._entries |= {entry.place: entry for entry in await read_all(SqlJournal(self._database), self.task_id)}
        return None

    def at(self, place: int) -> JournalEntry | None:
        return self._entries.get(place)

    def key(self, place: int) -> str:
        """Of a step: the same in every activation, and no other's."""
        return f"{self.task_id}/{place}"

    async def intend(
        self,
        place: int,
        name: str,
        *,
        most: int = 0,
        told: Sequence[NewProgress] = (),
        used_up: int | None = None,
        not_done: bool = False,
    ) -> JournalEntry:
        """Put on record that this will be done, and hold what it may cost. CreditsShort: neither is true.

        `used_up` is the place of an answer that let it be done once more: it does not stand for the time after.
        `not_done`: who began it before is known not to have done it, which costs nothing.
        """
        before = self.at(place)
        attempts = 1 if before is None else before.attempts + 1
        now_ms = self._database.clock.now_ms()
        entry = JournalEntry(
            place, name, state=EntryState.OPEN, attempts=attempts, started_ms=now_ms, epoch=self._epoch
        )  # fmt: skip
        held = self._holds.asked(entry, most)

        async def end_before(connection: AsyncConnection) -> None:
            if used_up is not None:
                await JournalOn(connection, self._database).take_off(self.task_id, used_up)
            if before is not None:
                await self._holds.book(connection, before, 0 if not_done else None, before.name)

        first = None if before is None else end_before
        is_cancelled = await to_its_end(self._transact([entry], told, held=held, first=first))
        if held is not None:
            self._holds.keep(held)
        self._entries[place] = entry
        if used_up is not None:
            self._entries.pop(used_up, None)
        if is_cancelled:
            await self.give_up(entry, price=0)  # nobody will do it now
            raise asyncio.CancelledError
        return entry

    async def finish(
        self,
        entry: JournalEntry,
        value: bytes,
        *,
        price: int = 0,
        told: Sequence[NewProgress] = (),
        also: Also | None = None,
        may_wait: bool = False,
        memo: str = "",
        was_done: bool = False,
    ) -> JournalEntry:
        """Put its result on record, and settle what it cost: at once, or with what comes next; see `flush`.

        `was_done`: before this activation, by a worker that died; the time until somebody said so is no work.
        """
        now_ms = self._database.clock.now_ms()
        started_ms = now_ms if was_done else entry.started_ms
        done = msgspec.structs.replace(
            entry, state=EntryState.DONE, value=value, started_ms=started_ms, ended_ms=now_ms
        )
        self._finished.append(Finished(done, self.at(entry.place), price, told, also, memo or entry.name))
        self._entries[entry.place] = done
        if not may_wait:
            await self.flush()
        return done

    async def flush(self) -> None:
        """Put on record what waits for that."""
        try:
            if self._finished:
                await self._write()
        except Exception as error:
            if not isinstance(error, RecordsUnavailable):  # then it may be tried again
                take_back(self._finished, self._entries)
            raise

    async def note(
        self,
        place: int,
        name: str,
        value: bytes,
        *,
        told: Sequence[NewProgress] = (),
        also: Also | None = None,
        may_wait: bool = False,
    ) -> JournalEntry:
        """Put on record what cost nothing and changed nothing but records: it needs no intent before it."""
        entry = JournalEntry(place, name, started_ms=self._database.clock.now_ms(), epoch=self._epoch)
        return await self.finish(entry, value, told=told, also=also, may_wait=may_wait)

    async def tell(self, *told: NewProgress) -> None:
        """Tell of what is not a step. LeaseLost from an activation that was overtaken."""
        if not told or not self._run_id:
            return
        await self._write(told=told)

    async def give_up(self, entry: JournalEntry, *, price: int | None, memo: str = "") -> None:
        """It failed, and stays open: what it cost is settled, or presumed where nobody knows."""
        memo = memo or entry.name
        await self._write([entry], first=lambda connection: self._holds.book(connection, entry, price, memo))

    async def answer(self, place: int, signal: str) -> bytes | None:
        """What a person said, once they did; it is on record from then on."""
        entry = JournalEntry(place, signal, EntryKind.WAIT, epoch=self._epoch)
        found = await SqlJournal(self._database).receive(self.task_id, entry, epoch=self._epoch)
        if found is not None:
            self._entries[place] = found
        return None if found is None else found.value

    async def end(
        self, result: Callable[[Cost], bytes], also: AlsoEnd | None = None, *, first: Also | None = None
    ) -> bytes:  # fmt: skip
        """Nothing more is recorded, and nothing stays held. Calls that were under way are presumed made.

        `result` is given what the task has cost in all.
        """
        ended = b""

        async def end(connection: AsyncConnection) -> None:
            nonlocal ended
            journal = JournalOn(connection, self._database)
            ended = result(await self._holds.settle_all(connection))
            last = JournalEntry(max(self._entries, default=-1) + 1, END, value=ended, epoch=self._epoch)
            await journal.put(self.task_id, [last], epoch=self._epoch)
            await journal.end(self.task_id, epoch=self._epoch)
            if also is not None:
                await also(connection, ended)

        await self._write(also=end, first=first)
        return ended

    @property
    def entries(self) -> list[JournalEntry]:
        """What is on record, in order."""
        return [self._entries[place] for place in sorted(self._entries)]

    @property
    def got_further(self) -> bool:
        """Whether something was done in this activation, and is on record."""
        waiting = {one.entry.place for one in self._finished}
        done = (entry for entry in self._entries.values() if entry.state is EntryState.DONE)
        return any(entry.epoch == self._epoch and entry.place not in waiting for entry in done)

    async def _write(
        self,
        entries: Sequence[JournalEntry] = (),
        told: Sequence[NewProgress] = (),
        also: Also | None = None,
        first: Also | None = None,
    ) -> None:
        # Who is cancelled while it commits would not know whether it is on record, and would tell of it twice.
        if await to_its_end(self._transact(entries, told, also, first=first)):
            raise asyncio.CancelledError

    async def _transact(
        self,
        entries: Sequence[JournalEntry],
        told: Sequence[NewProgress],
        also: Also | None = None,
        *,
        held: Hold | None = None,
        first: Also | None = None,
    ) -> None:
        """All that waits, then `first`, which may give back credits, then the rest. LeaseLost if overtaken."""
        # One after the other: what waits is written once, and told once.
        async with self._writing:
            self._overruns.forget()
            waiting = tuple(self._finished)
            begun = self._is_short and held is not None
            async with self._database.writing(brief=True, begun=begun) as connection:
                chain, ledger = Chain(connection, self._database), Ledger(connection, self._database)
                put = [*(one.entry for one in waiting), *entries]
                chain.add(JournalOn(connection, self._database).putting(self.task_id, put, epoch=self._epoch))
                for one in waiting:
                    await self._holds.settle(ledger, one.entry, one.price, chain, one.memo)
                    if one.also is not None:
                        await chain.run()
                        await one.also(connection)
                if first is not None:
                    await chain.run()
                    await first(connection)
                if held is not None:
                    self._holds.hold(held, ledger, chain, memo=put[-1].name)
                # The run's row after the accounts, as where a task ends: who has the one does not wait for the other.
                before = [*(line for one in waiting for line in one.told), *self._overruns.lines()]
                if lines := self._lines([*before, *told]):
                    chain.add(RunsOn(connection, self._database).telling(self._run_id, self.task_id, lines))
                if also is not None:
                    await chain.run()
                    await also(connection)
                elif not await chain.run_last():
                    self._is_short = self._is_short or held is not None
            del self._finished[: len(waiting)]
            self._overruns.tell()

    def _lines(self, told: Sequence[NewProgress]) -> Sequence[NewProgress]:
        """Of the log, if anybody is told."""
        if not self._run_id:
            return ()
        return [NewProgress(one.kind, self.redactor.all_in(one.data)) for one in told]
