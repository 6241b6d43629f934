"""Promises of `update_data`, `set_progress`, `add_log` and `logs`."""

import pytest

from bullpen.errors import BullpenError, JobMissing
from bullpen.job.events import EventKind
from bullpen.job.record import JobRef
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Retry
from bullpen.stores.base import LogPage, Store
from bullpen.testing.conformance.moves import (
    BOOM,
    MAIL,
    ROUNDS,
    add_one,
    claim_one,
    complete_one,
    end_of_log,
    events_since,
    race,
    settle_one,
)
from bullpen.testing.harness import Harness


async def test_updated_data_is_for_the_next_attempt(store: Store) -> None:
    """New data replaces the old; a running attempt keeps what it has."""
    ref = await add_one(store, data=b"1", spec=JobSpec(attempts=2))
    held = await claim_one(store)
    await store.update_data(ref, b"2")
    assert (held.job.data, (await store.job(ref)).data) == (b"1", b"2")
    await settle_one(store, held.lease, Retry(BOOM))
    assert (await claim_one(store)).job.data == b"2"


async def test_progress_is_kept_and_told(store: Store) -> None:
    """The last progress stands in the record, and each one in the log of events."""
    ref = await add_one(store)
    await claim_one(store)
    cursor = await end_of_log(store)
    for progress in (b"10", b'{"done":"half"}'):
        await store.set_progress(ref, progress)
    assert (await store.job(ref)).progress == b'{"done":"half"}'
    told = [(event.kind, event.job_id, event.value) for event in await events_since(store, cursor)]
    assert told == [(EventKind.PROGRESS, ref.id, b"10"), (EventKind.PROGRESS, ref.id, b'{"done":"half"}')]


async def test_progress_outlives_the_attempt(store: Store) -> None:
    """A completed job still says how far it said it was."""
    ref = await add_one(store)
    await store.set_progress(ref, b"99")
    await complete_one(store)
    assert (await store.job(ref)).progress == b"99"


async def test_log_lines_are_kept_in_order(store: Store) -> None:
    """Lines are appended, and the answer says how many there are."""
    ref = await add_one(store)
    assert await store.add_log(ref, ["one", "two"]) == 2
    assert await store.add_log(ref, ["drei ✓"]) == 3
    assert await store.logs(ref) == LogPage(("one", "two", "drei ✓"), 3)


async def test_a_line_that_is_no_unicode_is_kept_escaped(store: Store) -> None:
    """What cannot be written as UTF-8 stands in the log as an escape, and takes no other line along."""
    ref = await add_one(store)
    assert await store.add_log(ref, ["before", "no file \udcff"]) == 2
    assert (await store.logs(ref)).lines == ("before", "no file \\udcff")


async def test_a_log_is_read_in_pages(store: Store) -> None:
    """Any part of a log can be read, with the number of all its lines."""
    ref = await add_one(store)
    await store.add_log(ref, [f"line {n}" for n in range(10)])
    assert await store.logs(ref, start=4, limit=3) == LogPage(("line 4", "line 5", "line 6"), 10)
    assert await store.logs(ref, start=10) == LogPage((), 10)


async def test_a_log_keeps_its_last_lines(store: Store) -> None:
    """Over the limit of its spec the oldest lines of a job's log go."""
    ref = await add_one(store, spec=JobSpec(keep_logs=3))
    assert await store.add_log(ref, ["1", "2"]) == 2
    assert await store.add_log(ref, ["3", "4"]) == 3
    assert await store.logs(ref) == LogPage(("2", "3", "4"), 3)
    assert await store.add_log(ref, [str(n) for n in range(5, 20)]) == 3
    assert await store.logs(ref) == LogPage(("17", "18", "19"), 3)


async def test_a_log_of_no_lines_keeps_none(store: Store) -> None:
    """A job that keeps no log takes lines and drops them."""
    ref = await add_one(store, spec=JobSpec(keep_logs=0))
    assert await store.add_log(ref, ["1", "2"]) == 0
    assert await store.logs(ref) == LogPage((), 0)


async def test_a_finished_job_takes_log_lines(store: Store) -> None:
    """A log can be written to as long as its job is there, whatever its state."""
    ref = await add_one(store)
    await complete_one(store)
    assert await store.add_log(ref, ["afterwards"]) == 1
    assert (await store.job(ref)).state == State.COMPLETED


async def test_refuses_to_note_anything_on_a_missing_job(store: Store) -> None:
    """A job that is not there takes neither data nor progress nor lines, and has no log: JobMissing."""
    ref = await add_one(store)
    for missing in (JobRef(MAIL, "nobody"), JobRef("nowhere", ref.id)):
        with pytest.raises(JobMissing):
            await store.update_data(missing, b"1")
        with pytest.raises(JobMissing):
            await store.set_progress(missing, b"1")
        with pytest.raises(JobMissing):
            await store.add_log(missing, ["line"])
        with pytest.raises(JobMissing):
            await store.logs(missing)


async def test_race_log_lines_are_all_kept(harness: Harness, store: Store) -> None:
    """Lines that two write at once are all there, each writer's in its order."""
    ref = await add_one(store)
    other = await harness.open()
    for turn in range(ROUNDS):
        first, second = await race(
            store.add_log(ref, [f"a{turn}.1", f"a{turn}.2"]), other.add_log(ref, [f"b{turn}"]), turn=turn
        )
        assert not isinstance(first, BullpenError)
        assert not isinstance(second, BullpenError)
    lines = (await store.logs(ref)).lines
    assert len(lines) == 3 * ROUNDS
    expected = [f"a{turn}.{n}" for turn in range(ROUNDS) for n in (1, 2)]
    assert [line for line in lines if line.startswith("a")] == expected


async def test_race_progress_and_completion_agree(harness: Harness, store: Store) -> None:
    """A progress that comes as the job completes is kept and does not bring the job back."""
    other = await harness.open()
    for turn in range(ROUNDS):
        ref = await add_one(store)
        held = await claim_one(store)
        await race(other.set_progress(ref, b"99"), settle_one(store, held.lease, Completed()), turn=turn)
        job = await store.job(ref)
        assert (job.state, job.progress) == (State.COMPLETED, b"99")
