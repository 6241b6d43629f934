"""Promises of a move of durable steps: journal, mailbox and parking of a job go with it; schedules do not."""

import msgspec
import pytest

from bullpen.errors import BullpenError, JobMissing, MoveRefused
from bullpen.job.entries import EntryKind, EntryState, JournalEntry
from bullpen.job.record import Failure, JobRef
from bullpen.job.spec import JobSpec, Keep
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Failed, Parked, Verdict
from bullpen.stores.base import ID_MEMORY_MS, Counts, Delivery, Store
from bullpen.stores.moving import PAGE_STEPS_BYTES, SavedJob, Signal
from bullpen.testing.conformance.carrying import (
    POST,
    STATES,
    begin,
    depart,
    export_all,
    memory_of,
    move_all,
    restore,
)
from bullpen.testing.conformance.moves import (
    BOOM,
    MAIL,
    ROUNDS,
    add_one,
    claim,
    claim_one,
    fresh_request,
    race,
    run_one,
    settle_one,
    state_of,
)
from bullpen.testing.conformance.schedules import SWEEP, put_new
from bullpen.testing.harness import Harness

_APPROVED = Parked(signals=("approved", "rejected ✓"), note="waits for approval")
_STEPS = (
    JournalEntry(0, "charge ✓", value='{"a":"\\u2713 ✓"}'.encode(), attempts=2, started_ms=5, ended_ms=6, epoch=1),
    JournalEntry(1, "nothing"),
    JournalEntry(3, "mail", state=EntryState.FAILED, failure=Failure("no", type="E", stack="…"), epoch=1),
    JournalEntry(12, "approved", EntryKind.WAIT, EntryState.OPEN, until_ms=9),
)


def _there(ref: JobRef) -> JobRef:
    return JobRef(POST, ref.id)


async def _worked(store: Store, verdict: Verdict, *, own_id: str | None = None, spec: JobSpec | None = None) -> JobRef:
    """A job that took its steps and ended so."""
    ref = await add_one(store, own_id=own_id, spec=spec)
    held = await claim_one(store)
    assert held.job.ref == ref
    await store.append_journal(ref, _STEPS, epoch=held.lease.epoch)
    await settle_one(store, held.lease, verdict)
    return ref


async def _send(store: Store, ref: JobRef, name: str = "approved", payload: bytes = b"1") -> Delivery:
    return await store.signal(ref, name, payload, request=fresh_request())


async def _received(store: Store, queue: str = POST, name: str = "approved") -> list[bytes | None]:
    """What the next job finds in its mailbox, oldest first; it goes on running."""
    held = await claim_one(store, queue)
    found: list[bytes | None] = []
    wait = JournalEntry(100, name, EntryKind.WAIT)
    while (entry := await store.receive(held.job.ref, wait, epoch=held.lease.epoch)) is not None:
        found.append(entry.value)
        wait = msgspec.structs.replace(wait, place=wait.place + 1)
    return found


# ── what goes along ──────────────────────────────────────────────────────────────────────


async def test_steps_go_with_their_job(store: Store) -> None:
    """Every entry of the journal arrives as it was, of jobs that wait, are parked or have ended."""
    verdicts = (_APPROVED, Completed(b"1"), Failed(BOOM), Parked(0))
    refs = [await _worked(store, verdict) for verdict in verdicts]
    await begin(store)
    await move_all(store)
    assert await store.counts(POST) == Counts(waiting=1, delayed=1, completed=1, failed=1)
    for ref in refs:
        assert (await store.read_journal(_there(ref))).entries == _STEPS


async def test_what_was_done_is_not_done_again_after_a_move(store: Store) -> None:
    """The next activation finds what is done on record, and what is open gives way."""
    ref = await _worked(store, Parked(0))
    await begin(store)
    await move_all(store)
    epoch = (await claim_one(store, POST)).lease.epoch
    again = [JournalEntry(0, "other", value=b"2"), JournalEntry(12, "approved", EntryKind.WAIT, value=b"3")]
    assert await store.append_journal(_there(ref), again, epoch=epoch) == [_STEPS[0], again[1]]


