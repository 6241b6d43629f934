"""Promises of retention: how long finished jobs stay."""

import pytest

from bullpen.errors import JobMissing
from bullpen.job.events import EventKind
from bullpen.job.spec import JobSpec, Keep
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Failed, Settlement
from bullpen.stores.base import Counts, Store
from bullpen.testing.conformance.moves import (
    BOOM,
    MAIL,
    add_many,
    add_one,
    claim,
    complete_one,
    end_of_log,
    events_since,
    fail_one,
    fresh_request,
    ids_in,
    race,
    run_one,
    settle_one,
)
from bullpen.testing.harness import Harness


async def _finish(harness: Harness, store: Store, verdict: Completed | Failed, keep: Keep, count: int) -> list[str]:
    """That many jobs with this retention, finished one after the other; their ids in that order."""
    ids = []
    for _ in range(count):
        await add_one(store, spec=JobSpec(keep_completed=keep, keep_failed=keep))
        ids.append((await run_one(store, verdict)).id)
        await harness.advance(1)
    return ids


async def test_the_newest_completed_jobs_stay(harness: Harness, store: Store) -> None:
    """With a count, the newest that many completed jobs stay and the oldest go."""
    ids = await _finish(harness, store, Completed(), Keep(count=2), 5)
    assert await ids_in(store, State.COMPLETED) == ids[-2:]
    assert await store.counts(MAIL) == Counts(completed=2)


async def test_the_newest_failed_jobs_stay(harness: Harness, store: Store) -> None:
    """With a count, the newest that many failed jobs stay and the oldest go."""
    ids = await _finish(harness, store, Failed(BOOM), Keep(count=2), 5)
    assert await ids_in(store, State.FAILED) == ids[-2:]


async def test_old_jobs_go_when_another_ends(harness: Harness, store: Store) -> None:
    """With an age, the end of a job takes away those that ended longer ago."""
    keep = Keep(age_ms=10_000)
    await _finish(harness, store, Completed(), keep, 3)
    await harness.advance(10_001)
    ids = await _finish(harness, store, Completed(), keep, 1)
    assert await ids_in(store, State.COMPLETED) == ids


async def test_the_stricter_of_count_and_age_wins(harness: Harness, store: Store) -> None:
    """A job stays only if it is both new enough and among the newest."""
    keep = Keep(count=3, age_ms=10_000)
    ids = await _finish(harness, store, Completed(), keep, 4)
    assert await ids_in(store, State.COMPLETED) == ids[-3:]
    await harness.advance(10_001)
    ids = await _finish(harness, store, Completed(), keep, 1)
    assert await ids_in(store, State.COMPLETED) == ids


async def test_each_job_brings_its_own_retention(harness: Harness, store: Store) -> None:
    """What stays is decided by the job that just ended, not by the queue."""
    await _finish(harness, store, Completed(), Keep(), 4)
    assert (await store.counts(MAIL)).completed == 4
    ids = await _finish(harness, store, Completed(), Keep(count=1), 1)
    assert await ids_in(store, State.COMPLETED) == ids


async def test_a_batch_keeps_the_count(store: Store) -> None:
    """Jobs that end in one batch are pruned as if they had ended one by one."""
    await add_many(store, 10, spec=JobSpec(keep_completed=Keep(count=3)))
    batch = [Settlement(one.lease, Completed()) for one in await claim(store, 10)]
    await store.settle(batch, request=fresh_request())
    assert await store.counts(MAIL) == Counts(completed=3)


async def test_failed_jobs_stay_until_told_otherwise(harness: Harness, store: Store) -> None:
    """By default no failed job is pruned, and completing others does not touch them."""
    await add_many(store, 3)
    for _ in range(2):
        await fail_one(store)
    await harness.advance(30 * 86_400_000)
    await complete_one(store)
    assert await store.counts(MAIL) == Counts(failed=2, completed=1)


async def test_completed_jobs_stay_a_day(harness: Harness, store: Store) -> None:
    """By default a completed job is pruned a day after its end."""
    await add_many(store, 2)
    await complete_one(store)
    await harness.advance(86_400_001)
    ref = await complete_one(store)
    assert await ids_in(store, State.COMPLETED) == [ref.id]


async def test_a_count_of_0_removes_at_once_with_the_result_in_the_event(store: Store) -> None:
    """A job that is not kept is gone as it completes; whoever awaits it has the result by the event."""
    await add_one(store, spec=JobSpec(keep_completed=Keep(count=0)))
    cursor = await end_of_log(store)
    ref = await run_one(store, Completed(b'{"sent":true}'))
    (event,) = [event for event in await events_since(store, cursor) if event.kind == EventKind.COMPLETED]
    assert (event.job_id, event.value) == (ref.id, b'{"sent":true}')
    assert await store.counts(MAIL) == Counts()


async def test_a_count_of_0_leaves_other_jobs(harness: Harness, store: Store) -> None:
    """A job that is not kept takes no other away."""
    ids = await _finish(harness, store, Completed(), Keep(), 2)
    await _finish(harness, store, Completed(), Keep(count=0), 1)
    assert await ids_in(store, State.COMPLETED) == ids


async def test_refuses_to_find_a_pruned_job(store: Store) -> None:
    """A pruned job is missing, with its log and all: JobMissing."""
    ref = await add_one(store, spec=JobSpec(keep_failed=Keep(count=0)))
    await store.add_log(ref, ["line"])
    await fail_one(store)
    with pytest.raises(JobMissing):
        await store.job(ref)
    with pytest.raises(JobMissing):
        await store.logs(ref)


async def test_race_the_count_holds_when_jobs_end_at_once(harness: Harness, store: Store) -> None:
    """However many jobs end at once, no more stay than each of them allows."""
    await add_many(store, 20, spec=JobSpec(keep_completed=Keep(count=3)))
    other = await harness.open()
    held = await claim(store, 20)
    for turn, (left, right) in enumerate(zip(held[::2], held[1::2], strict=True)):
        await race(settle_one(store, left.lease, Completed()), settle_one(other, right.lease, Completed()), turn=turn)
    assert await store.counts(MAIL) == Counts(completed=3)
