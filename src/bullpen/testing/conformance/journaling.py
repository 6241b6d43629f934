"""Promises of `append_journal`, `read_journal`, `fork_journal` and `forget_journal`."""

import pytest

from bullpen.errors import BullpenError, JobMissing, LeaseLost, WrongState
from bullpen.job.entries import EntryKind, EntryState, JournalEntry, JournalPage
from bullpen.job.record import Failure, JobRef
from bullpen.job.spec import JobSpec, Keep
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Failed, Parked, Released, Retry
from bullpen.stores.base import Store
from bullpen.testing.conformance.moves import (
    BOOM,
    MAIL,
    ROUNDS,
    add_one,
    claim_one,
    fail_one,
    fresh_request,
    leave_behind,
    race,
    settle_one,
)
from bullpen.testing.harness import Harness

_FULL = JournalEntry(
    3, "charge ✓", EntryKind.STEP, EntryState.FAILED, '{"a":"\\u2713 ✓"}'.encode(), Failure("no", type="E"),
    until_ms=7, attempts=2, started_ms=5, ended_ms=6, epoch=1,
)  # fmt: skip


def _step(place: int, value: bytes | None = b"1", *, state: EntryState = EntryState.DONE) -> JournalEntry:
    return JournalEntry(place, f"step {place}", state=state, value=value)


async def _append(store: Store, ref: JobRef, *entries: JournalEntry, epoch: int = 1) -> list[JournalEntry]:
    return list(await store.append_journal(ref, entries, epoch=epoch))


async def _entries(store: Store, ref: JobRef) -> list[JournalEntry]:
    return list((await store.read_journal(ref)).entries)


async def _running(store: Store, own_id: str | None = None) -> JobRef:
    ref = await add_one(store, own_id=own_id)
    await claim_one(store)
    return ref


async def test_what_was_recorded_is_read_again(store: Store) -> None:
    """Each entry comes back whole, by place, whatever the order in which they were recorded."""
    ref = await _running(store)
    entries = [_FULL, _step(0), JournalEntry(1, "nap", EntryKind.SLEEP, EntryState.OPEN, until_ms=9)]
    assert await _append(store, ref, *entries) == entries
    assert await _entries(store, ref) == sorted(entries, key=lambda entry: entry.place)


async def test_a_job_without_steps_has_an_empty_journal(store: Store) -> None:
    """There is nothing to read, and nothing more to come."""
    ref = await _running(store)
    assert await store.read_journal(ref) == JournalPage(())


async def test_a_journal_is_read_in_pages(store: Store) -> None:
    """From any place on, of so many places; a page says where the next one starts."""
    ref = await _running(store)
    await _append(store, ref, *[_step(place) for place in (0, 1, 3, 4, 7)])
    first = await store.read_journal(ref, limit=3)
    assert ([entry.place for entry in first.entries], first.next_place) == ([0, 1], 3)
    second = await store.read_journal(ref, start=3, limit=5)
    assert ([entry.place for entry in second.entries], second.next_place) == ([3, 4, 7], None)
    assert (await store.read_journal(ref, start=8)).entries == ()


async def test_what_is_done_stays(store: Store) -> None:
    """Recording a place again changes nothing and gets what is there: a lost answer is normal."""
    ref = await _running(store)
    first = _step(0, b"1")
    await _append(store, ref, first)
    other = JournalEntry(0, "another", value=b"2")
    assert await _append(store, ref, other, _step(1)) == [first, _step(1)]
    assert await _entries(store, ref) == [first, _step(1)]


@pytest.mark.parametrize("state", [EntryState.OPEN, EntryState.FAILED])
async def test_what_is_not_done_gives_way(store: Store, state: EntryState) -> None:
    """What slept, waits or failed is replaced by what became of it."""
    ref = await _running(store)
    await _append(store, ref, _step(0, b"1", state=state))
    assert await _append(store, ref, _step(0, None)) == [_step(0, None)]
    assert await _entries(store, ref) == [_step(0, None)]


