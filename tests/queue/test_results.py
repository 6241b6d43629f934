"""Waiting for what becomes of a job."""

import asyncio

import pytest

from bullpen import (
    Failure,
    FailureKind,
    JobFailed,
    JobMissing,
    Queue,
    ResultTimeout,
    State,
    StoreUnavailable,
    keep,
)
from bullpen.job.verdicts import Completed, Retry
from tests.queue.working import WatchedStore, claim, complete_next, fail_next, settle

_LONG = 30


async def _awaited(store: WatchedStore, queue: Queue, job_id: str) -> "asyncio.Task[object]":
    """Someone who waits for the job already, before anything becomes of it."""
    task = asyncio.create_task(queue.job(job_id).result(_LONG))
    await store.listening.wait()
    return task


async def test_a_result_that_is_awaited_before_the_end(queue: Queue, store: WatchedStore) -> None:
    job = await queue.add("sum")
    awaited = await _awaited(store, queue, job.id)
    await complete_next(store, b'{"sum": 42}')
    assert await awaited == {"sum": 42}


async def test_a_result_that_is_asked_for_after_the_end(queue: Queue, store: WatchedStore) -> None:
    job = await queue.add("sum")
    await complete_next(store, b"[1,2]")
    assert await job.result(_LONG) == [1, 2]
    assert await queue.job(job.id).result() == [1, 2]


async def test_a_result_may_be_nothing(queue: Queue, store: WatchedStore) -> None:
    job = await queue.add("sum")
    awaited = await _awaited(store, queue, job.id)
    await complete_next(store, b"null")
    assert await awaited is None
    assert await job.result(_LONG) is None


async def test_a_failure_tells_how(queue: Queue, store: WatchedStore) -> None:
    job = await queue.add("sum")
    awaited = await _awaited(store, queue, job.id)
    await fail_next(store, "division by zero")
    for asked in (awaited, job.result(_LONG)):
        with pytest.raises(JobFailed, match=rf"job '{job.id}' of queue 'work' failed: division by zero") as caught:
            await asked
        failure = caught.value.failure
        assert isinstance(failure, Failure)
        assert (failure.message, failure.kind, failure.type) == ("division by zero", FailureKind.ERROR, "ValueError")


async def test_a_cancelled_job_is_a_failure_of_its_own_kind(queue: Queue, store: WatchedStore) -> None:
    job = await queue.add("sum")
    awaited = await _awaited(store, queue, job.id)
    await job.cancel("not needed")
    with pytest.raises(JobFailed, match="not needed") as caught:
        await awaited
    assert isinstance(caught.value.failure, Failure)
    assert caught.value.failure.kind == FailureKind.CANCELLED


async def test_an_attempt_that_fails_is_not_the_end(queue: Queue, store: WatchedStore) -> None:
    job = await queue.add("sum", attempts=2)
    awaited = await _awaited(store, queue, job.id)
    (claimed,) = await claim(store)
    await settle(store, claimed, Retry(Failure("once"), 0))
    await complete_next(store, b'"second time"')
    assert await awaited == "second time"


async def test_a_timeout_leaves_the_job_as_it_is(queue: Queue, store: WatchedStore) -> None:
    job = await queue.add("sum")
    with pytest.raises(ResultTimeout, match=rf"job '{job.id}' of queue 'work' did not end within 0.01 s") as caught:
        await job.result(0.01)
    assert isinstance(caught.value, TimeoutError)
    assert (await job.record()).state == State.WAITING
    await complete_next(store, b"1")
    assert await job.result(_LONG) == 1


async def test_one_who_gives_up_does_not_end_the_others_wait(queue: Queue, store: WatchedStore) -> None:
    job = await queue.add("sum")
    awaited = await _awaited(store, queue, job.id)
    with pytest.raises(ResultTimeout):
        await queue.job(job.id).result(0.01)
    await complete_next(store, b"1")
    assert await awaited == 1


# ── results that are not kept ────────────────────────────────────────────────────────────


async def test_a_job_that_is_pruned_at_once_still_gives_its_result(queue: Queue, store: WatchedStore) -> None:
    job = await queue.add("sum", keep_completed=keep(0))
    awaited = await _awaited(store, queue, job.id)
    await complete_next(store, b"42")
    assert await awaited == 42
    with pytest.raises(JobMissing):
        await job.record()