async def test_signals_go_with_their_job(store: Store) -> None:
    """What was not received yet is received on the target, in the order in which it came."""
    ref = await _worked(store, Parked(0))
    for payload in ('"ü"'.encode(), b"2"):
        await _send(store, ref, payload=payload)
        await _send(store, ref, "paid")
    await begin(store)
    await move_all(store)
    assert await _received(store) == ['"ü"'.encode(), b"2"]


async def test_a_parked_job_stays_parked(harness: Harness, store: Store) -> None:
    """With its note, the signals that it waits for and its time, if it has one."""
    until_ms = harness.clock.now_ms() + 60_000
    refs = [await _worked(store, verdict) for verdict in (_APPROVED, Parked(until_ms, ("approved",), "waits"))]
    before = [await store.job(ref) for ref in refs]
    await begin(store)
    await move_all(store)
    for record in before:
        there = _there(record.ref)
        assert await store.job(there) == msgspec.structs.replace(record, ref=there)
    claimed = await store.claim({POST: 1}, worker="w", lease_ms=1_000, request=fresh_request())
    assert (claimed.jobs, claimed.next_due_ms) == ((), until_ms)
    await harness.advance(60_000)
    assert [one.job.id for one in await claim(store, 2, POST)] == [refs[1].id]


async def test_a_moved_job_is_woken_by_its_signal(store: Store) -> None:
    """A job that is parked where it arrived wakes at what it waits for, and at nothing else."""
    ref = await _worked(store, _APPROVED)
    await begin(store)
    await move_all(store)
    assert await _send(store, _there(ref), "paid") == Delivery.KEPT
    assert await claim(store, queue=POST) == ()
    assert await _send(store, _there(ref), payload=b"7") == Delivery.WOKEN
    assert await _received(store) == [b"7"]


async def test_steps_that_are_exported_again_are_the_same(store: Store) -> None:
    """A job that moves on from where it came to loses nothing of its steps, its signals and its parking."""
    ref = await _worked(store, _APPROVED)
    await _send(store, ref, "paid", b"2")
    await _worked(store, Completed(), own_id="own-1")
    await begin(store)
    before = await export_all(store)
    assert [job.signals for job in before] == [(Signal("paid", b"2"),), ()]
    await move_all(store)
    after = [job for state in STATES for job in await store.export_jobs(POST, state, limit=100)]
    moved = [msgspec.structs.replace(job.record, ref=JobRef(POST, job.id)) for job in before]
    assert after == [msgspec.structs.replace(job, record=record) for job, record in zip(before, moved, strict=True)]


async def test_nothing_of_steps_is_left_behind(harness: Harness, store: Store) -> None:
    """A later job under the same id on the source finds an empty journal and an empty mailbox."""
    ref = await _worked(store, _APPROVED, own_id="order-1")
    await _send(store, ref, "paid")
    await begin(store)
    await move_all(store)
    await harness.advance(ID_MEMORY_MS + 1)
    assert await add_one(store, own_id="order-1") == ref
    assert (await store.read_journal(ref)).entries == ()
    assert await _received(store, MAIL, "paid") == []


