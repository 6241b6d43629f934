"""Promises of `remove`, `drain`, `clean` and `obliterate`."""

import pytest

from bullpen.errors import JobMissing, QueueMissing, WrongState
from bullpen.job.record import JobRef
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Retry
from bullpen.stores.base import Counts, SettleOutcome, Store
from bullpen.testing.conformance.moves import (
    BOOM,
    MAIL,
    ROUNDS,
    add_many,
    add_one,
    claim,
    claim_one,
    complete_one,
    end_of_log,
    fail_one,
    ids_in,
    race,
    run_one,
    settle_one,
    state_of,
)
from bullpen.testing.harness import Harness


async def _is_missing(store: Store, ref: JobRef) -> None:
    with pytest.raises(JobMissing):
        await store.job(ref)


# ── remove ───────────────────────────────────────────────────────────────────────────────


async def test_a_removed_job_is_gone(store: Store) -> None:
    """A job that is not active may be removed, with its log, and is counted no more."""
    refs = await add_many(store, 3)
    await complete_one(store)
    await fail_one(store)
    refs.append(await add_one(store, spec=JobSpec(priority=1)))
    refs.append(await add_one(store, spec=JobSpec(delay_ms=60_000)))
    await store.add_log(refs[0], ["line"])
    for ref in refs:
        await store.remove(ref)
        await _is_missing(store, ref)
    assert await store.counts(MAIL) == Counts()
    assert await claim(store) == ()


async def test_refuses_to_remove_an_active_job(store: Store) -> None:
    """A job that runs cannot be removed: WrongState, and its worker keeps it."""
    ref = await add_one(store)
    held = await claim_one(store)
    with pytest.raises(WrongState):
        await store.remove(ref)
    assert await settle_one(store, held.lease, Completed()) == SettleOutcome.SETTLED


async def test_refuses_to_remove_a_missing_job(store: Store) -> None:
    """A job that is not there cannot be removed: JobMissing, also the second time."""
    ref = await add_one(store)
    await store.remove(ref)
    with pytest.raises(JobMissing):
        await store.remove(ref)


async def test_race_remove_and_claim_agree(harness: Harness, store: Store) -> None:
    """A job is either removed and never claimed, or claimed and not removed."""
    other = await harness.open()
    for turn in range(ROUNDS):
        ref = await add_one(store)
        removed, claimed = await race(store.remove(ref), claim(other), turn=turn)
        assert isinstance(claimed, tuple)
        assert isinstance(removed, WrongState) == bool(claimed)
        if claimed:
            assert await state_of(store, ref) == State.ACTIVE
        else:
            await _is_missing(store, ref)


# ── drain ────────────────────────────────────────────────────────────────────────────────


async def test_drain_removes_all_runnable_jobs(store: Store) -> None:
    """Waiting and prioritized jobs go; running, delayed and finished ones stay."""
    await add_many(store, 5)
    await complete_one(store)
    await claim_one(store)
    await add_one(store, spec=JobSpec(priority=2))
    await add_one(store, spec=JobSpec(delay_ms=60_000))
    assert await store.drain(MAIL, delayed=False) == 4
    assert await store.counts(MAIL) == Counts(active=1, completed=1, delayed=1)


async def test_drain_removes_delayed_jobs_if_asked(store: Store) -> None:
    """With `delayed`, those that are not due yet go as well."""
    await add_one(store)
    await add_one(store, spec=JobSpec(delay_ms=60_000))
    assert await store.drain(MAIL, delayed=True) == 2
    assert await store.counts(MAIL) == Counts()


async def test_race_drain_and_claim_share_the_jobs(harness: Harness, store: Store) -> None:
    """What is not drained is claimed: no job is both, and none is lost."""
    await add_many(store, 50)
    other = await harness.open()
    drained, claimed = await race(store.drain(MAIL, delayed=False), claim(other, 20), turn=0)
    assert isinstance(drained, int)
    assert isinstance(claimed, tuple)
    assert drained + len(claimed) == 50
    assert await store.counts(MAIL) == Counts(active=len(claimed))


# ── clean ────────────────────────────────────────────────────────────────────────────────


async def test_clean_removes_what_ended_long_ago(harness: Harness, store: Store) -> None:
    """Only jobs of the state that entered it that long ago go."""
    await add_many(store, 3)
    await complete_one(store)
    await fail_one(store)
    await harness.advance(10_000)
    young = await complete_one(store)
    assert await store.clean(MAIL, State.COMPLETED, older_than_ms=10_000, limit=100) == 1
    assert await ids_in(store, State.COMPLETED) == [young.id]
    assert (await store.counts(MAIL)).failed == 1


async def test_clean_stops_at_its_limit(harness: Harness, store: Store) -> None:
    """Up to the limit, the oldest go first."""
    await add_many(store, 5)
    refs = []
    for _ in range(5):
        refs.append(await fail_one(store))
        await harness.advance(1)
    assert await store.clean(MAIL, State.FAILED, older_than_ms=0, limit=3) == 3
    assert await ids_in(store, State.FAILED) == [ref.id for ref in refs[3:]]


async def test_clean_removes_jobs_that_never_ran(harness: Harness, store: Store) -> None:
    """Waiting, prioritized and delayed jobs can be cleaned, each state by itself."""
    specs = {State.WAITING: JobSpec(), State.PRIORITIZED: JobSpec(priority=1), State.DELAYED: JobSpec(delay_ms=60_000)}
    for spec in specs.values():
        await add_many(store, 2, spec=spec)
    await harness.advance(10_000)
    for n, state in enumerate(specs, 1):
        assert await store.clean(MAIL, state, older_than_ms=10_000, limit=100) == 2
        assert (await store.counts(MAIL)).unfinished == 6 - 2 * n


