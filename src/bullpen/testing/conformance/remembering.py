"""Promises of what moves beside the jobs: explicit ids and subjects that are taken."""

import msgspec
import pytest

from bullpen.job.record import CrashKind, JobRef
from bullpen.job.spec import Dedup, JobSpec, Keep, NewJob
from bullpen.job.verdicts import Released
from bullpen.stores.base import ID_MEMORY_MS, Added, AddOutcome, Counts, Store
from bullpen.stores.moving import Cargo, RememberedId, Subject
from bullpen.testing.conformance.carrying import (
    POST,
    begin,
    memory_of,
    move_all,
)
from bullpen.testing.conformance.moves import (
    MAIL,
    add,
    add_one,
    claim,
    claim_one,
    complete_one,
    settle_one,
)
from bullpen.testing.harness import Harness


async def test_explicit_ids_stay_taken(harness: Harness, store: Store) -> None:
    """An id whose job was pruned on the source is taken on the target for the rest of its day."""
    await add_one(store, own_id="gone", spec=JobSpec(keep_completed=Keep(count=0)))
    await complete_one(store)
    await add_one(store, own_id="here")
    await harness.advance(ID_MEMORY_MS - 60_000)
    await begin(store)
    await move_all(store)
    again = await add(store, NewJob(POST, "welcome", id="gone"), NewJob(POST, "welcome", id="here"))
    assert [one.outcome for one in again] == [AddOutcome.DUPLICATE] * 2
    await harness.advance(60_001)
    assert await add(store, NewJob(POST, "welcome", id="gone")) == [Added("gone", AddOutcome.ADDED)]


async def test_a_departed_id_stays_taken(store: Store) -> None:
    """A late producer that repeats an add on the source is told that the id is taken."""
    await add_one(store, own_id="own-1")
    await store.depart(MAIL, ["own-1"])
    assert await add(store, NewJob(MAIL, "welcome", id="own-1")) == [Added("own-1", AddOutcome.DUPLICATE)]


async def test_an_explicit_id_that_is_taken_is_passed_over(store: Store) -> None:
    """One id, one job: what the target has or remembers under that id stands for what would arrive."""
    await add_one(store, own_id="own-1")
    await add_one(store, own_id="own-2")
    await begin(store)
    await add_one(store, POST, own_id="own-1", data=b"1")
    await add_one(store, POST, own_id="own-2", spec=JobSpec(keep_completed=Keep(count=0), lifo=True))
    await complete_one(store, POST)
    await move_all(store)
    assert await store.counts(POST) == Counts(waiting=1)
    assert (await store.job(JobRef(POST, "own-1"))).data == b"1"


async def test_a_removed_job_s_id_is_free_after_a_move(store: Store) -> None:
    """Removing a job by hand forgets its id with it, also where it moved to."""
    await add_one(store, own_id="own-1")
    await begin(store)
    await move_all(store)
    for page in await memory_of(store):  # what departed is remembered on the source by now
        await store.restore(POST, Cargo(ids=page.ids), run="run")
    await store.remove(JobRef(POST, "own-1"))
    assert await add(store, NewJob(POST, "welcome", id="own-1")) == [Added("own-1", AddOutcome.ADDED)]


async def test_memories_come_in_pages(store: Store) -> None:
    """Page by page every remembered id and every subject with a time of its own is told."""
    spec = JobSpec(keep_completed=Keep(count=0))
    for n in range(7):
        await add_one(store, own_id=f"own-{n}", spec=msgspec.structs.replace(spec, dedup=Dedup(f"s{n}", ttl_ms=60_000)))
        await complete_one(store)
    pages = await memory_of(store, limit=3)
    assert {one.id for page in pages for one in page.ids} == {f"own-{n}" for n in range(7)}
    assert {one.id for page in pages for one in page.subjects} == {f"s{n}" for n in range(7)}


