"""Chains: verbs of several rooms in one round trip, with the outcome of one after the other."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.errors import CreditsShort, LeaseLost, RecordMissing
from bullpen.job.entries import JournalEntry
from bullpen.records import postgres
from bullpen.records.chained import Chain, Part
from bullpen.records.credits.ledger import Ledger
from bullpen.records.credits.words import HoldState
from bullpen.records.database import Database
from bullpen.records.journal import JournalOn, SqlJournal
from bullpen.records.prepared import Prepared
from bullpen.records.records import Records
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import NewProgress, ProgressKind
from bullpen.records.tables.runs import progress

_ALL = 1_000
_LINE = NewProgress(ProgressKind.THINKING, {"content": "hm"})


@pytest.fixture
async def database(records: Records) -> Database:
    """With a run, its journal in its first activation, and two accounts."""
    database = records.database
    async with database.writing() as connection:
        await RunsOn(connection, database).create("run", "acme", created_by="test")
        ledger, journal = Ledger(connection, database), JournalOn(connection, database)
        for name in ("a", "b"):
            await ledger.open(name, "acme")
            await ledger.deposit(name, _ALL, key="first")
        await journal.open("run")
        await journal.begin("run", 1)
    return database


class _Step:
    """A chain as a step has it: an entry, a hold, a line."""

    def __init__(self, connection: AsyncConnection, database: Database) -> None:
        self.chain = Chain(connection, database)
        self._journal = JournalOn(connection, database)
        self._ledger = Ledger(connection, database)
        self._runs = RunsOn(connection, database)

    def put(self, place: int, *, epoch: int = 1) -> None:
        self.chain.add(self._journal.putting("run", [JournalEntry(place, f"n{place}")], epoch=epoch))

    def hold(self, hold_id: str, amount: int, *accounts: str, more: Any = None) -> None:
        self.chain.add(self._ledger.holding(Ledger.asked(hold_id, accounts or ("a",), amount), more=more))

    def settle(self, hold_id: str, amount: int, price: int, *accounts: str) -> None:
        self.chain.add(self._ledger.settling(Ledger.asked(hold_id, accounts or ("a",), amount), price))

    def tell(self, run: str = "run") -> None:
        self.chain.add(self._runs.telling(run, "task", [_LINE]))


async def _step(database: Database, *fill: Callable[[_Step], None], begun: bool = False) -> bool:
    """All of a transaction; whether nothing had to be done twice."""
    async with database.writing(brief=True, begun=begun) as connection:
        step = _Step(connection, database)
        for one in fill:
            one(step)
        return await step.chain.run_last()


async def _sums(database: Database, name: str = "a") -> tuple[int, int, int]:
    async with database.reading() as connection:
        there = await Ledger(connection, database).account(name)
    return there.available, there.held, there.spent


async def _names(database: Database) -> list[str]:
    return [entry.name for entry in (await SqlJournal(database).read("run")).entries]


async def _lines(database: Database) -> int:
    async with database.reading() as connection:
        return len((await connection.execute(select(progress.c.number))).all())


def _whole(place: int, hold_id: str, amount: int, *accounts: str, epoch: int = 1) -> Callable[[_Step], None]:
    def fill(step: _Step) -> None:
        step.put(place, epoch=epoch)
        step.hold(hold_id, amount, *accounts)
        step.tell()

    return fill


@pytest.mark.parametrize("begun", [True, False])
async def test_all_of_it_is_done_in_one_round_trip(
    database: Database, records: Records, monkeypatch: pytest.MonkeyPatch, *, begun: bool
) -> None:
    """On SQLite, which has none, in turn."""
    fetch, fetched = Prepared.fetch, 0
    begin, began = postgres.begin, 0

    async def counted(self: Prepared, *given: Any) -> Any:
        nonlocal fetched
        fetched += 1
        return await fetch(self, *given)

    async def counted_begin(connection: AsyncConnection) -> None:
        nonlocal began
        began += 1
        await begin(connection)

    monkeypatch.setattr(Prepared, "fetch", counted)
    monkeypatch.setattr(postgres, "begin", counted_begin)
    assert await _step(database, _whole(0, "h0", 100, "a", "b"), begun=begun)
    assert not database.is_postgres or (fetched, began > 0) == (1, begun)
    assert await _names(database) == ["n0"]
    assert await _sums(database) == await _sums(database, "b") == (900, 100, 0)
    assert await _lines(database) == 1
    await _step(database, lambda step: step.settle("h0", 100, 30, "a", "b"), _whole(1, "h1", 50, "b"))
    assert (await _sums(database), await _sums(database, "b")) == ((970, 0, 30), (920, 50, 30))
    assert await records.credits.unbalanced() == []


async def test_what_comes_after_the_last_part_is_not_left_out(database: Database) -> None:
    done: list[str] = []

    async def note() -> None:
        done.append("after")

    async with database.writing(brief=True, begun=False) as connection:
        part = JournalOn(connection, database).putting("run", [JournalEntry(0, "n0")], epoch=1)
        chain = Chain(connection, database)
        chain.add(Part(part.links, part.otherwise, note))
        assert await chain.run_last()
    assert (done, await _names(database)) == (["after"], ["n0"])


async def test_a_row_may_change_twice(database: Database, records: Records) -> None:
    """Of two changes of a row in one statement PostgreSQL would make one."""
    await _step(database, _whole(0, "h0", 100))
    await _step(database, lambda step: step.settle("h0", 100, 30), _whole(1, "h1", 50), _whole(2, "h2", 60))
    assert await _sums(database) == (_ALL - 30 - 50 - 60, 110, 30)
    assert await _names(database) == ["n0", "n1", "n2"]
    assert await _lines(database) == 3
    assert await records.credits.unbalanced() == []


async def test_what_cannot_be_done_at_once_is_done_in_turn(database: Database, records: Records) -> None:
    """A part that ends otherwise, and a row that is changed twice: nothing is done twice, and nothing left out."""

    async def more(ledger: Ledger, need: int) -> None:
        await ledger.deposit("b", need, key="more")

    def short(step: _Step) -> None:
        step.put(0)
        step.hold("h0", _ALL + 1, "b", more=more)
        step.tell()

    assert await _step(database, short) is not database.is_postgres
    assert (await _names(database), await _lines(database)) == (["n0"], 1)
    assert await _sums(database, "b") == (_ALL, _ALL + 1, 0)
    assert await _step(database, lambda step: step.settle("h0", _ALL + 1, 1, "b"), _whole(1, "h1", 50, "b"))
    assert await _sums(database, "b") == (2 * _ALL - 50, 50, 1)
    assert await records.credits.unbalanced() == []


@pytest.mark.parametrize("is_swallowed", [True, False])
async def test_what_comes_after_one_that_is_refused_is_not_done(database: Database, *, is_swallowed: bool) -> None:
    """Whatever becomes of the transaction."""

    async def overtaken() -> None:
        async with database.writing(brief=True) as connection:
            step = _Step(connection, database)
            step.put(0)
            _whole(1, "h1", 100, epoch=2)(step)
            try:
                await step.chain.run()
            except LeaseLost:
                if not is_swallowed:
                    raise

    if is_swallowed:
        await overtaken()
    else:
        with pytest.raises(LeaseLost):
            await overtaken()
    assert await _names(database) == (["n0"] if is_swallowed else [])
    assert await _sums(database) == (_ALL, 0, 0)
    assert await _lines(database) == 0


async def test_a_verb_that_ends_otherwise_does_not_stop_those_after_it(database: Database, records: Records) -> None:
    """A hold that is there already, one that needs more, and one that was settled by somebody else."""
    await _step(database, lambda step: step.hold("h0", 100))

    async def more(ledger: Ledger, need: int) -> None:
        await ledger.deposit("b", need, key="more")

    def fill(step: _Step) -> None:
        step.hold("h0", 100)
        step.hold("h1", _ALL + 1, "b", more=more)
        step.settle("h0", 100, 30)
        step.tell()

    await _step(database, fill)
    assert (await _sums(database), await _sums(database, "b")) == ((970, 0, 30), (_ALL, _ALL + 1, 0))
    await _step(database, lambda step: step.settle("h0", 100, 40), lambda step: step.put(0))
    assert await _sums(database) == (970, 0, 30)
    assert (await _names(database), await _lines(database)) == (["n0"], 1)
    assert await records.credits.unbalanced() == []


async def test_each_verb_says_what_is_wrong_with_it(database: Database) -> None:
    with pytest.raises(CreditsShort, match=r"b: 2000 micro-credits are needed, and 1000 are available"):
        await _step(database, _whole(0, "h0", 2 * _ALL, "b"))
    with pytest.raises(RecordMissing, match="no account 'c'"):
        await _step(database, _whole(0, "h0", 100, "c"))
    with pytest.raises(RecordMissing, match="no run 'other'"):
        await _step(database, lambda step: step.put(0), lambda step: step.tell("other"))
    with pytest.raises(RecordMissing, match="no hold 'h9'"):
        await _step(database, lambda step: step.settle("h9", 1, 1))
    assert (await _names(database), await _sums(database), await _lines(database)) == ([], (_ALL, 0, 0), 0)


async def test_a_part_is_told_which_link_gave_nothing(database: Database) -> None:
    async with database.writing(brief=True) as connection:
        ledger, told = Ledger(connection, database), []
        asked = Ledger.asked("h0", ["a", "b", "nobody"], 100)

        async def otherwise(n: int) -> None:
            told.append(n)

        chain = Chain(connection, database)
        chain.add(Part(ledger.holding(asked).links, otherwise))
        await chain.run()
        assert told == [3]
        assert (await ledger.get_hold("h0")).state == HoldState.HELD
        assert (await ledger.account("b")).held == 100


async def _until_somebody_waits(database: Database) -> None:
    async with asyncio.timeout(10):
        while True:
            async with database.reading() as connection:
                waiting = await connection.execute(text("SELECT count(*) FROM pg_locks WHERE NOT granted"))
                if waiting.scalar_one():
                    return
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("address", ["postgres"], indirect=True)  # on SQLite there is one writer at a time
class TestWithOthers:
    """Who waits for another's row goes by what it finds there, not by what it saw when its statement began."""

    async def _beside(self, database: Database, other: Callable[[AsyncConnection], Awaitable[object]]) -> None:
        async with database.writing(brief=True) as connection:
            await other(connection)
            mine = asyncio.create_task(_step(database, _whole(0, "mine", 600)))
            await _until_somebody_waits(database)
        await mine

    async def test_sums_are_of_what_the_other_left(self, database: Database, records: Records) -> None:
        await self._beside(database, lambda connection: Ledger(connection, database).hold("other", ["a"], 300))
        assert await _sums(database) == (100, 900, 0)
        assert (await _names(database), await _lines(database)) == (["n0"], 1)
        assert await records.credits.unbalanced() == []

    async def test_who_comes_second_may_find_too_little(self, database: Database) -> None:
        with pytest.raises(CreditsShort, match="400 are available"):
            await self._beside(database, lambda connection: Ledger(connection, database).hold("other", ["a"], 600))
        assert (await _sums(database), await _names(database), await _lines(database)) == ((400, 600, 0), [], 0)

    async def test_who_is_overtaken_while_it_waits_does_nothing(self, database: Database) -> None:
        with pytest.raises(LeaseLost):
            await self._beside(database, lambda connection: JournalOn(connection, database).begin("run", 2))
        assert (await _sums(database), await _names(database), await _lines(database)) == ((_ALL, 0, 0), [], 0)

    async def test_no_number_of_the_log_is_given_twice(self, database: Database) -> None:
        await self._beside(database, lambda connection: RunsOn(connection, database).tell("run", "other", [_LINE] * 3))
        async with database.reading() as connection:
            found = await connection.execute(select(progress.c.number).order_by(progress.c.number))
            assert found.scalars().all() == [1, 2, 3, 4]

    async def test_many_at_once(self, database: Database, records: Records) -> None:
        """Each holds in both accounts, and settles what another step of it held."""

        async def work(n: int) -> None:
            await _step(database, _whole(n, f"h{n}", 10, "a", "b"))
            await _step(database, lambda step: step.put(n), lambda step: step.settle(f"h{n}", 10, 4, "a", "b"))

        await asyncio.gather(*(work(n) for n in range(40)))
        assert await _sums(database) == await _sums(database, "b") == (_ALL - 160, 0, 160)
        assert (len(await _names(database)), await _lines(database)) == (40, 40)
        assert await records.credits.unbalanced() == []
