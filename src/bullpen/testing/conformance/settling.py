"""Promises of `settle`: each verdict carried out, fenced by the lease."""

from bullpen.errors import BullpenError
from bullpen.job.record import CrashKind, CrashLimits, Failure, FailureKind
from bullpen.job.spec import JobSpec, NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Cancelled, Completed, Failed, Postponed, Released, Retry, Settlement, Verdict
from bullpen.stores.base import Counts, SettleOutcome, Store
from bullpen.testing.conformance.moves import (
    BOOM,
    LEASE_MS,
    MAIL,
    ROUNDS,
    add_many,
    add_one,
    claim,
    claim_one,
    end_of_log,
    events_since,
    fresh_request,
    race,
    run_one,
    settle_one,
    state_of,
)
from bullpen.testing.harness import Harness

_VERDICTS: tuple[Verdict, ...] = (
    Completed(b"1", then=(NewJob(MAIL, "next"),)),
    Retry(BOOM),
    Retry(BOOM, 1_000),
    Failed(BOOM),
    Cancelled("enough"),
    Postponed(1_000, "later"),
    Released(CrashKind.DEPLOY),
)


async def test_completed_keeps_the_result(harness: Harness, store: Store) -> None:
    """A completed job says what came of it, when it ended, and that one attempt was made."""
    await add_one(store)
    before_ms = harness.clock.now_ms()
    job = await store.job(await run_one(store, Completed(b'{"sent":true}')))
    assert (job.state, job.result, job.attempts_made) == (State.COMPLETED, b'{"sent":true}', 1)
    assert job.finished_ms is not None
    assert before_ms <= job.finished_ms <= harness.clock.now_ms()


async def test_completion_brings_the_jobs_that_follow(store: Store) -> None:
    """What `then` names is added in the same step as the completion."""
    await add_one(store)
    then = (NewJob(MAIL, "next", spec=JobSpec(priority=2)), NewJob(MAIL, "later", spec=JobSpec(delay_ms=1_000)))
    await run_one(store, Completed(then=then))
    assert await store.counts(MAIL) == Counts(completed=1, prioritized=1, delayed=1)


async def test_a_failed_attempt_that_is_retried_waits_again(store: Store) -> None:
    """Retry counts the attempt and keeps its failure and stack; the job may run at once."""
    await add_one(store, spec=JobSpec(attempts=3))
    job = await store.job(await run_one(store, Retry(BOOM)))
    assert (job.state, job.attempts_made, job.finished_ms) == (State.WAITING, 1, None)
    assert job.failure is not None
    assert (job.failure.message, job.failure.type, job.failure.kind) == ("boom", "ValueError", FailureKind.ERROR)
    assert job.stacks == ("Traceback: boom",)


async def test_a_retry_with_a_delay_is_delayed(harness: Harness, store: Store) -> None:
    """Retry with a delay counts the attempt; the job is due that long from now."""
    await add_one(store, spec=JobSpec(attempts=3))
    before_ms = harness.clock.now_ms()
    job = await store.job(await run_one(store, Retry(BOOM, 5_000)))
    assert (job.state, job.attempts_made) == (State.DELAYED, 1)
    assert job.run_at_ms is not None
    assert before_ms + 5_000 <= job.run_at_ms <= harness.clock.now_ms() + 5_000
    await harness.advance(5_001)
    assert (await claim_one(store)).job.attempts_made == 1


async def test_only_the_last_stacks_are_kept(store: Store) -> None:
    """As many stack traces stay as the job's spec says, the newest of them."""
    await add_one(store, spec=JobSpec(attempts=9, keep_stacks=2))
    for n in range(3):
        await run_one(store, Retry(Failure(f"boom {n}", stack=f"stack {n}")))
    job = await store.job(await run_one(store, Failed(Failure("boom 3", stack="stack 3"))))
    assert job.stacks == ("stack 2", "stack 3")
    assert job.failure is not None
    assert job.failure.message == "boom 3"


async def test_failed_ends_the_job(store: Store) -> None:
    """The last failure is kept with its kind, and the job is finished."""
    await add_one(store, spec=JobSpec(attempts=3))
    job = await store.job(await run_one(store, Failed(Failure("too slow", FailureKind.TIMEOUT))))
    assert (job.state, job.attempts_made) == (State.FAILED, 1)
    assert job.failure is not None
    assert (job.failure.message, job.failure.kind) == ("too slow", FailureKind.TIMEOUT)
    assert job.finished_ms is not None