async def test_clean_leaves_a_job_that_was_delayed_just_now(harness: Harness, store: Store) -> None:
    """An old job that is delayed since its last attempt has not been delayed for long."""
    ref = await add_one(store, spec=JobSpec(attempts=9))
    await harness.advance(10_000)
    await run_one(store, Retry(BOOM, 60_000))
    assert await store.clean(MAIL, State.DELAYED, older_than_ms=10_000, limit=100) == 0
    assert await state_of(store, ref) == State.DELAYED


async def test_refuses_to_clean_active_jobs(harness: Harness, store: Store) -> None:
    """Running jobs cannot be cleaned: WrongState, and they go on."""
    await add_one(store)
    await claim_one(store)
    await harness.advance(10_000)
    with pytest.raises(WrongState):
        await store.clean(MAIL, State.ACTIVE, older_than_ms=0, limit=100)
    assert await store.counts(MAIL) == Counts(active=1)


async def test_race_clean_and_retry_all_share_the_jobs(harness: Harness, store: Store) -> None:
    """What is not cleaned is retried: no job is both, and none is lost."""
    await add_many(store, 20)
    for _ in range(20):
        await fail_one(store)
    other = await harness.open()
    cleaned, retried = await race(
        store.clean(MAIL, State.FAILED, older_than_ms=0, limit=12),
        other.retry_all(MAIL, State.FAILED, limit=100),
        turn=0,
    )
    assert isinstance(cleaned, int)
    assert isinstance(retried, int)
    assert cleaned + retried == 20
    assert await store.counts(MAIL) == Counts(waiting=retried)


# ── obliterate ───────────────────────────────────────────────────────────────────────────


async def test_an_obliterated_queue_is_gone(store: Store) -> None:
    """Everything of the queue goes: its jobs, its place among the queues, its pause, its ids."""
    ref = await add_one(store, own_id="user-1")
    await add_one(store, spec=JobSpec(delay_ms=60_000))
    await add_one(store, "calls")
    await complete_one(store)
    await store.pause(MAIL)
    await store.obliterate(MAIL, force=False)
    assert list(await store.queues()) == ["calls"]
    with pytest.raises(QueueMissing):
        await store.counts(MAIL)
    await _is_missing(store, ref)


async def test_an_obliterated_queue_can_begin_anew(store: Store) -> None:
    """An add after that finds an empty queue that runs, with every id free, also those only remembered."""
    await add_one(store, own_id="user-1")
    await store.drain(MAIL, delayed=True)
    await add_one(store, own_id="user-2")
    await store.pause(MAIL)
    await store.obliterate(MAIL, force=False)
    await add_one(store, own_id="user-1")
    await add_one(store, own_id="user-2")
    assert await store.counts(MAIL) == Counts(waiting=2)
    assert (await claim_one(store)).job.id == "user-1"


async def test_an_obliterated_queue_says_gap_to_its_readers(store: Store) -> None:
    """Whoever read on before learns that events are gone, and can go on from there."""
    await add_one(store)
    cursor = await end_of_log(store)
    await add_many(store, 3)
    await store.obliterate(MAIL, force=False)
    page = await store.events(MAIL, after=cursor, limit=100, timeout_ms=0)
    assert page.gap
    await store.events(MAIL, after=page.cursor, limit=100, timeout_ms=0)


async def test_a_forced_obliteration_takes_running_jobs(store: Store) -> None:
    """With `force`, active jobs go too, and their workers' leases are lost."""
    await add_one(store)
    held = await claim_one(store)
    await store.obliterate(MAIL, force=True)
    assert await settle_one(store, held.lease, Completed()) == SettleOutcome.LEASE_LOST
    assert list(await store.queues()) == []


async def test_refuses_to_obliterate_a_queue_with_active_jobs(store: Store) -> None:
    """Without `force` a queue with running jobs stays whole and unpaused: WrongState."""
    await add_many(store, 2)
    await claim_one(store)
    with pytest.raises(WrongState):
        await store.obliterate(MAIL, force=False)
    assert await store.counts(MAIL) == Counts(active=1, waiting=1)


async def test_refuses_to_empty_a_missing_queue(store: Store) -> None:
    """A mistyped queue is not silently empty: QueueMissing."""
    with pytest.raises(QueueMissing):
        await store.drain("nowhere", delayed=True)
    with pytest.raises(QueueMissing):
        await store.clean("nowhere", State.FAILED, older_than_ms=0, limit=10)
    with pytest.raises(QueueMissing):
        await store.obliterate("nowhere", force=True)


async def test_race_obliterate_and_claim_agree(harness: Harness, store: Store) -> None:
    """A queue is either gone with nothing claimed, or has the running job and stays."""
    other = await harness.open()
    for turn in range(ROUNDS):
        queue = f"mail-{turn}"
        await add_many(store, 3, queue)
        gone, claimed = await race(store.obliterate(queue, force=False), claim(other, 1, queue), turn=turn)
        assert isinstance(claimed, tuple)
        assert isinstance(gone, WrongState) == bool(claimed)
        assert (queue in await store.queues()) == bool(claimed)


async def test_race_obliterate_and_add_agree(harness: Harness, store: Store) -> None:
    """A job that is added as its queue is obliterated is gone with it, or the first of a new one."""
    other = await harness.open()
    for turn in range(ROUNDS):
        queue = f"mail-{turn}"
        await add_many(store, 3, queue)
        await race(store.obliterate(queue, force=False), add_one(other, queue), turn=turn)
        left = (await store.counts(queue)).waiting if queue in await store.queues() else 0
        assert left in (0, 1)
        assert len(await claim(store, 5, queue)) == left
