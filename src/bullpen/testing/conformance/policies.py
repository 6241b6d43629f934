"""Promises of failures in a tree: what the end of a child means to its parent."""

import pytest

from bullpen.errors import JobMissing, WrongState
from bullpen.job.record import CrashLimits, Failure, FailureKind, JobRef
from bullpen.job.spec import JobSpec, Keep, NewJob, OnFailure
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Failed, Released, Retry
from bullpen.stores.base import Cancellation, ChildState, Counts, SettleOutcome, Store
from bullpen.testing.conformance.kin import PARENTS, PARTS, children_of, plant, states_of
from bullpen.testing.conformance.moves import (
    BOOM,
    MAIL,
    ROUNDS,
    add_one,
    claim,
    claim_ids,
    claim_one,
    complete_one,
    fail_one,
    race,
    run_one,
    settle_one,
    state_of,
)
from bullpen.testing.harness import Harness


def _child(policy: OnFailure | None = None, queue: str = MAIL, **options: object) -> NewJob:
    return NewJob(queue, "child", spec=JobSpec(on_failure=policy, **options))  # type: ignore[arg-type]  # as a spec


async def _fail_as_doomed(store: Store, queue: str = PARENTS) -> Failure:
    """What a worker does with a doomed job: fail it without running it."""
    claimed = await claim_one(store, queue)
    assert claimed.job.doomed is not None
    await settle_one(store, claimed.lease, Failed(claimed.job.doomed))
    return claimed.job.doomed


# ── one child fails ──────────────────────────────────────────────────────────────────────


async def test_without_a_policy_the_parent_waits(store: Store) -> None:
    """The child may be retried; until then it is pending."""
    root, (child,) = await plant(store, _child())
    await fail_one(store)
    assert await state_of(store, root) == State.WAITING_CHILDREN
    assert await states_of(store, root) == [ChildState.PENDING]
    await store.retry(child)
    await complete_one(store)
    assert await state_of(store, root) == State.WAITING


async def test_fail_parent_fails_the_parent_unrun(store: Store) -> None:
    """The parent is runnable at once, and whoever claims it is told that it is to fail, and why."""
    root, _ = await plant(store, _child(OnFailure.FAIL_PARENT), _child())
    await fail_one(store)
    doomed = await _fail_as_doomed(store)
    assert doomed.kind == FailureKind.CHILD_FAILED
    assert doomed.message.startswith("child ")
    assert (await store.job(root)).doomed is None
    assert await states_of(store, root) == [ChildState.FAILED, ChildState.PENDING]


async def test_fail_parent_does_not_wait_for_the_delay(store: Store) -> None:
    """A parent that was to wait, for others or for its time, fails without that."""
    policy = OnFailure.FAIL_PARENT
    root, _ = await plant(store, _child(policy), spec=JobSpec(delay_ms=60_000))
    await fail_one(store)
    assert await state_of(store, root) == State.WAITING


async def test_fail_parent_goes_up_level_by_level(store: Store) -> None:
    """A parent that fails is a child that failed, if it has a parent itself."""
    policy = JobSpec(on_failure=OnFailure.FAIL_PARENT)
    leaf = NewJob(MAIL, "leaf", spec=policy)
    root, _ = await plant(store, NewJob(PARTS, "middle", spec=policy, children=(leaf,)))
    await fail_one(store)
    assert await state_of(store, root) == State.WAITING_CHILDREN
    await _fail_as_doomed(store, PARTS)
    await _fail_as_doomed(store)
    assert await state_of(store, root) == State.FAILED


async def test_fail_parent_fails_a_parent_that_runs(store: Store) -> None:
    """A parent that is active when the child fails goes on, and fails when it completes."""
    root, _ = await plant(store, _child(OnFailure.CONTINUE_PARENT), _child(OnFailure.FAIL_PARENT))
    await fail_one(store)
    held = await claim_one(store, PARENTS)
    await fail_one(store)
    assert await settle_one(store, held.lease, Completed()) == SettleOutcome.SETTLED
    failed = await store.job(root)
    assert failed.state == State.FAILED
    assert failed.failure is not None
    assert failed.failure.kind == FailureKind.CHILD_FAILED


async def test_continue_parent_runs_it_at_once(store: Store) -> None:
    """The parent runs though others are pending, and sees why the child failed."""
    root, (child, _) = await plant(store, _child(OnFailure.CONTINUE_PARENT), _child())
    await fail_one(store)
    assert await state_of(store, root) == State.WAITING
    failed = [one for one in await children_of(store, root) if one.state == ChildState.IGNORED]
    assert [(one.ref, one.reason) for one in failed] == [(child, "boom")]


