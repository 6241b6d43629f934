"""Promises of an interrupted move: no job is lost by it, and none is there twice."""

import msgspec
import pytest

from bullpen.errors import BadOption, BullpenError, JobMissing, MoveRefused, QueueMissing, WrongState
from bullpen.job.record import JobRef
from bullpen.job.spec import JobSpec, Keep
from bullpen.job.state import State
from bullpen.job.verdicts import Completed
from bullpen.stores.base import Counts, Store
from bullpen.stores.moving import SavedJob
from bullpen.testing.conformance.carrying import (
    LAST_ID,
    POST,
    begin,
    export_all,
    restore,
)
from bullpen.testing.conformance.moves import (
    MAIL,
    ROUNDS,
    add_many,
    add_one,
    claim,
    claim_one,
    complete_one,
    crash_during,
    race,
    settle_one,
)
from bullpen.testing.harness import Harness


async def test_what_arrived_is_passed_over(store: Store) -> None:
    """The same cargo again changes nothing, though its job has run, ended and been pruned on the target."""
    await add_one(store, spec=JobSpec(keep_completed=Keep(count=0)))
    await add_one(store, own_id="own-1")
    await begin(store)
    jobs = await export_all(store)
    assert await restore(store, *jobs) == 2
    await complete_one(store, POST)
    assert await restore(store, *jobs) == 0
    assert await store.counts(POST) == Counts(waiting=1)


async def test_what_arrived_is_known_to_the_next_run(harness: Harness, store: Store) -> None:
    """A mover that was killed after an arrival and before the departure is followed by one that repeats nothing."""
    await add_many(store, 2)
    await add_one(store, spec=JobSpec(keep_completed=Keep(count=0), lifo=True))
    await begin(store)
    jobs = await export_all(store)
    await restore(store, *jobs)
    await complete_one(store, POST)
    await harness.crash(store)
    survivor = await harness.open()
    await begin(survivor, run="second")
    assert await survivor.counts(POST) == Counts(waiting=2)
    assert await restore(survivor, *jobs, run="second") == 0
    assert list(await survivor.depart(MAIL, [job.id for job in jobs])) == [job.id for job in jobs]
    assert await survivor.counts(MAIL) == Counts()


async def test_a_crash_while_restoring_takes_all_or_nothing(harness: Harness, store: Store) -> None:
    """A batch whose answer never came is on the target whole or not at all, and again makes it whole."""
    await add_many(store, 20)
    await begin(store)
    jobs = await export_all(store)
    await crash_during(harness, store, restore(store, *jobs))
    survivor = await harness.open()
    assert (await survivor.counts(POST)).waiting in (0, 20)
    await begin(survivor, run="second")
    await restore(survivor, *jobs, run="second")
    assert await survivor.counts(POST) == Counts(waiting=20)


async def test_departure_is_safe_to_repeat(store: Store) -> None:
    """What has left already is among those that are not here; nothing else happens."""
    refs = await add_many(store, 2)
    ids = [ref.id for ref in refs]
    assert list(await store.depart(MAIL, ids)) == ids
    assert list(await store.depart(MAIL, [*ids, "never"])) == [*ids, "never"]
    assert await store.counts(MAIL) == Counts()


async def test_an_active_job_does_not_depart(store: Store) -> None:
    """A job that runs stays with its worker."""
    refs = await add_many(store, 2)
    held = await claim_one(store)
    gone = await store.depart(MAIL, [ref.id for ref in refs])
    assert list(gone) == [refs[1].id]
    await settle_one(store, held.lease, Completed())
    assert await store.counts(MAIL) == Counts(completed=1)


async def test_ids_of_both_sides_do_not_meet(store: Store) -> None:
    """What the target numbers itself is out of reach of what the source has added and will add."""
    await add_many(store, 3)
    assert (await store.export_memory(MAIL, limit=1)).last_id >= 3
    await begin(store)
    own = await add_many(store, 3, POST)
    first, *_ = await export_all(store)
    late = msgspec.structs.replace(first.record, ref=JobRef(MAIL, str(LAST_ID + 100_000)))
    assert await restore(store, first, msgspec.structs.replace(first, record=late)) == 2
    assert await store.counts(POST) == Counts(waiting=5)
    assert min(int(ref.id) for ref in own) > LAST_ID + 100_000