async def test_words_that_are_no_unicode_are_kept_escaped(store: Store) -> None:
    """A message may quote a file name that is no UTF-8: the attempt is settled all the same."""
    await add_one(store, spec=JobSpec(attempts=9))
    job = await store.job(await run_one(store, Retry(Failure("no file \udcff", stack="line \udcff"))))
    assert job.failure is not None
    assert (job.failure.message, job.stacks) == ("no file \\udcff", ("line \\udcff",))
    job = await store.job(await run_one(store, Cancelled("no file \udcff")))
    assert job.failure is not None
    assert "no file \\udcff" in job.failure.message
    await add_one(store)
    assert (await store.job(await run_one(store, Postponed(5_000, "no file \udcff")))).note == "no file \\udcff"


async def test_cancelled_ends_the_job_as_cancelled(store: Store) -> None:
    """Cancelled ends in the failed state, of kind cancelled, with the reason."""
    await add_one(store)
    job = await store.job(await run_one(store, Cancelled("too costly")))
    assert job.state == State.FAILED
    assert job.failure is not None
    assert job.failure.kind == FailureKind.CANCELLED
    assert "too costly" in job.failure.message


async def test_postponed_uses_no_attempt(harness: Harness, store: Store) -> None:
    """Postponed delays the job with its note, and counts neither an attempt nor a failure."""
    await add_one(store)
    job = await store.job(await run_one(store, Postponed(5_000, "quota")))
    assert (job.state, job.attempts_made, job.note, job.failure) == (State.DELAYED, 0, "quota", None)
    await harness.advance(5_001)
    claimed = await claim_one(store)
    assert (claimed.job.attempts_made, claimed.job.note) == (0, None)


async def test_released_uses_no_attempt(store: Store) -> None:
    """Released hands the job back at once, and records the crash apart from attempts and stalls."""
    await add_one(store)
    job = await store.job(await run_one(store, Released(CrashKind.DEPLOY)))
    assert (job.state, job.attempts_made, job.crashes) == (State.WAITING, 0, {CrashKind.DEPLOY: 1})
    assert job.stalls == 0


async def test_released_without_a_crash_leaves_no_mark(store: Store) -> None:
    """A job that is handed back for no fault of anyone has no crash."""
    await add_one(store)
    assert (await store.job(await run_one(store, Released()))).crashes == {}


async def test_released_with_limits_fails_in_the_end(store: Store) -> None:
    """With limits, a job that crashed too often fails instead of running again; a deploy never counts."""
    await add_one(store)
    limits = CrashLimits(out_of_memory=1)
    for crash in (CrashKind.DEPLOY, CrashKind.DEPLOY, CrashKind.DEPLOY, CrashKind.OUT_OF_MEMORY):
        assert (await store.job(await run_one(store, Released(crash, limits)))).state == State.WAITING
    job = await store.job(await run_one(store, Released(CrashKind.OUT_OF_MEMORY, limits)))
    assert (job.state, job.attempts_made) == (State.FAILED, 0)
    assert job.failure is not None
    assert job.failure.kind == FailureKind.STALLED


async def test_a_batch_is_settled_one_by_one(store: Store) -> None:
    """Each settlement of a batch has its own verdict, and its answer stands in its place."""
    await add_many(store, len(_VERDICTS))
    held = await claim(store, len(_VERDICTS))
    batch = [Settlement(one.lease, verdict) for one, verdict in zip(held, _VERDICTS, strict=True)]
    assert list(await store.settle(batch, request=fresh_request())) == [SettleOutcome.SETTLED] * len(batch)
    # `then` adds the third waiting job, beside the retried and the released one.
    assert await store.counts(MAIL) == Counts(waiting=3, delayed=2, completed=1, failed=2)


async def test_a_settled_job_has_no_holder(store: Store) -> None:
    """Settling ends the lease, whatever the verdict: it cannot be used again."""
    for verdict in _VERDICTS:
        await add_one(store, "calls")
        lease = (await claim_one(store, "calls")).lease
        assert await settle_one(store, lease, verdict) == SettleOutcome.SETTLED
        assert await settle_one(store, lease, Completed()) == SettleOutcome.LEASE_LOST
        await store.drain("calls", delayed=True)