@pytest.mark.parametrize("verdict", [Released(), Retry(BOOM), Parked(0)], ids=["released", "retried", "parked"])
async def test_a_journal_outlives_the_activation(store: Store, verdict: Released | Retry | Parked) -> None:
    """Whoever runs the job next finds what was recorded, and goes on."""
    ref = await add_one(store, spec=JobSpec(attempts=3))
    held = await claim_one(store)
    await _append(store, ref, _step(0))
    await settle_one(store, held.lease, verdict)
    again = await claim_one(store)
    await _append(store, ref, _step(1), epoch=again.lease.epoch)
    assert await _entries(store, ref) == [_step(0), _step(1)]


@pytest.mark.parametrize("verdict", [Completed(), Failed(BOOM)], ids=["completed", "failed"])
async def test_a_journal_outlives_the_end_and_a_retry_by_hand(store: Store, verdict: Completed | Failed) -> None:
    """It is there to look at as long as its job is, and a job that is retried keeps it."""
    ref = await add_one(store)
    held = await claim_one(store)
    await _append(store, ref, _step(0))
    await settle_one(store, held.lease, verdict)
    assert await _entries(store, ref) == [_step(0)]
    await store.retry(ref)
    assert await _entries(store, ref) == [_step(0)]


async def test_a_journal_survives_a_crash(harness: Harness, store: Store) -> None:
    """What was answered is there, though the process that recorded it was killed."""
    ref = await _running(store)
    await _append(store, ref, _step(0))
    store = await leave_behind(harness, store)
    assert await _entries(store, ref) == [_step(0)]


@pytest.mark.parametrize("way", ["removed", "cleaned", "pruned", "not kept", "obliterated", "drained"])
async def test_a_journal_goes_with_its_job(harness: Harness, store: Store, way: str) -> None:
    """However a job is forgotten: one that is added under its id begins anew, and nothing of it is left."""
    keep = {"pruned": Keep(count=1), "not kept": Keep(count=0)}.get(way, Keep())
    ref = await add_one(store, own_id="order-1", spec=JobSpec(keep_failed=keep))
    held = await claim_one(store)
    await _append(store, ref, _step(0))
    await store.signal(ref, "approved", b"1", request=fresh_request())
    await settle_one(store, held.lease, Released() if way == "drained" else Failed(BOOM))
    match way:
        case "removed":
            await store.remove(ref)
        case "cleaned":
            await store.clean(MAIL, State.FAILED, older_than_ms=0, limit=1)
        case "pruned":
            await harness.advance(1)
            await add_one(store, spec=JobSpec(keep_failed=keep))
            await fail_one(store)
        case "obliterated":
            await store.obliterate(MAIL, force=False)
        case "drained":
            await store.drain(MAIL, delayed=False)
    with pytest.raises(JobMissing):
        await store.read_journal(ref)


async def test_a_job_under_an_old_id_begins_anew(store: Store) -> None:
    """It has none of the steps that another job recorded under this id."""
    ref = await _running(store, "order-1")
    await _append(store, ref, _step(0))
    await store.obliterate(MAIL, force=True)
    await add_one(store, own_id="order-1")
    assert await _entries(store, ref) == []


async def test_a_fork_has_the_steps_before_a_place(store: Store) -> None:
    """Another job goes on from there on its own; the first one keeps its journal."""
    ref = await _running(store)
    entries = [_step(0), _step(1), _step(3)]
    await _append(store, ref, *entries)
    fork = await add_one(store, "other")
    assert await store.fork_journal(ref, 2, fork) == 2
    assert await _entries(store, fork) == entries[:2]
    held = await claim_one(store, "other")
    await _append(store, fork, _step(2), epoch=held.lease.epoch)
    assert await _entries(store, ref) == entries


async def test_a_fork_of_everything_is_a_copy(store: Store) -> None:
    """A place behind the last one takes them all."""
    ref = await _running(store)
    await _append(store, ref, _FULL, _step(0))
    fork = await add_one(store, spec=JobSpec(delay_ms=60_000))
    assert await store.fork_journal(ref, 1_000, fork) == 2
    assert await _entries(store, fork) == [_step(0), _FULL]