async def test_the_result_of_a_pruned_job_is_found_in_the_log(queue: Queue, store: WatchedStore) -> None:
    job = await queue.add("sum", keep_completed=keep(0))
    await complete_next(store, b"42")
    assert await job.result(_LONG) == 42


async def test_the_failure_of_a_pruned_job_is_found_in_the_log(queue: Queue, store: WatchedStore) -> None:
    job = await queue.add("sum", keep_failed=keep(0))
    await fail_next(store, "broken")
    with pytest.raises(JobFailed, match="broken"):
        await job.result(_LONG)


async def test_the_last_end_of_a_retried_job_counts(queue: Queue, store: WatchedStore) -> None:
    """The log has both ends of a job that failed, was retried and then pruned; the second is its result."""
    job = await queue.add("sum", keep_completed=keep(0))
    await fail_next(store)
    await job.retry()
    await complete_next(store, b"42")
    assert await job.result(_LONG) == 42


async def test_a_retried_job_is_awaited_anew(queue: Queue, store: WatchedStore) -> None:
    job = await queue.add("sum")
    await fail_next(store)
    await job.retry()
    awaited = await _awaited(store, queue, job.id)
    await complete_next(store, b"42")
    assert await awaited == 42


async def test_a_job_without_a_trace_is_missing(queue: Queue) -> None:
    await queue.add("sum")
    with pytest.raises(JobMissing, match="no job 'nobody' in queue 'work', nor a trace of its end"):
        await queue.job("nobody").result(_LONG)


async def test_a_job_that_was_removed_before_its_end_is_missing(queue: Queue) -> None:
    job = await queue.add("sum")
    await job.remove()
    with pytest.raises(JobMissing):
        await job.result(_LONG)


async def test_a_long_log_is_searched_to_its_end(queue: Queue, store: WatchedStore) -> None:
    """Several pages lie between the start of the log and the end of the job."""
    await queue.add_bulk([queue.prepare("other", priority=1) for _ in range(600)])
    job = await queue.add("sum", keep_completed=keep(0))
    assert await complete_next(store, b"42") == job.id
    await queue.add_bulk([queue.prepare("other") for _ in range(600)])
    assert await job.result(_LONG) == 42


# ── many who wait ────────────────────────────────────────────────────────────────────────


async def test_all_who_wait_share_one_listener(queue: Queue, store: WatchedStore) -> None:
    jobs = await queue.add_bulk([queue.prepare("sum") for _ in range(50)])
    awaited = [asyncio.create_task(job.result(_LONG)) for job in [*jobs, *jobs]]
    await store.listening.wait()
    done = [await complete_next(store, str(n).encode()) for n in range(50)]
    assert done == [job.id for job in jobs]
    assert await asyncio.gather(*awaited) == [*range(50), *range(50)]
    assert store.most_listeners == 1


async def test_nobody_listens_once_nobody_waits(queue: Queue, store: WatchedStore) -> None:
    job = await queue.add("sum")
    awaited = await _awaited(store, queue, job.id)
    await complete_next(store)
    await awaited
    async with asyncio.timeout(_LONG):
        while store.listeners or asyncio.all_tasks() != {asyncio.current_task()}:
            await asyncio.sleep(0)  # the listener sees that it is no longer needed, and lets go of the server


async def test_who_waits_is_told_that_the_store_went_away(queue: Queue, store: WatchedStore) -> None:
    await store.close()
    with pytest.raises(StoreUnavailable):
        await queue.job("any").result(_LONG)
    await store.open()
    job = await queue.add("sum")
    await complete_next(store, b"1")
    assert await job.result(_LONG) == 1


async def test_results_of_other_jobs_pass_by(queue: Queue, store: WatchedStore) -> None:
    first, second = await queue.add("a"), await queue.add("b")
    awaited = await _awaited(store, queue, second.id)
    (one, two) = await claim(store, 2)
    await settle(store, one, Completed(b'"first"'))
    await settle(store, two, Completed(b'"second"'))
    assert await awaited == "second"
    assert await first.result(_LONG) == "first"
