"""Promises of deduplication: one job for one subject."""

from bullpen.errors import BullpenError
from bullpen.job.events import EventKind
from bullpen.job.record import JobRef
from bullpen.job.spec import Dedup, JobSpec, Keep, NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Failed, Retry
from bullpen.stores.base import Added, AddOutcome, Counts, Store
from bullpen.testing.conformance.moves import (
    BOOM,
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
    run_one,
    settle_one,
    state_of,
)
from bullpen.testing.harness import Harness

_SIMPLE = Dedup("subject")
_THROTTLE = Dedup("subject", ttl_ms=10_000)
_DEBOUNCE = Dedup("subject", ttl_ms=10_000, extend=True, replace=True)
_KEEP_LAST = Dedup("subject", keep_last_if_active=True)


async def _add(
    store: Store, dedup: Dedup, *, data: bytes = b"{}", delay_ms: int = 0, own_id: str | None = None
) -> Added:
    spec = JobSpec(dedup=dedup, delay_ms=delay_ms)
    (added,) = await add(store, NewJob(MAIL, "welcome", data, own_id, spec))
    return added


# ── simple: until it ended ───────────────────────────────────────────────────────────────


async def test_one_subject_has_one_job(store: Store) -> None:
    """While the first job has not ended, a second add answers with its id and adds nothing."""
    first = await _add(store, _SIMPLE)
    assert first.outcome == AddOutcome.ADDED
    assert await _add(store, _SIMPLE) == Added(first.id, AddOutcome.DEDUPLICATED)
    await claim_one(store)
    assert await _add(store, _SIMPLE) == Added(first.id, AddOutcome.DEDUPLICATED)
    assert await store.counts(MAIL) == Counts(active=1)


async def test_subjects_are_apart(store: Store) -> None:
    """Another subject, or the same in another queue, is another job."""
    await add_one(store, spec=JobSpec(dedup=Dedup("a")))
    await add_one(store, spec=JobSpec(dedup=Dedup("b")))
    await add_one(store, "calls", spec=JobSpec(dedup=Dedup("a")))
    assert await store.counts(MAIL) == Counts(waiting=2)
    assert await store.counts("calls") == Counts(waiting=1)


async def test_one_subject_twice_in_one_batch_is_added_once(store: Store) -> None:
    """Deduplication is applied in the order of the batch."""
    job = NewJob(MAIL, "welcome", spec=JobSpec(dedup=_SIMPLE))
    first, second = await add(store, job, job)
    assert (first.outcome, second) == (AddOutcome.ADDED, Added(first.id, AddOutcome.DEDUPLICATED))


async def test_completion_frees_the_subject(store: Store) -> None:
    """Once the job has completed, the next add with its subject is added."""
    await _add(store, _SIMPLE)
    await complete_one(store)
    assert (await _add(store, _SIMPLE)).outcome == AddOutcome.ADDED


async def test_final_failure_frees_the_subject(store: Store) -> None:
    """Once the job has failed for good, the next add with its subject is added."""
    await _add(store, _SIMPLE)
    await fail_one(store)
    assert (await _add(store, _SIMPLE)).outcome == AddOutcome.ADDED


async def test_a_retry_keeps_the_subject(store: Store) -> None:
    """A failed attempt that another follows does not free the subject."""
    first = await _add(store, _SIMPLE)
    await run_one(store, Retry(BOOM))
    assert await _add(store, _SIMPLE) == Added(first.id, AddOutcome.DEDUPLICATED)


async def test_removal_frees_the_subject(store: Store) -> None:
    """A job that was removed, drained or cancelled stands for nothing."""
    first = await _add(store, _SIMPLE)
    await store.remove(JobRef(MAIL, first.id))
    second = await _add(store, _SIMPLE)
    await store.cancel(JobRef(MAIL, second.id), reason="")
    third = await _add(store, _SIMPLE)
    await store.drain(MAIL, delayed=True)
    fourth = await _add(store, _SIMPLE)
    assert {one.outcome for one in (first, second, third, fourth)} == {AddOutcome.ADDED}


