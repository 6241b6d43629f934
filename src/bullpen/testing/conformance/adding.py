"""Promises of `add`."""

import pytest

from bullpen.errors import BullpenError
from bullpen.job.record import JobRef
from bullpen.job.spec import Backoff, Dedup, JobSpec, Keep, NewJob
from bullpen.job.state import State
from bullpen.stores.base import AddOutcome, Counts, Store
from bullpen.testing.conformance.moves import MAIL, ROUNDS, add, add_many, add_one, claim_ids, race, state_of
from bullpen.testing.harness import Harness


async def test_an_added_job_is_waiting(store: Store) -> None:
    """What was acknowledged can be read back, by the id that the answer gave."""
    (added,) = await add(store, NewJob(MAIL, "welcome", b'{"user":1}'))
    job = await store.job(JobRef(MAIL, added.id))
    assert added.outcome == AddOutcome.ADDED
    assert (job.state, job.name, job.data) == (State.WAITING, "welcome", b'{"user":1}')


async def test_a_new_job_has_done_nothing_yet(harness: Harness, store: Store) -> None:
    """A fresh record says when it was added, and has no attempts, crashes, result or worker."""
    before_ms = harness.clock.now_ms()
    job = await store.job(await add_one(store))
    assert before_ms <= job.added_ms <= harness.clock.now_ms()
    assert (job.attempts_made, job.epoch, job.crashes, job.stacks) == (0, 0, {}, ())
    assert (job.started_ms, job.finished_ms, job.result, job.failure, job.worker) == (None,) * 5


async def test_a_spec_is_kept_whole(store: Store) -> None:
    """Every field that the producer wrote can be read back as it was."""
    spec = JobSpec(
        priority=7,
        delay_ms=5_000,
        attempts=3,
        backoff=Backoff("exponential", 1_000, 0.5, 60_000),
        timeout_ms=9_000,
        start_by_ms=4_000_000_000_000,
        tenant="acme",
        workspace="research",
        tags=("red", "blue"),
        headers={"traceparent": "00-1", "by": "søren"},
        dedup=Dedup("user-1", ttl_ms=1_000, extend=True),
        keep_completed=Keep(count=5),
        keep_failed=Keep(age_ms=60_000),
        keep_logs=10,
        keep_stacks=2,
    )
    job = await store.job(await add_one(store, spec=spec))
    assert job.spec == spec
    assert job.tenant == "acme"


async def test_data_is_kept_byte_for_byte(store: Store) -> None:
    """Data comes back as the bytes that were given, whatever script they are in and however long."""
    text = '{"name":"Zoë \u4f60\u597d \U0001f4ec","quote":"\\"","long":"' + "x" * 100_000 + '"}'
    job = await store.job(await add_one(store, name="grüße", data=text.encode()))
    assert (job.name, job.data) == ("grüße", text.encode())


async def test_each_job_goes_where_its_spec_says(store: Store) -> None:
    """No priority is waiting, a priority is prioritized, and a delay is delayed, also with a priority."""
    waiting = await add_one(store)
    prioritized = await add_one(store, spec=JobSpec(priority=1))
    delayed = await add_one(store, spec=JobSpec(delay_ms=1_000))
    both = await add_one(store, spec=JobSpec(delay_ms=1_000, priority=1))
    assert [await state_of(store, ref) for ref in (waiting, prioritized, delayed, both)] == [
        State.WAITING,
        State.PRIORITIZED,
        State.DELAYED,
        State.DELAYED,
    ]


async def test_a_delayed_job_says_when_it_is_due(harness: Harness, store: Store) -> None:
    """The due time is the delay, counted from the add."""
    before_ms = harness.clock.now_ms()
    job = await store.job(await add_one(store, spec=JobSpec(delay_ms=5_000)))
    assert job.run_at_ms is not None
    assert before_ms + 5_000 <= job.run_at_ms <= harness.clock.now_ms() + 5_000


async def test_a_batch_is_answered_in_the_order_asked(store: Store) -> None:
    """The answers of a batch stand in the order of its jobs, which is the order in which they run."""
    added = await add(store, *[NewJob(MAIL, f"job-{n}") for n in range(50)])
    names = [(await store.job(JobRef(MAIL, one.id))).name for one in added]
    assert names == [f"job-{n}" for n in range(50)]
    assert await claim_ids(store) == [one.id for one in added]


async def test_a_batch_may_span_queues(store: Store) -> None:
    """One add may bring jobs to several queues."""
    if not store.facts.atomic_across_queues:
        pytest.skip("facts.atomic_across_queues")
    await add(store, NewJob(MAIL, "a"), NewJob("calls", "b", spec=JobSpec(priority=1)), NewJob(MAIL, "c"))
    assert await store.counts(MAIL) == Counts(waiting=2)
    assert await store.counts("calls") == Counts(prioritized=1)


async def test_an_empty_batch_adds_nothing(store: Store) -> None:
    """Adding nothing is answered with nothing, and makes no queue."""
    assert await add(store) == []
    assert list(await store.queues()) == []


async def test_generated_ids_are_unlike(store: Store) -> None:
    """A job without an id of its own gets one that no other job of its queue has."""
    refs = await add_many(store, 200)
    refs.append(await add_one(store))
    assert len(set(refs)) == 201


async def test_race_two_producers_lose_nothing(harness: Harness, store: Store) -> None:
    """Batches that are added at once are all there, each with ids of its own."""
    other = await harness.open()
    refs: set[JobRef] = set()
    for turn in range(ROUNDS):
        for batch in await race(add_many(store, 7), add_many(other, 5), turn=turn):
            assert not isinstance(batch, BullpenError)
            refs.update(batch)
    assert len(refs) == 12 * ROUNDS
    assert await store.counts(MAIL) == Counts(waiting=12 * ROUNDS)
