"""Promises of families that are steered: retried, cancelled, removed, late, handed back."""

import pytest

from bullpen.errors import JobMissing, WrongState
from bullpen.job.record import CrashLimits, JobRef
from bullpen.job.spec import JobSpec, NewJob, OnFailure
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Failed, Released
from bullpen.stores.base import Cancellation, ChildState, Counts, Store
from bullpen.testing.conformance.kin import PARENTS, PARTS, child_with, children_of, plant, states_of
from bullpen.testing.conformance.moves import (
    BOOM,
    MAIL,
    ROUNDS,
    add_one,
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


async def test_a_retried_child_is_pending_again(store: Store) -> None:
    """Whatever it was to its parent: done, ignored or failed."""
    policies = (None, OnFailure.IGNORE, OnFailure.FAIL_PARENT)
    root, (done, ignored, failed) = await plant(store, *map(child_with, policies))
    await complete_one(store)
    await fail_one(store)
    await fail_one(store)
    for child in (done, ignored, failed):
        await store.retry(child)
    assert await states_of(store, root) == [ChildState.PENDING] * 3


async def test_a_retried_parent_waits_for_pending_children(store: Store) -> None:
    """A parent that was cancelled while it waited goes back to waiting for them."""
    root, _ = await plant(store, child_with())
    await store.cancel(root, reason="")
    await store.retry(root)
    assert await state_of(store, root) == State.WAITING_CHILDREN
    await complete_one(store)
    assert await claim_ids(store, 5, PARENTS) == [root.id]


async def test_a_cancelled_parent_ends_and_its_children_go_on(store: Store) -> None:
    """Cancelling a job that waits for its children ends that job alone."""
    root, (child,) = await plant(store, child_with())
    assert await store.cancel(root, reason="enough") == Cancellation.CANCELLED
    assert await state_of(store, root) == State.FAILED
    assert await complete_one(store) == child
    assert await store.counts(PARENTS) == Counts(failed=1)


async def test_a_parent_that_is_too_late_ends(harness: Harness, store: Store) -> None:
    """A parent that waits for its children past its start-by time expires."""
    root, _ = await plant(store, child_with(), spec=JobSpec(start_by_ms=harness.clock.now_ms() + 1_000))
    await harness.advance(2_000)
    assert (await store.rescue([PARENTS], limits=CrashLimits())).failed == (root,)
    assert await state_of(store, root) == State.FAILED


async def test_a_removed_child_is_not_waited_for(store: Store) -> None:
    """Removing the last pending child releases the parent; a result that was there stays."""
    root, (first, second) = await plant(store, child_with(), child_with())
    await run_one(store, Completed(b"1"))
    await store.remove(second)
    assert await state_of(store, root) == State.WAITING
    await store.remove(first)
    assert [one.result for one in await children_of(store, root)] == [b"1"]


@pytest.mark.parametrize("how", ["drain", "clean", "obliterate"])
async def test_children_that_go_with_their_queue_are_not_waited_for(store: Store, how: str) -> None:
    """Drained, cleaned or obliterated: the parent in another queue is released."""
    root, _ = await plant(store, child_with(), child_with())
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
    leaf = child_with(delay_ms=60_000)
    job = NewJob(MAIL, "root", children=(leaf, NewJob(MAIL, "middle", children=(leaf,))))
    await store.add([job], request="r1")
    await store.obliterate(MAIL, force=False)
    assert list(await store.queues()) == []


async def test_a_removed_parent_takes_its_children_along(store: Store) -> None:
    """`remove` forgets the job, its children and theirs, in whatever state, in all queues."""
    middle = NewJob(PARTS, "middle", children=(child_with(), child_with()))
    root, (below, done) = await plant(store, middle, child_with(queue=PARTS))
    await complete_one(store, PARTS)
    await store.remove(root)
    for ref in (root, below, done):
        with pytest.raises(JobMissing):
            await store.job(ref)
    assert await store.counts(MAIL) == await store.counts(PARTS) == Counts()


async def test_a_parent_that_goes_otherwise_leaves_its_children(store: Store) -> None:
    """Only `remove` takes children along; those of a parent that was cleaned go on by themselves."""
    _, (child,) = await plant(store, child_with())
    assert await store.clean(PARENTS, State.WAITING_CHILDREN, older_than_ms=0, limit=10) == 1
    assert await complete_one(store) == child
    assert await store.counts(PARENTS) == Counts()


async def test_refuses_to_remove_a_family_that_is_at_work(store: Store) -> None:
    """WrongState if any of its descendants is active, and nothing goes."""
    middle = NewJob(PARTS, "middle", children=(child_with(), child_with()))
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
        root, (child,) = await plant(store, child_with(OnFailure.IGNORE))
        held = await claim_one(store)
        await race(settle_one(store, held.lease, Failed(BOOM)), other.remove(child), turn=turn)
        assert await claim_ids(store, 5, PARENTS) == [root.id]


async def test_a_parent_that_is_handed_back_is_runnable(store: Store) -> None:
    """A parent that ran and lost its worker waits for nothing again."""
    root, _ = await plant(store, child_with())
    await complete_one(store)
    await run_one(store, Released(), PARENTS)
    assert await claim_ids(store, 5, PARENTS) == [root.id]
