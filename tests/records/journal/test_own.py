"""What only the home in SQL promises: an end, and steps that are recorded together with what they cost."""

import asyncio

import pytest

from bullpen.errors import CreditsShort, LeaseLost, MailboxFull, RecordMissing, WrongState
from bullpen.job.entries import JournalEntry
from bullpen.records.credits.credits import purse
from bullpen.records.credits.ledger import Ledger
from bullpen.records.journal import JournalOn
from bullpen.records.records import Records
from bullpen.stores.base import MAX_SIGNALS
from tests.records.journal.conftest import SqlHome


async def test_a_run_that_has_ended_records_nothing_and_takes_no_signal(home: SqlHome) -> None:
    run = await home.new_run()
    epoch = await home.begin(run)
    async with home.journal.writing() as on:
        await on.end(run, epoch=epoch)
    with pytest.raises(LeaseLost):
        await home.journal.append(run, [JournalEntry(0, "late")], epoch=epoch)
    with pytest.raises(LeaseLost):
        await home.begin(run)
    with pytest.raises(WrongState, match="has ended"):
        await home.signal(run, "approved", b"1")


@pytest.mark.parametrize("how", ["overtaken", "ended", "gone"])
async def test_who_lost_a_run_puts_nothing_down_whatever_becomes_of_the_transaction(home: SqlHome, how: str) -> None:
    run = await home.new_run()
    epoch = await home.begin(run)
    async with home.journal.writing() as on:
        await on.put(run, [JournalEntry(0, "first")], epoch=epoch)
        if how == "overtaken":
            await on.begin(run, epoch + 1)
        if how == "ended":
            await on.end(run, epoch=epoch)
        with pytest.raises(LeaseLost):
            await on.put("another" if how == "gone" else run, [JournalEntry(1, "late")], epoch=epoch)
    assert [entry.name for entry in (await home.journal.read(run)).entries] == ["first"]


async def test_who_overtakes_waits_for_what_is_being_put_down(home: SqlHome) -> None:
    """Otherwise it would go on without a step that is on record a moment later."""
    run = await home.new_run()
    epoch = await home.begin(run)
    async with home.journal.writing() as on:
        await on.put(run, [JournalEntry(0, "first")], epoch=epoch)
        overtaking = asyncio.create_task(home.begin(run))
        done, _ = await asyncio.wait([overtaking], timeout=0.2)
        assert not done
    assert await overtaking > epoch
    assert [entry.name for entry in (await home.journal.read(run)).entries] == ["first"]


async def test_an_older_activation_does_not_begin_after_a_later_one(home: SqlHome) -> None:
    run = await home.new_run()
    async with home.journal.writing() as on:
        await on.begin(run, 5)
        await on.begin(run, 5)
    with pytest.raises(LeaseLost):
        async with home.journal.writing() as on:
            await on.begin(run, 4)


async def test_a_run_that_nobody_opened_is_missing(home: SqlHome) -> None:
    with pytest.raises(RecordMissing, match="no run 'nobody'"):
        await home.begin("nobody")
    with pytest.raises(LeaseLost, match="is gone"):
        await home.journal.append("nobody", [JournalEntry(0, "step")], epoch=1)


async def test_a_mailbox_is_not_without_end(home: SqlHome) -> None:
    run = await home.new_run()
    async with home.journal.writing() as on:
        for _ in range(MAX_SIGNALS):
            await on.signal(run, "approved", b"1")
    with pytest.raises(MailboxFull, match=f"{MAX_SIGNALS} signals wait"):
        await home.signal(run, "approved", b"1")


async def test_a_step_and_its_price_are_true_together_or_not_at_all(home: SqlHome, records: Records) -> None:
    run = await home.new_run()
    epoch = await home.begin(run)
    await records.credits.deposit("acme", 100, key="first")

    async def record(place: int, price: int) -> None:
        async with records.database.writing() as connection:
            await JournalOn(connection, records.database).append(run, [JournalEntry(place, "call")], epoch=epoch)
            await Ledger(connection, records.database).hold(f"{run}/{place}", [purse("acme")], price)

    await record(0, 60)
    with pytest.raises(CreditsShort):
        await record(1, 60)
    assert [entry.place for entry in (await home.journal.read(run)).entries] == [0]
    await home.begin(run)
    with pytest.raises(LeaseLost):
        await record(1, 40)
    assert (await records.credits.balance("acme")).held == 60