async def test_a_forgotten_journal_is_empty(store: Store) -> None:
    """A job that is to begin anew loses its steps and its signals, and nothing else."""
    ref = await add_one(store)
    held = await claim_one(store)
    await _append(store, ref, _step(0))
    await store.signal(ref, "approved", b"1", request=fresh_request())
    await settle_one(store, held.lease, Released())
    await store.forget_journal(ref)
    assert await _entries(store, ref) == []
    epoch = (await claim_one(store)).lease.epoch
    assert await store.receive(ref, JournalEntry(0, "approved", EntryKind.WAIT), epoch=epoch) is None


async def test_refuses_a_record_of_an_older_activation(store: Store) -> None:
    """Who lost the job records nothing any more, neither while it waits nor while another runs it: LeaseLost."""
    ref = await add_one(store)
    old = await claim_one(store)
    await settle_one(store, old.lease, Released())
    with pytest.raises(LeaseLost):
        await _append(store, ref, _step(0), epoch=old.lease.epoch)
    await claim_one(store)
    with pytest.raises(LeaseLost):
        await _append(store, ref, _step(0), epoch=old.lease.epoch)
    assert await _entries(store, ref) == []


async def test_refuses_a_record_of_a_job_that_is_over(store: Store) -> None:
    """A job that ended, is gone, or was never there records nothing: LeaseLost."""
    ref = await add_one(store)
    held = await claim_one(store)
    await settle_one(store, held.lease, Completed())
    for gone in (ref, JobRef(MAIL, "nobody"), JobRef("nowhere", "1")):
        with pytest.raises(LeaseLost):
            await _append(store, gone, _step(0))


async def test_refuses_to_read_the_journal_of_nobody(store: Store) -> None:
    """A job that is not there has none: JobMissing."""
    ref = await add_one(store)
    for missing in (JobRef(MAIL, "nobody"), JobRef("nowhere", ref.id)):
        with pytest.raises(JobMissing):
            await store.read_journal(missing)
        with pytest.raises(JobMissing):
            await store.forget_journal(missing)
        with pytest.raises(JobMissing):
            await store.fork_journal(missing, 1, ref)
        with pytest.raises(JobMissing):
            await store.fork_journal(ref, 1, missing)


async def test_refuses_to_forget_the_journal_of_a_running_job(store: Store) -> None:
    """Its worker goes by it: WrongState."""
    ref = await _running(store)
    await _append(store, ref, _step(0))
    with pytest.raises(WrongState):
        await store.forget_journal(ref)
    assert await _entries(store, ref) == [_step(0)]


async def test_refuses_to_fork_onto_a_job_that_has_begun(store: Store) -> None:
    """One that runs, has ended, or has steps of its own keeps them: WrongState."""
    ref = await add_one(store)
    held = await claim_one(store)
    await _append(store, ref, _step(0))
    running = await _running(store)
    ended = await add_one(store)
    await settle_one(store, (await claim_one(store)).lease, Completed())
    for begun in (running, ended):
        with pytest.raises(WrongState):
            await store.fork_journal(ref, 1, begun)
    await settle_one(store, held.lease, Released())
    with pytest.raises(WrongState):
        await store.fork_journal(ref, 1, ref)


async def test_race_two_records_of_one_place_agree(harness: Harness, store: Store) -> None:
    """Of two that record the same place at once, both get what the first one recorded."""
    other = await harness.open()
    ref = await _running(store)
    for turn in range(ROUNDS):
        first, second = await race(
            _append(store, ref, _step(turn, b"1")), _append(other, ref, _step(turn, b"2")), turn=turn
        )
        assert not isinstance(first, BullpenError)
        assert first == second == (await _entries(store, ref))[-1:]


async def test_race_a_record_and_a_release_agree(harness: Harness, store: Store) -> None:
    """A step that is recorded as the job is handed back is there for the next one, or was refused."""
    other = await harness.open()
    for turn in range(ROUNDS):
        ref = await add_one(store)
        held = await claim_one(store)
        recorded, _ = await race(
            _append(store, ref, _step(0)), settle_one(other, held.lease, Parked(signals=("never",))), turn=turn
        )
        assert isinstance(recorded, list | LeaseLost)
        assert await _entries(store, ref) == ([_step(0)] if isinstance(recorded, list) else [])