async def test_refuses_an_id_that_is_another_job_s(store: Store) -> None:
    """A number that the target gave out itself is never taken for the same job: MoveRefused, and nothing changed."""
    await add_many(store, 2)
    await begin(store)
    (own,) = await add_many(store, 1, POST)
    first, second = await export_all(store)
    record = msgspec.structs.replace(second.record, ref=own)
    with pytest.raises(MoveRefused):
        await restore(store, first, msgspec.structs.replace(second, record=record))
    assert await store.counts(POST) == Counts(waiting=1)
    assert await restore(store, first, second) == 2


async def test_refuses_an_older_run(store: Store) -> None:
    """Of two movers only the one that began last may restore: MoveRefused, and nothing changed."""
    await add_one(store)
    jobs = await export_all(store)
    with pytest.raises(MoveRefused):
        await restore(store, *jobs)
    await begin(store)
    await begin(store, run="second")
    with pytest.raises(MoveRefused):
        await restore(store, *jobs)
    assert await store.counts(POST) == Counts()
    assert await restore(store, *jobs, run="second") == 1


async def test_refuses_a_queue_with_jobs_of_its_own(store: Store) -> None:
    """A target with jobs, finished ones too, or with jobs from elsewhere, is MoveRefused and stays as it is."""
    await add_one(store)
    await add_one(store, POST)
    await complete_one(store, POST)
    with pytest.raises(MoveRefused):
        await begin(store, paused=True)
    await store.clean(POST, State.COMPLETED, older_than_ms=0, limit=10)
    await begin(store)
    await restore(store, *await export_all(store))
    with pytest.raises(MoveRefused):
        await begin(store, origin="elsewhere", paused=True)
    assert await store.counts(POST) == Counts(waiting=1)


async def test_refuses_jobs_that_run(store: Store) -> None:
    """An active job is neither exported nor restored: WrongState."""
    await add_one(store)
    (job,) = await export_all(store)
    await claim_one(store)
    with pytest.raises(WrongState):
        await store.export_jobs(MAIL, State.ACTIVE, limit=1)
    await begin(store)
    active = msgspec.structs.replace(job, record=msgspec.structs.replace(job.record, state=State.ACTIVE))
    with pytest.raises(WrongState):
        await restore(store, active)
    assert await store.counts(POST) == Counts()


async def test_refuses_to_move_a_missing_queue(store: Store) -> None:
    """A queue that never was has nothing to move: QueueMissing."""
    for verb in (
        store.export_jobs(MAIL, State.WAITING, limit=1),
        store.export_jobs(MAIL, State.ACTIVE, limit=1),
        store.export_memory(MAIL, limit=1),
        store.depart(MAIL, ["1"]),
    ):
        with pytest.raises(QueueMissing):
            await verb


async def test_refuses_a_strange_cursor(store: Store) -> None:
    """A cursor that no page of memories gave is BadOption."""
    await add_one(store)
    with pytest.raises(BadOption):
        await store.export_memory(MAIL, limit=1, cursor="odd")


async def test_an_obliterated_queue_is_ready_for_another_move(store: Store) -> None:
    """Obliterating the target ends the move: its mover may not go on, another may begin."""
    await add_one(store)
    await begin(store)
    jobs = await export_all(store)
    await restore(store, *jobs)
    await store.obliterate(POST, force=False)
    with pytest.raises(MoveRefused):
        await restore(store, *jobs)
    await begin(store, origin="elsewhere")
    assert await restore(store, *jobs) == 1


async def test_race_two_movers_restore_once(harness: Harness, store: Store) -> None:
    """Two movers of one queue at once leave each job on the target once."""
    other = await harness.open()
    await add_many(store, ROUNDS)
    jobs = await export_all(store)
    for turn, job in enumerate(jobs):
        await race(_begin_and_restore(store, "a", job), _begin_and_restore(other, "b", job), turn=turn)
    assert await store.counts(POST) == Counts(waiting=ROUNDS)


async def _begin_and_restore(store: Store, run: str, job: SavedJob) -> int:
    await begin(store, run=run)
    return await restore(store, job, run=run)


async def test_race_departure_and_claim_agree(harness: Harness, store: Store) -> None:
    """A job either departs and is never claimed, or is claimed and stays."""
    other = await harness.open()
    for turn in range(ROUNDS):
        ref = await add_one(store)
        gone, claimed = await race(store.depart(MAIL, [ref.id]), claim(other), turn=turn)
        assert not isinstance(gone, BullpenError)
        assert not isinstance(claimed, BullpenError)
        assert len(gone) + len(claimed) == 1
        if gone:
            with pytest.raises(JobMissing):
                await store.job(ref)