async def test_refuses_a_lost_lease_and_changes_nothing(harness: Harness, store: Store) -> None:
    """A worker that stalled past its lease cannot overwrite its successor's work, whatever it says."""
    ref = await add_one(store)
    lost = (await claim_one(store)).lease
    await harness.advance(LEASE_MS + 1)
    await store.rescue([MAIL], limits=CrashLimits())
    await claim_one(store, worker="worker-2")
    job, counts, cursor = await store.job(ref), await store.counts(MAIL), await end_of_log(store)
    for verdict in _VERDICTS:
        assert await settle_one(store, lost, verdict) == SettleOutcome.LEASE_LOST
    assert (await store.job(ref), await store.counts(MAIL)) == (job, counts)
    assert await events_since(store, cursor) == []


async def test_refuses_a_lease_of_a_finished_job_without_an_event(store: Store) -> None:
    """A settlement that comes after the end is reported as lost and leaves no trace in the log."""
    await add_one(store)
    lease = (await claim_one(store)).lease
    await settle_one(store, lease, Completed())
    cursor = await end_of_log(store)
    assert await settle_one(store, lease, Failed(BOOM)) == SettleOutcome.LEASE_LOST
    assert await events_since(store, cursor) == []


async def test_refuses_one_and_settles_the_others(store: Store) -> None:
    """A settlement that is refused does not hinder the rest of its batch."""
    await add_many(store, 3)
    first, lost, last = await claim(store, 3)
    await settle_one(store, lost.lease, Completed())
    batch = [Settlement(one.lease, Failed(BOOM)) for one in (first, lost, last)]
    outcomes = await store.settle(batch, request=fresh_request())
    assert list(outcomes) == [SettleOutcome.SETTLED, SettleOutcome.LEASE_LOST, SettleOutcome.SETTLED]
    assert await store.counts(MAIL) == Counts(completed=1, failed=2)


async def test_refuses_the_second_verdict_on_one_lease(store: Store) -> None:
    """Of two verdicts on one lease in one batch, the first is carried out."""
    verdicts: tuple[tuple[Verdict, Verdict], ...] = ((Completed(), Failed(BOOM)), (Failed(BOOM), Completed()))
    for (first, second), state in zip(verdicts, (State.COMPLETED, State.FAILED), strict=True):
        await add_one(store)
        lease = (await claim_one(store)).lease
        outcomes = await store.settle([Settlement(lease, first), Settlement(lease, second)], request=fresh_request())
        assert list(outcomes) == [SettleOutcome.SETTLED, SettleOutcome.LEASE_LOST]
        assert await state_of(store, lease.ref) == state


async def test_refuses_a_stale_lease_beside_the_current_one(harness: Harness, store: Store) -> None:
    """A worker that settles an old and a new activation of one job in one batch loses only the old."""
    await add_one(store)
    stale = (await claim_one(store)).lease
    await harness.advance(LEASE_MS + 1)
    await store.rescue([MAIL], limits=CrashLimits())
    current = (await claim_one(store)).lease
    batch = [Settlement(stale, Completed(b"1")), Settlement(current, Completed(b"2"))]
    outcomes = await store.settle(batch, request=fresh_request())
    assert list(outcomes) == [SettleOutcome.LEASE_LOST, SettleOutcome.SETTLED]
    assert (await store.job(current.ref)).result == b"2"


async def test_race_one_lease_is_settled_once(harness: Harness, store: Store) -> None:
    """Of two verdicts on one lease at once, one is carried out and the other is refused."""
    other = await harness.open()
    then = (NewJob(MAIL, "next", spec=JobSpec(delay_ms=60_000)),)
    completed = 0
    for turn in range(ROUNDS):
        await add_one(store)
        lease = (await claim_one(store)).lease
        first, second = await race(
            settle_one(store, lease, Completed(then=then)), settle_one(other, lease, Failed(BOOM)), turn=turn
        )
        assert not isinstance(first, BullpenError)
        assert not isinstance(second, BullpenError)
        assert {first, second} == {SettleOutcome.SETTLED, SettleOutcome.LEASE_LOST}
        completed += first == SettleOutcome.SETTLED
    assert await store.counts(MAIL) == Counts(completed=completed, delayed=completed, failed=ROUNDS - completed)