async def test_ignore_counts_as_done(store: Store) -> None:
    """The parent runs when the others are done, and sees why the child failed."""
    root, (child, _) = await plant(store, _child(OnFailure.IGNORE), _child())
    await fail_one(store)
    assert await state_of(store, root) == State.WAITING_CHILDREN
    await complete_one(store)
    assert await state_of(store, root) == State.WAITING
    told = {one.ref: (one.state, one.reason) for one in await children_of(store, root)}
    assert told[child] == (ChildState.IGNORED, "boom")


async def test_remove_leaves_no_trace(store: Store) -> None:
    """The parent runs when the others are done, as if there had been no such child."""
    root, (_, other) = await plant(store, _child(OnFailure.REMOVE), _child())
    await fail_one(store)
    await complete_one(store)
    assert await state_of(store, root) == State.WAITING
    assert [one.ref for one in await children_of(store, root)] == [other]


@pytest.mark.parametrize("policy", list(OnFailure))
async def test_a_retried_attempt_is_no_failure(store: Store, policy: OnFailure) -> None:
    """Only the last attempt counts."""
    root, _ = await plant(store, _child(policy, attempts=2))
    await run_one(store, Retry(BOOM))
    assert await states_of(store, root) == [ChildState.PENDING]
    await run_one(store, Completed(b"1"))
    assert await states_of(store, root) == [ChildState.COMPLETED]
    assert await state_of(store, root) == State.WAITING


async def test_a_cancelled_or_expired_child_has_failed(harness: Harness, store: Store) -> None:
    """Every final failure counts, however it came."""
    late = _child(OnFailure.IGNORE, start_by_ms=harness.clock.now_ms() + 1_000)
    root, (child, _) = await plant(store, _child(OnFailure.IGNORE), late)
    await store.cancel(child, reason="enough")
    await harness.advance(2_000)
    assert await claim(store, 5) == ()
    assert await states_of(store, root) == [ChildState.IGNORED] * 2
    assert await state_of(store, root) == State.WAITING


async def test_a_failed_child_that_is_not_kept_releases_its_parent(store: Store) -> None:
    """Nobody could retry it, so nobody waits for it."""
    root, _ = await plant(store, _child(keep_failed=Keep(count=0)))
    await fail_one(store)
    assert await state_of(store, root) == State.WAITING
    assert await children_of(store, root) == []


async def test_a_failed_child_that_retention_removes_releases_its_parent(store: Store) -> None:
    """The same when it goes later, since newer ones failed."""
    root, _ = await plant(store, _child(keep_failed=Keep(count=1)))
    await fail_one(store)
    assert await state_of(store, root) == State.WAITING_CHILDREN
    await add_one(store, spec=JobSpec(keep_failed=Keep(count=1)))
    await fail_one(store)
    assert await state_of(store, root) == State.WAITING


# ── completing with pending children ─────────────────────────────────────────────────────


async def test_refuses_to_complete_with_pending_children(store: Store) -> None:
    """The job waits for them and runs again; no attempt is used and nothing that was to follow is added."""
    root, _ = await plant(store, _child(OnFailure.CONTINUE_PARENT), _child())
    await fail_one(store)
    held = await claim_one(store, PARENTS)
    verdict = Completed(then=(NewJob("next", "n"),))
    assert await settle_one(store, held.lease, verdict) == SettleOutcome.PENDING_CHILDREN
    waiting = await store.job(root)
    assert (waiting.state, waiting.attempts_made, waiting.result) == (State.WAITING_CHILDREN, 0, None)
    assert "next" not in await store.queues()
    await complete_one(store)
    await run_one(store, Completed(b"1"), PARENTS)
    assert (await store.job(root)).result == b"1"


# ── steering families ────────────────────────────────────────────────────────────────────


async def test_a_retried_child_is_pending_again(store: Store) -> None:
    """Whatever it was to its parent: done, ignored or failed."""
    policies = (None, OnFailure.IGNORE, OnFailure.FAIL_PARENT)
    root, (done, ignored, failed) = await plant(store, *map(_child, policies))
    await complete_one(store)
    await fail_one(store)
    await fail_one(store)
    for child in (done, ignored, failed):
        await store.retry(child)
    assert await states_of(store, root) == [ChildState.PENDING] * 3


async def test_a_retried_parent_waits_for_pending_children(store: Store) -> None:
    """A parent that was cancelled while it waited goes back to waiting for them."""
    root, _ = await plant(store, _child())
    await store.cancel(root, reason="")
    await store.retry(root)
    assert await state_of(store, root) == State.WAITING_CHILDREN
    await complete_one(store)
    assert await claim_ids(store, 5, PARENTS) == [root.id]


async def test_a_cancelled_parent_ends_and_its_children_go_on(store: Store) -> None:
    """Cancelling a job that waits for its children ends that job alone."""
    root, (child,) = await plant(store, _child())
    assert await store.cancel(root, reason="enough") == Cancellation.CANCELLED
    assert await state_of(store, root) == State.FAILED
    assert await complete_one(store) == child
    assert await store.counts(PARENTS) == Counts(failed=1)


