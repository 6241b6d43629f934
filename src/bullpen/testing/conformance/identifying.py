"""Promises of explicit ids: one job for one id, for a day at least."""

from bullpen.errors import BullpenError
from bullpen.job.events import EventKind
from bullpen.job.record import JobRef
from bullpen.job.spec import JobSpec, Keep, NewJob
from bullpen.job.state import State
from bullpen.stores.base import ID_MEMORY_MS, Added, AddOutcome, Counts, Store
from bullpen.testing.conformance.moves import (
    MAIL,
    ROUNDS,
    add,
    add_one,
    claim_one,
    complete_one,
    end_of_log,
    fail_one,
    kinds_since,
    race,
    state_of,
)
from bullpen.testing.harness import Harness

_DUPLICATE = Added("user-1", AddOutcome.DUPLICATE)
_GONE_AT_ONCE = JobSpec(keep_completed=Keep(count=0))


def _job(spec: JobSpec | None = None, *, data: bytes = b"{}") -> NewJob:
    return NewJob(MAIL, "welcome", data, "user-1", spec or JobSpec())


async def test_an_explicit_id_names_the_job(store: Store) -> None:
    """The id that a producer chose is the id under which the job is found."""
    assert await add(store, _job()) == [Added("user-1", AddOutcome.ADDED)]
    assert (await store.job(JobRef(MAIL, "user-1"))).id == "user-1"


async def test_an_id_in_three_parts_is_an_id(store: Store) -> None:
    """Ids with two colons, as in tenant:subject:reason, are kept as they are."""
    ref = await add_one(store, own_id="acme:user-1:welcome")
    assert ref.id == "acme:user-1:welcome"
    assert (await claim_one(store)).lease.ref == ref


async def test_a_taken_id_changes_nothing(store: Store) -> None:
    """A second add with the same id answers Duplicate; the first job stays as it is."""
    await add(store, _job(data=b'{"n":1}'))
    assert await add(store, _job(JobSpec(priority=5), data=b'{"n":2}')) == [_DUPLICATE]
    job = await store.job(JobRef(MAIL, "user-1"))
    assert (job.data, job.priority) == (b'{"n":1}', 0)
    assert await store.counts(MAIL) == Counts(waiting=1)


async def test_an_id_twice_in_one_batch_is_added_once(store: Store) -> None:
    """Within a batch the first of two equal ids wins."""
    assert await add(store, _job(), _job()) == [Added("user-1", AddOutcome.ADDED), _DUPLICATE]
    assert await store.counts(MAIL) == Counts(waiting=1)


async def test_an_id_stays_taken_in_every_state(store: Store) -> None:
    """Running, completed or failed: as long as the job is there, its id is taken."""
    await add(store, _job())
    await claim_one(store)
    assert await add(store, _job()) == [_DUPLICATE]
    await add_one(store, own_id="user-2")
    await complete_one(store)
    await add_one(store, own_id="user-3")
    await fail_one(store)
    again = await add(store, NewJob(MAIL, "welcome", id="user-2"), NewJob(MAIL, "welcome", id="user-3"))
    assert [one.outcome for one in again] == [AddOutcome.DUPLICATE] * 2


async def test_the_same_id_in_another_queue_is_another_job(store: Store) -> None:
    """Ids are a queue's own."""
    first, second = await add_one(store, own_id="user-1"), await add_one(store, "calls", own_id="user-1")
    assert (await state_of(store, first), await state_of(store, second)) == (State.WAITING, State.WAITING)


async def test_a_duplicate_is_told(store: Store) -> None:
    """A duplicate add leaves one event and no other trace."""
    await add(store, _job())
    cursor = await end_of_log(store)
    await add(store, _job())
    assert await kinds_since(store, cursor) == [EventKind.DUPLICATED]


async def test_a_pruned_id_is_remembered(harness: Harness, store: Store) -> None:
    """Retention does not make a finished job's id free again within a day of its add."""
    await add(store, _job(_GONE_AT_ONCE))
    await complete_one(store)
    await harness.advance(ID_MEMORY_MS - 60_000)
    assert await add(store, _job()) == [_DUPLICATE]
    assert await store.counts(MAIL) == Counts()


async def test_a_pruned_id_is_free_after_a_day(harness: Harness, store: Store) -> None:
    """A day after its add, the id of a job that is gone names a new job."""
    await add(store, _job(_GONE_AT_ONCE))
    await complete_one(store)
    await harness.advance(ID_MEMORY_MS + 1)
    assert await add(store, _job()) == [Added("user-1", AddOutcome.ADDED)]


async def test_an_id_of_a_living_job_is_taken_after_a_day(harness: Harness, store: Store) -> None:
    """The memory of a day is for jobs that are gone; a job that is there keeps its id."""
    await add(store, _job())
    await harness.advance(2 * ID_MEMORY_MS)
    assert await add(store, _job()) == [_DUPLICATE]


async def test_a_drained_id_is_remembered(store: Store) -> None:
    """Draining a queue does not make the ids of its jobs free."""
    await add(store, _job())
    await store.drain(MAIL, delayed=False)
    assert await add(store, _job()) == [_DUPLICATE]


async def test_a_cleaned_id_is_remembered(store: Store) -> None:
    """Cleaning finished jobs does not make their ids free."""
    await add(store, _job())
    await complete_one(store)
    assert await store.clean(MAIL, State.COMPLETED, older_than_ms=0, limit=10) == 1
    assert await add(store, _job()) == [_DUPLICATE]


async def test_a_removed_id_is_free(store: Store) -> None:
    """Removing a job by hand forgets its id with it."""
    await add(store, _job())
    await store.remove(JobRef(MAIL, "user-1"))
    assert await add(store, _job()) == [Added("user-1", AddOutcome.ADDED)]


async def test_the_memory_of_ids_survives_a_crash(harness: Harness, store: Store) -> None:
    """An outbox that starts anew after a crash cannot add its jobs a second time."""
    await add(store, _job(_GONE_AT_ONCE))
    await complete_one(store)
    await harness.crash(store)
    survivor = await harness.open()
    assert await add(survivor, _job()) == [_DUPLICATE]


async def test_race_one_id_is_added_once(harness: Harness, store: Store) -> None:
    """Of two adds with the same id at once, one adds and the other answers Duplicate."""
    other = await harness.open()
    for turn in range(ROUNDS):
        job = NewJob(MAIL, "welcome", id=f"user-{turn}")
        first, second = await race(add(store, job), add(other, job), turn=turn)
        assert not isinstance(first, BullpenError)
        assert not isinstance(second, BullpenError)
        assert {first[0].outcome, second[0].outcome} == {AddOutcome.ADDED, AddOutcome.DUPLICATE}
    assert await store.counts(MAIL) == Counts(waiting=ROUNDS)