async def test_a_subject_goes_with_its_job(store: Store) -> None:
    """While the moved job has not ended, an add for its subject on the target answers with its id."""
    ref = await add_one(store, spec=JobSpec(dedup=Dedup("subject")))
    await begin(store)
    await move_all(store)
    job = NewJob(POST, "welcome", spec=JobSpec(dedup=Dedup("subject")))
    assert await add(store, job) == [Added(ref.id, AddOutcome.DEDUPLICATED)]
    await complete_one(store, POST)
    assert [one.outcome for one in await add(store, job)] == [AddOutcome.ADDED]


async def test_a_departed_subject_is_free(store: Store) -> None:
    """A subject without a time of its own is not held by a job that is elsewhere."""
    spec = JobSpec(dedup=Dedup("subject"))
    ref = await add_one(store, spec=spec)
    await store.depart(MAIL, [ref.id])
    assert [one.outcome for one in await add(store, NewJob(MAIL, "welcome", spec=spec))] == [AddOutcome.ADDED]


@pytest.mark.parametrize("has_ended", [False, True])
async def test_a_throttle_goes_on_for_the_rest_of_its_time(harness: Harness, store: Store, has_ended: bool) -> None:
    """On both sides a subject with a time is taken until then, whether its job has ended or not."""
    spec = JobSpec(dedup=Dedup("subject", ttl_ms=10_000), keep_completed=Keep(count=0))
    ref = await add_one(store, own_id="own-1", spec=spec)
    if has_ended:
        await complete_one(store)
    await harness.advance(6_000)
    await begin(store)
    await move_all(store)
    for queue in (MAIL, POST):
        assert await add(store, NewJob(queue, "welcome", spec=spec)) == [Added(ref.id, AddOutcome.DEDUPLICATED)]
    await harness.advance(4_001)
    for queue in (MAIL, POST):
        assert [one.outcome for one in await add(store, NewJob(queue, "welcome", spec=spec))] == [AddOutcome.ADDED]


async def test_what_is_kept_for_later_goes_with_its_job(store: Store) -> None:
    """A job that was kept for when another ends is added on the target, once that one has ended there."""
    spec = JobSpec(dedup=Dedup("subject", keep_last_if_active=True))
    ref = await add_one(store, spec=spec)
    held = await claim_one(store)
    (kept,) = await add(store, NewJob(MAIL, "welcome", b'{"n":2}', spec=spec))
    assert kept == Added(ref.id, AddOutcome.KEPT_LAST)
    await settle_one(store, held.lease, Released(CrashKind.DEPLOY))
    await begin(store)
    await move_all(store)
    assert await store.counts(MAIL) == Counts()
    assert await store.counts(POST) == Counts(waiting=1)
    await complete_one(store, POST)
    (later,) = await claim(store, queue=POST)
    assert later.job.data == b'{"n":2}'


async def test_a_subject_that_is_taken_stays_with_its_job(store: Store) -> None:
    """Where producers of the target were first for a subject, the moved job arrives and stands for nothing."""
    spec = JobSpec(dedup=Dedup("subject"))
    await add_one(store, spec=spec)
    await begin(store)
    own = await add_one(store, POST, spec=spec)
    await move_all(store)
    assert await store.counts(POST) == Counts(waiting=2)
    assert await add(store, NewJob(POST, "welcome", spec=spec)) == [Added(own.id, AddOutcome.DEDUPLICATED)]


async def test_memories_told_twice_never_get_shorter(harness: Harness, store: Store) -> None:
    """A subject that comes again lasts as long as the longer of the two."""
    now_ms = harness.clock.now_ms()
    await add_one(store)
    await begin(store)
    long = Subject("subject", "own-1", now_ms + 20_000)
    short = Subject("subject", "own-1", now_ms + 10_000)
    for subject in (long, short):
        await store.restore(POST, Cargo(subjects=(subject,), ids=(RememberedId("own-1", now_ms + 1_000),)), run="run")
    await harness.advance(15_000)
    (told,) = [subject for page in await memory_of(store, POST) for subject in page.subjects]
    assert (told.id, told.owner_id) == ("subject", "own-1")
