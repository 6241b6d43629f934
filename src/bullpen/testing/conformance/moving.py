"""Promises of a move: what `export_jobs` tells, what `restore` makes of it, what `begin_move` leaves alone.

Here a queue moves to another one of the same place; between two stores the same steps are taken.
"""

import msgspec

from bullpen.job.events import EventKind
from bullpen.job.record import JobRef
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.job.verdicts import Retry
from bullpen.stores.base import Counts, Store
from bullpen.testing.conformance.carrying import (
    POST,
    STATES,
    begin,
    export_all,
    fill,
    move_all,
    restore,
)
from bullpen.testing.conformance.moves import (
    BOOM,
    MAIL,
    PATIENCE_S,
    add_many,
    add_one,
    claim,
    claim_ids,
    claim_one,
    complete_one,
    end_of_log,
    fail_one,
    ids_in,
    kinds_since,
    race,
    run_one,
)
from bullpen.testing.harness import Harness


async def test_a_moved_job_is_as_it_was(harness: Harness, store: Store) -> None:
    """Data, spec, state, priority, attempts, epoch, crashes, times, progress, result, failure, stacks, note and log."""
    await fill(store)
    await harness.advance(5_000)
    await begin(store)
    before = await export_all(store)
    assert {job.record.state for job in before} == set(STATES)
    await move_all(store)
    for job in before:
        expected = msgspec.structs.replace(job.record, ref=JobRef(POST, job.id))
        assert await store.job(JobRef(POST, job.id)) == expected
        assert (await store.logs(JobRef(POST, job.id))).lines == job.logs
    counts = await store.counts(MAIL)
    assert counts == Counts()
    assert (await store.counts(POST)).unfinished == 4


async def test_what_is_exported_again_is_the_same(store: Store) -> None:
    """A job that moves on from where it came to loses nothing: when it came to its place, its log, its subject."""
    await fill(store)
    await begin(store)
    before = await export_all(store)
    await move_all(store)
    after = [job for state in STATES for job in await store.export_jobs(POST, state, limit=100)]
    moved = [msgspec.structs.replace(job.record, ref=JobRef(POST, job.id)) for job in before]
    assert after == [msgspec.structs.replace(job, record=record) for job, record in zip(before, moved, strict=True)]


async def test_exporting_changes_nothing(store: Store) -> None:
    """What is exported is still there; without a departure it comes again."""
    await add_many(store, 3)
    first = await store.export_jobs(MAIL, State.WAITING, limit=2)
    assert [job.id for job in first] == (await ids_in(store, State.WAITING))[:2]
    assert await store.export_jobs(MAIL, State.WAITING, limit=2) == first


async def test_the_order_of_the_line_is_kept(store: Store) -> None:
    """Jobs run on the target in the order in which they would have run on the source."""
    await add_many(store, 3)
    await add_one(store, spec=JobSpec(lifo=True))
    await add_one(store, spec=JobSpec(priority=2))
    await add_one(store, spec=JobSpec(priority=1))
    await add_one(store, spec=JobSpec(priority=2))
    order = [job.id for job in await export_all(store)]
    await begin(store)
    await move_all(store)
    assert await claim_ids(store, queue=POST) == order


async def test_the_order_of_delayed_and_finished_jobs_is_kept(harness: Harness, store: Store) -> None:
    """Delayed jobs are due at the time they were due at, finished ones stay in the order of their end."""
    await add_many(store, 4)
    for _ in range(2):
        await complete_one(store)
        await harness.advance(10)
        await fail_one(store)
        await harness.advance(10)
    for delay_ms in (3_000, 1_000, 2_000, 1_000):
        await add_one(store, spec=JobSpec(delay_ms=delay_ms))
    states = (State.DELAYED, State.COMPLETED, State.FAILED)
    before = {state: await ids_in(store, state) for state in states}
    await begin(store)
    await move_all(store)
    assert {state: await ids_in(store, state, POST) for state in states} == before
    await harness.advance(2_000)
    assert await claim_ids(store, queue=POST) == before[State.DELAYED][:3]


async def test_a_moved_job_runs_on_with_its_attempts(store: Store) -> None:
    """Attempts and epoch go on where they were: nobody outside takes the new activation for an old one."""
    await add_one(store, spec=JobSpec(attempts=2))
    await run_one(store, Retry(BOOM))
    await begin(store)
    await move_all(store)
    claimed = await claim_one(store, POST)
    assert (claimed.job.attempts_made, claimed.lease.epoch) == (1, 2)


async def test_a_start_by_time_counts_after_a_move(harness: Harness, store: Store) -> None:
    """A job that was not started by its time ends as expired where it is then."""
    ref = await add_one(store, spec=JobSpec(start_by_ms=harness.clock.now_ms() + 1_000))
    await begin(store)
    await move_all(store)
    await harness.advance(1_001)
    assert await claim(store, queue=POST) == ()
    assert (await store.job(JobRef(POST, ref.id))).state == State.FAILED


async def test_a_moved_job_can_be_steered(store: Store) -> None:
    """Under its old id it is promoted, cancelled, removed, and retried, also where the store gave the id."""
    refs = [await add_one(store, spec=JobSpec(delay_ms=60_000)) for _ in range(2)]
    done = await add_one(store)
    await complete_one(store)
    await begin(store)
    await move_all(store)
    await store.promote(JobRef(POST, refs[0].id))
    await store.cancel(JobRef(POST, refs[1].id), reason="")
    await store.retry(JobRef(POST, done.id))
    await store.remove(JobRef(POST, refs[1].id))
    assert await store.counts(POST) == Counts(waiting=2)


async def test_restored_jobs_wake_a_worker(harness: Harness, store: Store) -> None:
    """A worker that sleeps on the target learns of what arrives."""
    await add_one(store)
    await begin(store)
    other = await harness.open()
    (job,) = await export_all(store)
    woken, new = await race(other.wait([POST], timeout_ms=PATIENCE_S * 1_000), restore(store, job), turn=0)
    assert (woken, new) == (True, 1)


async def test_a_move_is_told(store: Store) -> None:
    """Unfinished jobs are added where they arrive and removed where they leave; finished ones arrive in silence."""
    await add_one(store)
    await complete_one(store)
    await add_one(store)
    await add_one(store, spec=JobSpec(delay_ms=60_000))
    await begin(store)
    here, there = await end_of_log(store), await end_of_log(store, POST)
    await move_all(store)
    assert await kinds_since(store, here) == [EventKind.REMOVED] * 3
    told = [EventKind.ADDED, EventKind.WAITING, EventKind.ADDED, EventKind.DELAYED]
    assert await kinds_since(store, there, POST) == told


# ── pauses ───────────────────────────────────────────────────────────────────────────────


async def test_the_target_is_paused_as_the_source_was(store: Store) -> None:
    """A queue that was paused arrives paused, any other running, whatever the target was before."""
    await add_one(store)
    await store.pause(POST)
    await begin(store)
    assert not (await store.counts(POST)).paused
    await store.obliterate(POST, force=False)
    await begin(store, paused=True)
    assert (await store.counts(POST)).paused


async def test_a_move_that_goes_on_leaves_the_pause_alone(store: Store) -> None:
    """By then the source is paused for the move: that is not how it was."""
    await add_one(store)
    await begin(store)
    await store.pause(MAIL)
    await begin(store, run="second", paused=True)
    assert not (await store.counts(POST)).paused