async def test_deduplication_is_told(store: Store) -> None:
    """An add that was deduplicated leaves one event and no other trace."""
    await _add(store, _SIMPLE)
    cursor = await end_of_log(store)
    await _add(store, _SIMPLE)
    assert await kinds_since(store, cursor) == [EventKind.DEDUPLICATED]


# ── throttle: for a time ─────────────────────────────────────────────────────────────────


async def test_a_throttle_outlasts_its_job(harness: Harness, store: Store) -> None:
    """With a time, the subject is taken for that long after the first add, whatever became of it."""
    first = await _add(store, _THROTTLE)
    await complete_one(store)
    await harness.advance(9_000)
    assert await _add(store, _THROTTLE) == Added(first.id, AddOutcome.DEDUPLICATED)
    await harness.advance(1_001)
    assert (await _add(store, _THROTTLE)).outcome == AddOutcome.ADDED


async def test_a_throttle_is_not_extended_unasked(harness: Harness, store: Store) -> None:
    """A duplicate does not start the time again."""
    await _add(store, _THROTTLE)
    await harness.advance(6_000)
    await _add(store, _THROTTLE)
    await harness.advance(4_001)
    assert (await _add(store, _THROTTLE)).outcome == AddOutcome.ADDED


async def test_extend_starts_the_time_again(harness: Harness, store: Store) -> None:
    """With `extend`, each duplicate lets the time start again."""
    dedup = Dedup("subject", ttl_ms=10_000, extend=True)
    first = await _add(store, dedup)
    for _ in range(3):
        await harness.advance(9_000)
        assert await _add(store, dedup) == Added(first.id, AddOutcome.DEDUPLICATED)
    await harness.advance(10_001)
    assert (await _add(store, dedup)).outcome == AddOutcome.ADDED


async def test_a_throttle_answers_with_its_job_though_it_is_pruned(store: Store) -> None:
    """The answer names the job that stands for the subject, also after retention took it away."""
    spec = JobSpec(dedup=_THROTTLE, keep_completed=Keep(count=0))
    await add(store, NewJob(MAIL, "welcome", id="user-1", spec=spec))
    await complete_one(store)
    assert await _add(store, _THROTTLE) == Added("user-1", AddOutcome.DEDUPLICATED)


# ── replace and debounce ─────────────────────────────────────────────────────────────────


async def test_replace_takes_the_place_of_a_delayed_job(store: Store) -> None:
    """With `replace`, a job that is still delayed goes and the new one comes."""
    dedup = Dedup("subject", replace=True)
    old = await _add(store, dedup, data=b"1", delay_ms=5_000)
    new = await _add(store, dedup, data=b"2", delay_ms=5_000)
    assert new.outcome == AddOutcome.REPLACED
    assert new.id != old.id
    assert await store.counts(MAIL) == Counts(delayed=1)
    assert (await store.job(JobRef(MAIL, new.id))).data == b"2"


async def test_a_replaced_job_s_id_is_remembered(store: Store) -> None:
    """The id of a job that was replaced is not free again within a day of its add."""
    dedup = Dedup("subject", replace=True)
    await _add(store, dedup, delay_ms=5_000, own_id="first")
    assert (await _add(store, dedup, delay_ms=5_000, own_id="second")).outcome == AddOutcome.REPLACED
    assert await _add(store, dedup, delay_ms=5_000, own_id="first") == Added("first", AddOutcome.DUPLICATE)


async def test_replace_leaves_a_job_that_may_run(store: Store) -> None:
    """A job that is not delayed any more is not replaced."""
    dedup = Dedup("subject", replace=True)
    first = await _add(store, dedup, data=b"1")
    assert await _add(store, dedup, data=b"2") == Added(first.id, AddOutcome.DEDUPLICATED)
    assert (await store.job(JobRef(MAIL, first.id))).data == b"1"


async def test_debounce_runs_the_last_add_once(harness: Harness, store: Store) -> None:
    """With time, extend, replace and a delay, the last add runs, that long after it."""
    for data in (b"1", b"2", b"3"):
        await _add(store, _DEBOUNCE, data=data, delay_ms=10_000)
        await harness.advance(6_000)
    assert await store.counts(MAIL) == Counts(delayed=1)
    await harness.advance(4_001)
    assert (await claim_one(store)).job.data == b"3"