async def test_a_parent_that_is_too_late_ends(harness: Harness, store: Store) -> None:
    """A parent that waits for its children past its start-by time expires."""
    root, _ = await plant(store, _child(), spec=JobSpec(start_by_ms=harness.clock.now_ms() + 1_000))
    await harness.advance(2_000)
    assert (await store.rescue([PARENTS], limits=CrashLimits())).failed == (root,)
    assert await state_of(store, root) == State.FAILED


async def test_a_removed_child_is_not_waited_for(store: Store) -> None:
    """Removing the last pending child releases the parent; a result that was there stays."""
    root, (first, second) = await plant(store, _child(), _child())
    await run_one(store, Completed(b"1"))
    await store.remove(second)
    assert await state_of(store, root) == State.WAITING
    await store.remove(first)
    assert [one.result for one in await children_of(store, root)] == [b"1"]


@pytest.mark.parametrize("how", ["drain", "clean", "obliterate"])
async def test_children_that_go_with_their_queue_are_not_waited_for(store: Store, how: str) -> None:
    """Drained, cleaned or obliterated: the parent in another queue is released."""
    root, _ = await plant(store, _child(), _child())
    match how:
        case "drain":
            await store.drain(MAIL, delayed=False)
        case "clean":
            await store.clean(MAIL, State.WAITING, older_than_ms=0, limit=10)
        case _:
            await store.obliterate(MAIL, force=False)
    assert await state_of(store, root) == State.WAITING
    assert await children_of(store, root) == []


async def test_a_queue_is_obliterated_with_whole_families(store: Store) -> None:
    """Parents and children of one queue go together, and no one is left behind."""
    leaf = _child(delay_ms=60_000)
    job = NewJob(MAIL, "root", children=(leaf, NewJob(MAIL, "middle", children=(leaf,))))
    await store.add([job], request="r1")
    await store.obliterate(MAIL, force=False)
    assert list(await store.queues()) == []


async def test_a_removed_parent_takes_its_children_along(store: Store) -> None:
    """`remove` forgets the job, its children and theirs, in whatever state, in all queues."""
    middle = NewJob(PARTS, "middle", children=(_child(), _child()))
    root, (below, done) = await plant(store, middle, _child(queue=PARTS))
    await complete_one(store, PARTS)
    await store.remove(root)
    for ref in (root, below, done):
        with pytest.raises(JobMissing):
            await store.job(ref)
    assert await store.counts(MAIL) == await store.counts(PARTS) == Counts()


async def test_a_parent_that_goes_otherwise_leaves_its_children(store: Store) -> None:
    """Only `remove` takes children along; those of a parent that was cleaned go on by themselves."""
    _, (child,) = await plant(store, _child())
    assert await store.clean(PARENTS, State.WAITING_CHILDREN, older_than_ms=0, limit=10) == 1
    assert await complete_one(store) == child
    assert await store.counts(PARENTS) == Counts()


async def test_refuses_to_remove_a_family_that_is_at_work(store: Store) -> None:
    """WrongState if any of its descendants is active, and nothing goes."""
    middle = NewJob(PARTS, "middle", children=(_child(), _child()))
    root, _ = await plant(store, middle)
    await claim_one(store)
    with pytest.raises(WrongState):
        await store.remove(root)
    assert await store.counts(MAIL) == Counts(active=1, waiting=1)
    assert await state_of(store, root) == State.WAITING_CHILDREN


async def test_another_job_with_the_id_of_a_child_is_not_one(store: Store) -> None:
    """A child that is gone and whose id was taken again is not removed with the parent."""
    root, (child,) = await plant(store, NewJob(MAIL, "child", id="x"))
    await complete_one(store)
    await store.remove(child)
    await add_one(store, own_id="x")
    await store.remove(root)
    assert await state_of(store, JobRef(MAIL, "x")) == State.WAITING


async def test_race_a_child_that_ends_and_is_removed_releases_once(harness: Harness, store: Store) -> None:
    """Whoever comes first, the parent is runnable once and has the result or not."""
    other = await harness.open()
    for turn in range(ROUNDS):
        root, (child,) = await plant(store, _child(OnFailure.IGNORE))
        held = await claim_one(store)
        await race(settle_one(store, held.lease, Failed(BOOM)), other.remove(child), turn=turn)
        assert await claim_ids(store, 5, PARENTS) == [root.id]


async def test_a_parent_that_is_handed_back_is_runnable(store: Store) -> None:
    """A parent that ran and lost its worker waits for nothing again."""
    root, _ = await plant(store, _child())
    await complete_one(store)
    await run_one(store, Released(), PARENTS)
    assert await claim_ids(store, 5, PARENTS) == [root.id]
