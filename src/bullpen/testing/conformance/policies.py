"""Promises of failures in a tree: what the end of a child means to its parent."""

import pytest

from bullpen.job.limits import QueueLimits
from bullpen.job.record import Failure, FailureKind
from bullpen.job.spec import JobSpec, Keep, NewJob, OnFailure
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Failed, Retry
from bullpen.stores.base import ChildState, SettleOutcome, Store
from bullpen.testing.conformance.kin import PARENTS, PARTS, child_with, children_of, plant, states_of
from bullpen.testing.conformance.moves import (
    BOOM,
    MAIL,
    add_one,
    claim,
    claim_one,
    complete_one,
    fail_one,
    run_one,
    settle_one,
    state_of,
)
from bullpen.testing.harness import Harness


async def _fail_as_doomed(store: Store, queue: str = PARENTS) -> Failure:
    """What a worker does with a doomed job: fail it without running it."""
    claimed = await claim_one(store, queue)
    assert claimed.job.doomed is not None
    await settle_one(store, claimed.lease, Failed(claimed.job.doomed))
    return claimed.job.doomed


# ── one child fails ──────────────────────────────────────────────────────────────────────


async def test_without_a_policy_the_parent_waits(store: Store) -> None:
    """The child may be retried; until then it is pending."""
    root, (child,) = await plant(store, child_with())
    await fail_one(store)
    assert await state_of(store, root) == State.WAITING_CHILDREN
    assert await states_of(store, root) == [ChildState.PENDING]
    await store.retry(child)
    await complete_one(store)
    assert await state_of(store, root) == State.WAITING


async def test_fail_parent_fails_the_parent_unrun(store: Store) -> None:
    """The parent is runnable at once, and whoever claims it is told that it is to fail, and why."""
    root, _ = await plant(store, child_with(OnFailure.FAIL_PARENT), child_with())
    await fail_one(store)
    doomed = await _fail_as_doomed(store)
    assert doomed.kind == FailureKind.CHILD_FAILED
    assert doomed.message.startswith("child ")
    assert (await store.job(root)).doomed is None
    assert await states_of(store, root) == [ChildState.FAILED, ChildState.PENDING]


async def test_a_claim_that_only_fails_counts_as_a_start(store: Store) -> None:
    """A queue's rate counts what workers take, also a job that they fail without running it."""
    await plant(store, child_with(OnFailure.FAIL_PARENT))
    await fail_one(store)
    await store.set_limits(PARENTS, QueueLimits(rate_max=1, rate_ms=60_000))
    await add_one(store, PARENTS)
    await _fail_as_doomed(store)
    assert await claim(store, 1, PARENTS) == ()
    assert (await store.limits(PARENTS)).closed_until_ms is not None


@pytest.mark.parametrize("tenant", [None, "alpha", "beta"])
async def test_fail_parent_names_no_child_of_another_tenant(store: Store, tenant: str | None) -> None:
    """The reason names the child if it has the parent's tenant: all who see the parent read it."""
    root, (child,) = await plant(
        store, child_with(OnFailure.FAIL_PARENT, tenant=tenant), spec=JobSpec(tenant="alpha")
    )  # fmt: skip
    await fail_one(store)
    doomed = await _fail_as_doomed(store)
    failed = (await store.job(root)).failure
    assert failed is not None
    for failure in (doomed, failed):
        assert failure.kind == FailureKind.CHILD_FAILED
        if tenant == "alpha":
            assert child.id in failure.message
        else:
            assert failure.message == "child failed"


async def test_fail_parent_does_not_wait_for_the_delay(store: Store) -> None:
    """A parent that was to wait, for others or for its time, fails without that."""
    policy = OnFailure.FAIL_PARENT
    root, _ = await plant(store, child_with(policy), spec=JobSpec(delay_ms=60_000))
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
    root, _ = await plant(store, child_with(OnFailure.CONTINUE_PARENT), child_with(OnFailure.FAIL_PARENT))
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
    root, (child, _) = await plant(store, child_with(OnFailure.CONTINUE_PARENT), child_with())
    await fail_one(store)
    assert await state_of(store, root) == State.WAITING
    failed = [one for one in await children_of(store, root) if one.state == ChildState.IGNORED]
    assert [(one.ref, one.reason) for one in failed] == [(child, "boom")]


async def test_ignore_counts_as_done(store: Store) -> None:
    """The parent runs when the others are done, and sees why the child failed."""
    root, (child, _) = await plant(store, child_with(OnFailure.IGNORE), child_with())
    await fail_one(store)
    assert await state_of(store, root) == State.WAITING_CHILDREN
    await complete_one(store)
    assert await state_of(store, root) == State.WAITING
    told = {one.ref: (one.state, one.reason) for one in await children_of(store, root)}
    assert told[child] == (ChildState.IGNORED, "boom")


async def test_remove_leaves_no_trace(store: Store) -> None:
    """The parent runs when the others are done, as if there had been no such child."""
    root, (_, other) = await plant(store, child_with(OnFailure.REMOVE), child_with())
    await fail_one(store)
    await complete_one(store)
    assert await state_of(store, root) == State.WAITING
    assert [one.ref for one in await children_of(store, root)] == [other]


@pytest.mark.parametrize("policy", list(OnFailure))
async def test_a_retried_attempt_is_no_failure(store: Store, policy: OnFailure) -> None:
    """Only the last attempt counts."""
    root, _ = await plant(store, child_with(policy, attempts=2))
    await run_one(store, Retry(BOOM))
    assert await states_of(store, root) == [ChildState.PENDING]
    await run_one(store, Completed(b"1"))
    assert await states_of(store, root) == [ChildState.COMPLETED]
    assert await state_of(store, root) == State.WAITING


async def test_a_cancelled_or_expired_child_has_failed(harness: Harness, store: Store) -> None:
    """Every final failure counts, however it came."""
    late = child_with(OnFailure.IGNORE, start_by_ms=harness.clock.now_ms() + 1_000)
    root, (child, _) = await plant(store, child_with(OnFailure.IGNORE), late)
    await store.cancel(child, reason="enough")
    await harness.advance(2_000)
    assert await claim(store, 5) == ()
    assert await states_of(store, root) == [ChildState.IGNORED] * 2
    assert await state_of(store, root) == State.WAITING


async def test_a_failed_child_that_is_not_kept_releases_its_parent(store: Store) -> None:
    """Nobody could retry it, so nobody waits for it."""
    root, _ = await plant(store, child_with(keep_failed=Keep(count=0)))
    await fail_one(store)
    assert await state_of(store, root) == State.WAITING
    assert await children_of(store, root) == []


async def test_a_failed_child_that_retention_removes_releases_its_parent(store: Store) -> None:
    """The same when it goes later, since newer ones failed."""
    root, _ = await plant(store, child_with(keep_failed=Keep(count=1)))
    await fail_one(store)
    assert await state_of(store, root) == State.WAITING_CHILDREN
    await add_one(store, spec=JobSpec(keep_failed=Keep(count=1)))
    await fail_one(store)
    assert await state_of(store, root) == State.WAITING


# ── completing with pending children ─────────────────────────────────────────────────────


async def test_refuses_to_complete_with_pending_children(store: Store) -> None:
    """The job waits for them and runs again; no attempt is used and nothing that was to follow is added."""
    root, _ = await plant(store, child_with(OnFailure.CONTINUE_PARENT), child_with())
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
