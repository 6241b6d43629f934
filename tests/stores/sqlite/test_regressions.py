"""Found by the state machine and while its model was written, each as a plain test."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen import SqliteStore
from bullpen.job.record import Failure, Lease
from bullpen.job.spec import JobSpec, NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Cancelled, Completed, Postponed, Released, Retry, Settlement
from bullpen.stores.base import SettleOutcome, Store
from bullpen.stores.sqlite.transaction import News
from tests.support.sqlite_harness import SqliteHarness

_PLAIN = JobSpec()
_SETTLED, _LOST = SettleOutcome.SETTLED, SettleOutcome.LEASE_LOST


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[SqliteHarness]:
    harness = SqliteHarness(tmp_path)
    yield harness
    await harness.close()
    await harness.check()


@pytest.fixture
async def store(harness: SqliteHarness) -> SqliteStore:
    store = await harness.open()
    assert isinstance(store, SqliteStore)
    return store


async def _add(store: Store, *ids: str, spec: JobSpec = _PLAIN) -> None:
    await store.add([NewJob("mail", "welcome", id=own_id, spec=spec) for own_id in ids], request=f"add {ids}")


async def _leases(store: Store, request: str = "claim") -> list[Lease]:
    claimed = await store.claim({"mail": 9}, worker="worker-1", lease_ms=30_000, request=request)
    return [job.lease for job in claimed.jobs]


async def test_the_first_of_two_verdicts_in_a_batch_wins(store: Store) -> None:
    """A completion that comes after another verdict of the same lease finds that lease lost."""
    await _add(store, "x")
    (lease,) = await _leases(store)
    batch = [Settlement(lease, Cancelled()), Settlement(lease, Completed())]
    assert list(await store.settle(batch, request="settle")) == [_SETTLED, _LOST]
    assert (await store.job(lease.ref)).state == State.FAILED


async def test_a_stale_lease_does_not_stand_before_the_one_that_holds(store: Store) -> None:
    """A worker that lost a job and claimed it again may settle both claims in one batch."""
    await _add(store, "x")
    (stale,) = await _leases(store, "first")
    await store.settle([Settlement(stale, Released())], request="release")
    (lease,) = await _leases(store, "second")
    batch = [Settlement(stale, Completed(b"1")), Settlement(lease, Completed(b"2"))]
    assert list(await store.settle(batch, request="settle")) == [_LOST, _SETTLED]
    assert (await store.job(lease.ref)).result == b"2"


async def test_a_batch_is_carried_out_in_the_order_asked(store: Store) -> None:
    """A job that is retried stands before one that a later completion adds."""
    await _add(store, "x", "y")
    first, second = await _leases(store)
    then = NewJob("mail", "goodbye", id="z")
    batch = [Settlement(first, Retry(Failure("no answer"))), Settlement(second, Completed(then=(then,)))]
    await store.settle(batch, request="settle")
    assert [lease.ref.id for lease in await _leases(store, "again")] == ["x", "z"]


async def test_lifo_does_not_reorder_delayed_jobs(harness: SqliteHarness, store: Store) -> None:
    """Delayed jobs join the line as they are due, and in the order of their adds where that is the same."""
    await _add(store, "x", spec=JobSpec(delay_ms=1_000))
    await _add(store, "y", spec=JobSpec(delay_ms=1_000, lifo=True))
    page = await store.jobs("mail", State.DELAYED, limit=9)
    assert [job.id for job in page.jobs] == ["x", "y"]
    await harness.advance(1_001)
    assert [lease.ref.id for lease in await _leases(store)] == ["x", "y"]


async def test_a_job_is_delayed_since_its_attempt_ended(harness: SqliteHarness, store: Store) -> None:
    """A job that ran for long and was then delayed has not been delayed for long."""
    await _add(store, "x")
    (lease,) = await _leases(store)
    await harness.advance(20_000)
    await store.settle([Settlement(lease, Postponed(60_000))], request="settle")
    await harness.advance(5_000)
    assert await store.clean("mail", State.DELAYED, older_than_ms=10_000, limit=9) == 0
    await harness.advance(5_001)
    assert await store.clean("mail", State.DELAYED, older_than_ms=10_000, limit=9) == 1


async def test_what_a_commit_told_before_one_waited_wakes_nobody(store: SqliteStore) -> None:
    """Callers are answered before sleepers are woken: who waits at once must not take old news for new."""
    await _add(store, "x")
    await _leases(store)
    file = store._file
    old = News()
    old.runnable.add("mail")
    old.number = file.writer.commits
    waiting = asyncio.create_task(store.wait(["mail"], timeout_ms=60_000))  # awaited below
    while not file._waiters:
        await asyncio.sleep(0)
    file._on_commit(old)
    (waiter,) = file._waiters
    await asyncio.sleep(0)  # a wake-up would be there with the next turn of the loop
    assert not waiter._news.is_set()
    await _add(store, "y")
    assert await waiting
