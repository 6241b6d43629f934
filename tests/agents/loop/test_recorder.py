"""What is on record, and what it costs, when whoever records is cancelled at any moment."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.agents.loop.booking import settle_all
from bullpen.agents.loop.recorder import Recorder
from bullpen.job.entries import EntryState
from bullpen.observing import Observer, Observers
from bullpen.records.credits.budget import Budget
from bullpen.records.credits.credits import purse
from bullpen.records.credits.ledger import Ledger
from bullpen.records.database import Database
from bullpen.records.journal import SqlJournal
from bullpen.records.records import Records
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import NewProgress, ProgressKind
from bullpen.records.tables.runs import progress
from tests.agents.loop.world import TENANT

_ALL = 1_000


class _Gated(Database):
    """Says when a transaction is about to be committed, and waits until it may."""

    def __init__(self, inner: Database) -> None:
        super().__init__(inner.engine, inner.clock)
        self.is_there = asyncio.Event()
        self.may_go_on = asyncio.Event()

    @asynccontextmanager
    async def writing(self, *, brief: bool = False, begun: bool = True) -> AsyncIterator[AsyncConnection]:
        # Begun in any case: where nothing begins there is no moment before the commit.
        async with super().writing(brief=brief, begun=True) as connection:
            yield connection
            self.is_there.set()
            await self.may_go_on.wait()


@pytest.fixture(autouse=True)
async def rich(records: Records) -> None:
    await records.credits.deposit(TENANT, _ALL, key="first")
    async with records.database.writing() as connection:
        await RunsOn(connection, records.database).create("run", TENANT, created_by="test")


async def _begun(records: Records, database: Database | None = None) -> Recorder:
    recorder = Recorder(database or records.database, "r1", 1, [purse(TENANT)], run_id="run")
    await recorder.begin()
    return recorder


async def test_who_is_cancelled_while_it_intends_pays_nothing(records: Records) -> None:
    gated = _Gated(records.database)
    gated.may_go_on.set()
    recorder = await _begun(records, gated)
    gated.may_go_on.clear()
    gated.is_there.clear()
    intending = asyncio.create_task(recorder.intend(0, "llm:parrot", most=100))
    await gated.is_there.wait()
    intending.cancel()
    gated.may_go_on.set()
    await asyncio.wait([intending])
    assert intending.cancelled()
    balance = await records.credits.balance(TENANT)
    assert (balance.available, balance.held, balance.spent) == (_ALL, 0, 0)


async def test_what_is_finished_while_who_waits_is_cancelled_is_told_once(records: Records) -> None:
    gated = _Gated(records.database)
    gated.may_go_on.set()
    recorder = await _begun(records, gated)
    entry = await recorder.intend(0, "llm:parrot", most=100)
    await recorder.finish(entry, b"{}", price=30, told=[NewProgress(ProgressKind.THINKING, {})], may_wait=True)
    gated.may_go_on.clear()
    gated.is_there.clear()
    intending = asyncio.create_task(recorder.intend(1, "look"))
    await gated.is_there.wait()
    intending.cancel()
    gated.may_go_on.set()
    await asyncio.wait([intending])
    await recorder.flush()
    assert await _told(records) == [ProgressKind.THINKING]
    assert (await records.credits.balance(TENANT)).spent == 30


async def test_a_result_that_waits_is_on_record_with_what_comes_next_or_by_itself(records: Records) -> None:
    recorder = await _begun(records)
    first = await recorder.intend(0, "one")
    await recorder.finish(first, b"1", may_wait=True)
    assert await _states(records) == [EntryState.OPEN]
    second = await recorder.intend(1, "two")
    assert await _states(records) == [EntryState.DONE, EntryState.OPEN]
    await recorder.finish(second, b"2", may_wait=True)
    await recorder.flush()
    assert await _states(records) == [EntryState.DONE, EntryState.DONE]


@pytest.mark.parametrize("address", ["postgres"], indirect=True)  # on SQLite there is one writer at a time
async def test_a_step_that_needs_more_does_not_wait_crosswise_with_a_task_that_ends(records: Records) -> None:
    """Who ends a task of the same run has the payer's account first, and then the run's row."""
    database = records.database
    budget = Budget(task="r1", tenant=TENANT, payer=purse(TENANT), most=_ALL)
    async with database.writing() as connection:
        await budget.open(Ledger(connection, database), 10)
    recorder = Recorder(database, "r1", 1, budget=budget, run_id="run")
    await recorder.begin()
    thinking = NewProgress(ProgressKind.THINKING, {})
    async with database.writing(brief=True) as connection:
        await Ledger(connection, database).hold("other", [purse(TENANT)], 1)
        intending = asyncio.create_task(recorder.intend(0, "llm:parrot", most=100, told=[thinking]))
        locks = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        async with asyncio.timeout(10):
            while not (await connection.execute(locks)).scalar_one():
                await asyncio.sleep(0.01)
        await RunsOn(connection, database).tell("run", "other", [thinking])
    await intending
    assert len(await _told(records)) == 2


class _Heard(Observer):
    def __init__(self) -> None:
        self.overruns: list[int] = []

    def overrun(self, micro_credits: int) -> None:
        self.overruns.append(micro_credits)


@pytest.mark.parametrize("price, uncovered", [(700, 0), (_ALL + 50, 50)])
async def test_a_bill_above_what_was_held_is_paid_by_who_pays_and_told(
    records: Records, caplog: pytest.LogCaptureFixture, price: int, uncovered: int
) -> None:
    """Beyond the task's limit, as far as there is something, and never below nothing."""
    database, heard = records.database, _Heard()
    budget = Budget(task="r1", tenant=TENANT, payer=purse(TENANT), most=50)
    async with records.credits.ledger() as ledger:
        await budget.open(ledger, 10)
    recorder = Recorder(database, "r1", 1, budget=budget, run_id="run", observers=Observers([heard]))
    await recorder.begin()
    entry = await recorder.intend(0, "llm:parrot", most=30)
    await recorder.finish(entry, b"{}", price=price)
    await recorder.end(lambda cost: str(cost).encode())
    balance = await records.credits.balance(TENANT)
    assert (balance.available, balance.held, balance.spent) == (_ALL - price + uncovered, 0, price - uncovered)
    assert heard.overruns == [price - 30]
    [warning] = [one.getMessage() for one in caplog.records if "more than were held" in one.getMessage()]
    assert warning.startswith("run run, task r1: llm:parrot cost")
    assert f"{uncovered} of them are not covered" in warning
    assert await _told(records) == [ProgressKind.JOB_PROGRESS]
    assert await records.credits.unbalanced() == []