# ── keep the last ────────────────────────────────────────────────────────────────────────


async def test_keep_last_adds_the_newest_when_the_running_one_completes(store: Store) -> None:
    """While the job runs, the newest duplicate is kept; it is added when the job completes."""
    await _add(store, _KEEP_LAST, data=b"1")
    running = await claim_one(store)
    assert (await _add(store, _KEEP_LAST, data=b"2")).outcome == AddOutcome.KEPT_LAST
    assert (await _add(store, _KEEP_LAST, data=b"3")).outcome == AddOutcome.KEPT_LAST
    assert await store.counts(MAIL) == Counts(active=1)
    await settle_one(store, running.lease, Completed())
    assert await store.counts(MAIL) == Counts(waiting=1, completed=1)
    assert (await claim_one(store)).job.data == b"3"


async def test_keep_last_adds_the_newest_when_the_running_one_fails(store: Store) -> None:
    """The kept duplicate is also added when the running job fails for good, and not before."""
    await _add(store, _KEEP_LAST, data=b"1")
    running = await claim_one(store)
    assert (await _add(store, _KEEP_LAST, data=b"2")).outcome == AddOutcome.KEPT_LAST
    await settle_one(store, running.lease, Retry(BOOM))
    assert await store.counts(MAIL) == Counts(waiting=1)
    await run_one(store, Failed(BOOM))
    assert await store.counts(MAIL) == Counts(waiting=1, failed=1)
    assert (await claim_one(store)).job.data == b"2"


async def test_a_kept_job_stands_for_its_subject(store: Store) -> None:
    """The job that was kept and added is the one that later adds are measured against."""
    await _add(store, _KEEP_LAST)
    running = await claim_one(store)
    await _add(store, _KEEP_LAST)
    await settle_one(store, running.lease, Completed())
    again = await _add(store, _KEEP_LAST)
    assert again.outcome == AddOutcome.DEDUPLICATED
    assert await state_of(store, JobRef(MAIL, again.id)) == State.WAITING


async def test_keep_last_deduplicates_a_waiting_job(store: Store) -> None:
    """While the first one only waits, a duplicate is dropped: the first one will do."""
    first = await _add(store, _KEEP_LAST)
    assert await _add(store, _KEEP_LAST) == Added(first.id, AddOutcome.DEDUPLICATED)


# ── at once, and after a crash ───────────────────────────────────────────────────────────


async def test_a_subject_is_taken_after_a_crash(harness: Harness, store: Store) -> None:
    """A crash of the producer does not free a subject."""
    first = await _add(store, _SIMPLE)
    await harness.crash(store)
    survivor = await harness.open()
    assert await _add(survivor, _SIMPLE) == Added(first.id, AddOutcome.DEDUPLICATED)


async def test_race_one_subject_is_added_once(harness: Harness, store: Store) -> None:
    """Of two adds for the same subject at once, one adds and the other answers with its job."""
    other = await harness.open()
    for turn in range(ROUNDS):
        dedup = Dedup(f"subject-{turn}")
        first, second = await race(_add(store, dedup), _add(other, dedup), turn=turn)
        assert not isinstance(first, BullpenError)
        assert not isinstance(second, BullpenError)
        assert first.id == second.id
        assert {first.outcome, second.outcome} == {AddOutcome.ADDED, AddOutcome.DEDUPLICATED}
    assert await store.counts(MAIL) == Counts(waiting=ROUNDS)


async def test_race_a_duplicate_and_the_end_lose_no_job(harness: Harness, store: Store) -> None:
    """A duplicate that comes as the running job ends is kept and added, or added: never dropped."""
    other = await harness.open()
    for turn in range(ROUNDS):
        if turn == 0:
            await _add(store, _KEEP_LAST)
        running = await claim_one(store)
        _, late = await race(settle_one(store, running.lease, Completed()), _add(other, _KEEP_LAST), turn=turn)
        assert not isinstance(late, BullpenError)
        assert late.outcome in (AddOutcome.ADDED, AddOutcome.KEPT_LAST)
        assert (await store.counts(MAIL)).waiting == 1
