"""What every home of a journal promises: a test for each promise of `bullpen.journal.base.Journal`.

To prove a home, write a `conftest.py` that says `pytest.register_assert_rewrite("bullpen.testing.journals")`
and has a fixture `home` (see `JournalHome`), and a test module of one line:

    from bullpen.testing.journals import *
"""

from typing import Protocol

import pytest

from bullpen.errors import LeaseLost, WrongState
from bullpen.job.entries import EntryKind, EntryState, JournalEntry
from bullpen.journal.base import Journal


class JournalHome(Protocol):
    """A place where journals are kept, empty at first."""

    @property
    def journal(self) -> Journal: ...

    async def new_run(self) -> str:
        """The name of a run that exists and has recorded nothing."""

    async def begin(self, run: str) -> int:
        """A new activation of the run, which ends the one before; its epoch, which is larger."""

    async def signal(self, run: str, name: str, payload: bytes) -> None: ...


def _step(place: int, value: bytes | None = b"1", state: EntryState = EntryState.DONE) -> JournalEntry:
    return JournalEntry(place, f"step {place}", state=state, value=value)


def _wait(place: int) -> JournalEntry:
    return JournalEntry(place, "approved", EntryKind.WAIT)


async def _entries(home: JournalHome, run: str) -> list[JournalEntry]:
    return list((await home.journal.read(run)).entries)


async def test_what_is_recorded_is_there_in_every_later_activation(home: JournalHome) -> None:
    """A run that begins again finds its steps by place, and records further ones."""
    run = await home.new_run()
    epoch = await home.begin(run)
    assert await _entries(home, run) == []
    assert list(await home.journal.append(run, [_step(1), _step(0)], epoch=epoch)) == [_step(1), _step(0)]
    epoch = await home.begin(run)
    await home.journal.append(run, [_step(2)], epoch=epoch)
    assert await _entries(home, run) == [_step(0), _step(1), _step(2)]


async def test_runs_do_not_see_each_other(home: JournalHome) -> None:
    """Each run has a journal of its own."""
    first, second = await home.new_run(), await home.new_run()
    await home.journal.append(first, [_step(0)], epoch=await home.begin(first))
    assert await _entries(home, second) == []


async def test_who_was_overtaken_records_nothing(home: JournalHome) -> None:
    """An activation that a later one has ended is refused, whatever it brings: LeaseLost."""
    run = await home.new_run()
    old = await home.begin(run)
    await home.journal.append(run, [_step(0)], epoch=old)
    new = await home.begin(run)
    assert new > old
    for entry in (_step(0), _step(1)):
        with pytest.raises(LeaseLost):
            await home.journal.append(run, [entry], epoch=old)
    await home.signal(run, "approved", b"1")
    with pytest.raises(LeaseLost):
        await home.journal.receive(run, _wait(1), epoch=old)
    assert await _entries(home, run) == [_step(0)]


async def test_a_lost_answer_is_asked_for_again(home: JournalHome) -> None:
    """What is done stays as it was recorded first, and that is the answer."""
    run = await home.new_run()
    epoch = await home.begin(run)
    await home.journal.append(run, [_step(0, b"1")], epoch=epoch)
    assert list(await home.journal.append(run, [_step(0, b"2"), _step(1)], epoch=epoch)) == [_step(0, b"1"), _step(1)]


@pytest.mark.parametrize("state", [EntryState.OPEN, EntryState.FAILED])
async def test_what_is_not_done_gives_way(home: JournalHome, state: EntryState) -> None:
    """An entry that is open, or failed, is replaced by what became of it, also in a later activation."""
    run = await home.new_run()
    await home.journal.append(run, [_step(0, b"1", state)], epoch=await home.begin(run))
    await home.journal.append(run, [_step(0, None)], epoch=await home.begin(run))
    assert await _entries(home, run) == [_step(0, None)]


async def test_a_journal_is_read_in_pages(home: JournalHome) -> None:
    """Of so many places from a place on; a page says where the next one starts."""
    run = await home.new_run()
    await home.journal.append(run, [_step(0), _step(4)], epoch=await home.begin(run))
    page = await home.journal.read(run, limit=2)
    assert (page.entries, page.next_place) == ((_step(0),), 2)
    page = await home.journal.read(run, start=2, limit=3)
    assert (page.entries, page.next_place) == ((_step(4),), None)


async def test_a_signal_is_recorded_once(home: JournalHome) -> None:
    """Each goes to one place, in order; the same place again gets the same one, also in a later activation."""
    run = await home.new_run()
    epoch = await home.begin(run)
    assert await home.journal.receive(run, _wait(0), epoch=epoch) is None
    for payload in (b"1", b"2"):
        await home.signal(run, "approved", payload)
    first = await home.journal.receive(run, _wait(0), epoch=epoch)
    assert first is not None
    assert (first.state, first.value) == (EntryState.DONE, b"1")
    epoch = await home.begin(run)
    assert await home.journal.receive(run, _wait(0), epoch=epoch) == first
    second = await home.journal.receive(run, _wait(1), epoch=epoch)
    assert second is not None
    assert second.value == b"2"
    assert await home.journal.receive(run, _wait(2), epoch=epoch) is None


async def test_a_fork_goes_on_by_itself(home: JournalHome) -> None:
    """It has what was recorded before a place; neither sees what the other records later."""
    run, fork = await home.new_run(), await home.new_run()
    epoch = await home.begin(run)
    await home.journal.append(run, [_step(0), _step(1), _step(2)], epoch=epoch)
    assert await home.journal.fork(run, 2, fork) == 2
    await home.journal.append(fork, [_step(2, b"other")], epoch=await home.begin(fork))
    assert await _entries(home, run) == [_step(0), _step(1), _step(2)]
    assert await _entries(home, fork) == [_step(0), _step(1), _step(2, b"other")]


async def test_refuses_to_fork_onto_a_run_with_steps(home: JournalHome) -> None:
    """Nothing that was recorded is overwritten: WrongState."""
    run, other = await home.new_run(), await home.new_run()
    for each in (run, other):
        await home.journal.append(each, [_step(0)], epoch=await home.begin(each))
    with pytest.raises(WrongState):
        await home.journal.fork(run, 1, other)