async def test_a_bill_of_a_task_that_another_made_is_paid_by_who_pays_for_that(records: Records) -> None:
    parent = Budget(task="r0", tenant=TENANT, payer=purse(TENANT), most=50)
    budget = Budget(task="r1", tenant=TENANT, payer=parent.account, most=20, above=parent)
    async with records.credits.ledger() as ledger:
        await parent.open(ledger, 40)
        await budget.open(ledger, 20)
    recorder = Recorder(records.database, "r1", 1, budget=budget)
    await recorder.begin()
    entry = await recorder.intend(0, "llm:parrot", most=20)
    await recorder.finish(entry, b"{}", price=700)
    await recorder.end(lambda _: b"{}")
    async with records.credits.ledger() as ledger:
        assert (await settle_all(ledger, "r0", parent)).charged == 700
    balance = await records.credits.balance(TENANT)
    assert (balance.available, balance.held, balance.spent) == (_ALL - 700, 0, 700)
    assert await records.credits.unbalanced() == []


async def _states(records: Records) -> list[EntryState]:
    """As another process reads them."""
    return [entry.state for entry in (await SqlJournal(records.database).read("r1")).entries]


async def _told(records: Records) -> list[str]:
    async with records.database.reading() as connection:
        return list((await connection.execute(select(progress.c.kind).order_by(progress.c.number))).scalars())