async def test_long_journals_make_short_pages(store: Store) -> None:
    """A page ends with the job whose steps make it long: nobody has to hold those of a whole queue at once."""
    step = JournalEntry(0, "page", value=b'"%s"' % (b"x" * (PAGE_STEPS_BYTES // 2)))
    held = [(await add_one(store), await claim_one(store))[1] for _ in range(3)]
    for one in held:
        await store.append_journal(one.job.ref, [step], epoch=1)
        await settle_one(store, one.lease, Completed())
    page = await store.export_jobs(MAIL, State.COMPLETED, limit=10)
    assert [job.id for job in page] == [one.job.id for one in held[:2]]
    assert all(job.journal[0].value == step.value for job in page)


# ── signals that come meanwhile ──────────────────────────────────────────────────────────


async def test_a_job_that_was_signalled_since_does_not_depart(store: Store) -> None:
    """A signal that came after the job was exported is not forgotten with it: the job stays to be exported again."""
    ref = await _worked(store, _APPROVED)
    await _send(store, ref, "paid", b"1")
    (job,) = await export_all(store)
    await _send(store, ref, "paid", b"2")
    assert await depart(store, job) == []
    assert list(await store.depart(MAIL, [ref.id])) == []
    (job,) = await export_all(store)
    assert [signal.payload for signal in job.signals] == [b"1", b"2"]
    assert await depart(store, job) == [ref.id]


async def test_a_late_signal_wakes_the_job_that_has_arrived(store: Store) -> None:
    """Though the job itself is passed over, its new signals go into its mailbox, each once, also for the next run."""
    ref = await _worked(store, _APPROVED)
    await _send(store, ref, "paid")
    await begin(store)
    await restore(store, *await export_all(store))
    assert await _send(store, ref, payload=b"7") == Delivery.WOKEN
    jobs = await export_all(store)
    assert await restore(store, *jobs) == 0
    assert await state_of(store, _there(ref)) == State.WAITING
    await begin(store, run="second")
    assert await restore(store, *jobs, run="second") == 0
    assert await depart(store, *jobs) == [ref.id]
    assert await _received(store) == [b"7"]


async def test_a_late_signal_finds_a_job_that_runs(store: Store) -> None:
    """A worker of the target that holds the job by now receives it, and what it received before only once."""
    ref = await _worked(store, Parked(0))
    await _send(store, ref, payload=b"1")
    await begin(store)
    await restore(store, *await export_all(store))
    held = await claim_one(store, POST)
    first = JournalEntry(20, "approved", EntryKind.WAIT)
    assert await store.receive(_there(ref), first, epoch=held.lease.epoch) is not None
    await _send(store, ref, payload=b"2")
    jobs = await export_all(store)
    for _ in range(2):
        await restore(store, *jobs)
    await settle_one(store, held.lease, Parked(signals=("approved",)))
    assert await _received(store) == [b"2"]


async def test_a_late_signal_for_a_job_that_is_gone_is_dropped(store: Store) -> None:
    """It has run on the target and ended there, and nothing waits for a signal any more."""
    ref = await _worked(store, Parked(0), spec=JobSpec(keep_completed=Keep(count=0)))
    await begin(store)
    await restore(store, *await export_all(store))
    await run_one(store, Completed(), POST)
    await _send(store, ref)
    jobs = await export_all(store)
    assert await restore(store, *jobs) == 0
    assert await depart(store, *jobs) == [ref.id]
    assert await store.counts(POST) == Counts()


async def test_what_came_with_one_move_is_new_to_the_next(store: Store) -> None:
    """A job that departed and comes once more under its id brings its signals once more."""
    ref = await _worked(store, Parked(0), own_id="order-1")
    await _send(store, ref, payload=b"1")
    await begin(store)
    jobs = await export_all(store)
    await restore(store, *jobs)
    await store.remove(_there(ref))
    assert await restore(store, *jobs, departed=[ref.id]) == 1
    assert await _received(store) == [b"1"]


async def test_race_a_signal_arrives_or_its_sender_is_told(harness: Harness, store: Store) -> None:
    """Whenever it is sent: the job receives it on the target, or its sender hears that nobody is there."""
    other = await harness.open()
    await begin(store)
    for turn in range(ROUNDS):
        ref = await _worked(store, _APPROVED, own_id=f"order-{turn}")
        carried, sent = await race(_carry(store), _send(other, ref), turn=turn)
        assert not isinstance(carried, BullpenError)
        if isinstance(sent, BullpenError):
            assert isinstance(sent, JobMissing)
            await _send(store, _there(ref))
        assert await _received(store) == [b"1"]


async def _carry(store: Store) -> None:
    jobs: list[SavedJob] = []
    while len(await depart(store, *jobs)) < len(jobs) or not jobs:
        jobs = await export_all(store)
        await restore(store, *jobs)


# ── what does not go along ───────────────────────────────────────────────────────────────


async def test_refuses_to_move_a_schedule(harness: Harness, store: Store) -> None:
    """A queue with schedules, which would stay behind and stop, is MoveRefused until they are removed."""
    await put_new(harness, store)
    with pytest.raises(MoveRefused, match="schedules"):
        await store.export_memory(MAIL, limit=10)
    assert await store.counts(MAIL) == Counts(delayed=1)
    await store.remove_schedule(MAIL, SWEEP)
    assert len(await memory_of(store)) > 0
