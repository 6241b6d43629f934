"""Promises of children that a running job adds, of jobs that wait for them, and of telling them all."""

import pytest

from bullpen.errors import BadOption, JobMissing, LeaseLost, WrongState
from bullpen.job.events import EventKind
from bullpen.job.record import ClaimedJob, FailureKind, JobRef
from bullpen.job.spec import Dedup, JobSpec, NewJob, OnFailure
from bullpen.job.state import State
from bullpen.job.verdicts import AwaitChildren, Completed, Failed
from bullpen.stores.base import AddOutcome, ChildState, Counts, SettleOutcome, Store
from bullpen.testing.conformance.kin import PARENTS, PARTS, child_refs, children_of, plant, states_of
from bullpen.testing.conformance.moves import (
    BOOM,
    MAIL,
    ROUNDS,
    add_many,
    add_one,
    claim_ids,
    claim_one,
    complete_one,
    crash_during,
    end_of_log,
    events_since,
    fail_one,
    fresh_request,
    race,
    run_one,
    settle_one,
    state_of,
)
from bullpen.testing.harness import Harness


async def _running(store: Store) -> ClaimedJob:
    await add_one(store, PARENTS)
    return await claim_one(store, PARENTS)


async def _grow(store: Store, held: ClaimedJob, *jobs: NewJob) -> list[JobRef]:
    added = await store.add_children(held.lease, jobs, request=fresh_request())
    return [JobRef(job.queue, one.id) for job, one in zip(jobs, added, strict=True)]


async def test_a_running_job_adds_children(store: Store) -> None:
    """It goes on running, and its children can run beside it."""
    held = await _running(store)
    (child,) = await _grow(store, held, NewJob(MAIL, "a"))
    assert await state_of(store, held.lease.ref) == State.ACTIVE
    assert (await store.job(child)).parent == held.lease.ref
    assert await states_of(store, held.lease.ref) == [ChildState.PENDING]
    await run_one(store, Completed(b"1"))
    assert await states_of(store, held.lease.ref) == [ChildState.COMPLETED]
    assert await settle_one(store, held.lease, Completed()) == SettleOutcome.SETTLED


async def test_children_of_a_running_job_may_be_trees(store: Store) -> None:
    """They are added as `add` adds them, in one step, also across queues."""
    held = await _running(store)
    await _grow(store, held, NewJob(PARTS, "middle", children=(NewJob(MAIL, "leaf"),)), NewJob(MAIL, "leaf"))
    assert await store.counts(PARTS) == Counts(waiting_children=1)
    assert await store.counts(MAIL) == Counts(waiting=2)


async def test_a_job_that_awaits_its_children_leaves_its_slot(store: Store) -> None:
    """It is in waiting-children without a lease, no attempt is used, and it runs again after them."""
    held = await _running(store)
    await _grow(store, held, NewJob(MAIL, "a"))
    cursor = await end_of_log(store, PARENTS)
    assert await settle_one(store, held.lease, AwaitChildren()) == SettleOutcome.SETTLED
    waiting = await store.job(held.lease.ref)
    assert (waiting.state, waiting.attempts_made) == (State.WAITING_CHILDREN, 0)
    await complete_one(store)
    again = await claim_one(store, PARENTS)
    assert (again.job.id, again.job.epoch, again.job.attempts_made) == (held.job.id, held.job.epoch + 1, 0)
    told = [(event.kind, event.prev) for event in await events_since(store, cursor, PARENTS)]
    assert told[:2] == [
        (EventKind.WAITING_CHILDREN, State.ACTIVE),
        (EventKind.WAITING, State.WAITING_CHILDREN),
    ]


async def test_a_job_whose_children_are_done_goes_on_at_once(store: Store) -> None:
    """Awaiting what is done already, or nothing, puts it back to the head of its line."""
    held = await _running(store)
    await add_many(store, 2, PARENTS)
    assert await settle_one(store, held.lease, AwaitChildren()) == SettleOutcome.SETTLED
    again = await claim_one(store, PARENTS)
    assert (again.job.id, again.job.attempts_made) == (held.job.id, 0)


async def test_a_child_that_is_there_already_stays(store: Store) -> None:
    """A job that runs again may add its children again, by their ids: they are added once."""
    held = await _running(store)
    job = NewJob(MAIL, "a", id="a")
    await _grow(store, held, job)
    await run_one(store, Completed(b"1"))
    added = await store.add_children(held.lease, [job], request=fresh_request())
    assert [one.outcome for one in added] == [AddOutcome.DUPLICATE]
    assert [one.result for one in await children_of(store, held.lease.ref)] == [b"1"]


async def test_a_job_that_fails_with_its_child_does_not_wait(store: Store) -> None:
    """A job whose child failed with it, while it ran, fails instead of waiting for others."""
    held = await _running(store)
    spec = JobSpec(on_failure=OnFailure.FAIL_PARENT)
    await _grow(store, held, NewJob(MAIL, "a", spec=spec), NewJob(MAIL, "b"))
    await fail_one(store)
    assert await settle_one(store, held.lease, AwaitChildren()) == SettleOutcome.SETTLED
    failed = await store.job(held.lease.ref)
    assert failed.state == State.FAILED
    assert failed.failure is not None
    assert failed.failure.kind == FailureKind.CHILD_FAILED


async def test_a_job_that_was_asked_to_stop_does_not_wait(store: Store) -> None:
    """It never runs again, so it ends as cancelled."""
    held = await _running(store)
    await _grow(store, held, NewJob(MAIL, "a"))
    await store.cancel(held.lease.ref, reason="enough")
    assert await settle_one(store, held.lease, AwaitChildren()) == SettleOutcome.SETTLED
    assert await state_of(store, held.lease.ref) == State.FAILED


async def test_the_same_request_adds_children_once(store: Store) -> None:
    """A lost answer is asked for again, also once the lease is gone."""
    held = await _running(store)
    first = await store.add_children(held.lease, [NewJob(MAIL, "a")], request="r1")
    assert list(await store.add_children(held.lease, [NewJob(MAIL, "a")], request="r1")) == list(first)
    await settle_one(store, held.lease, AwaitChildren())
    assert list(await store.add_children(held.lease, [NewJob(MAIL, "a")], request="r1")) == list(first)
    assert await store.counts(MAIL) == Counts(waiting=1)


async def test_refuses_children_under_a_lost_lease(store: Store) -> None:
    """LeaseLost for whoever does not hold the job, and nothing is added."""
    held = await _running(store)
    await settle_one(store, held.lease, Failed(BOOM))
    with pytest.raises(LeaseLost):
        await _grow(store, held, NewJob(MAIL, "a"))
    assert list(await store.queues()) == [PARENTS]


async def test_refuses_an_ancestor_as_a_child(store: Store) -> None:
    """A job cannot wait for one that waits for it, nor for itself: WrongState."""
    top = NewJob(MAIL, "top", id="top", children=(NewJob(PARENTS, "middle", id="middle"),))
    await store.add([top], request="r1")
    held = await claim_one(store, PARENTS)
    for wrong in (NewJob(MAIL, "top", id="top"), NewJob(PARENTS, "middle", id="middle")):
        with pytest.raises(WrongState):
            await _grow(store, held, wrong)
        with pytest.raises(WrongState):
            await _grow(store, held, NewJob(MAIL, "between", children=(wrong,)))
    assert await children_of(store, held.lease.ref) == []


async def test_refuses_a_running_job_another_s_child(store: Store) -> None:
    """WrongState, and none of the children is added."""
    await plant(store, NewJob(MAIL, "a", id="a"))
    await add_one(store, PARTS)
    held = await claim_one(store, PARTS)
    with pytest.raises(WrongState):
        await _grow(store, held, NewJob(MAIL, "b"), NewJob(MAIL, "a", id="a"))
    assert await store.counts(MAIL) == Counts(waiting=1)


async def test_refuses_deduplicated_children(store: Store) -> None:
    """BadOption, as for any child."""
    held = await _running(store)
    with pytest.raises(BadOption):
        await _grow(store, held, NewJob(MAIL, "a", spec=JobSpec(dedup=Dedup("subject"))))
    assert list(await store.queues()) == [PARENTS]


async def test_race_awaiting_and_the_last_child_s_end_lose_no_parent(harness: Harness, store: Store) -> None:
    """Whether the child ends before or after its parent begins to wait, the parent runs again."""
    other = await harness.open()
    for turn in range(ROUNDS):
        held = await _running(store)
        await _grow(store, held, NewJob(MAIL, "a"))
        child = await claim_one(store)
        await race(
            settle_one(store, held.lease, AwaitChildren()), settle_one(other, child.lease, Completed()), turn=turn
        )
        assert await claim_ids(store, 5, PARENTS) == [held.job.id]


async def test_race_completing_and_adding_children_agree(harness: Harness, store: Store) -> None:
    """Children are there and awaited, or their parent completed without them."""
    other = await harness.open()
    for turn in range(ROUNDS):
        queue = f"mail-{turn}"
        held = await _running(store)
        outcome, added = await race(
            settle_one(store, held.lease, Completed()),
            other.add_children(held.lease, [NewJob(queue, "a")], request=fresh_request()),
            turn=turn,
        )
        refused = isinstance(added, LeaseLost)
        assert outcome == (SettleOutcome.SETTLED if refused else SettleOutcome.PENDING_CHILDREN)
        assert (queue in await store.queues()) != refused


async def test_race_a_crash_while_children_are_added_leaves_all_or_nothing(harness: Harness, store: Store) -> None:
    """A worker that dies amid it leaves all of the children, or none."""
    for turn in range(ROUNDS):
        queue = f"mail-{turn}"
        victim = await harness.open()
        held = await _running(victim)
        jobs = [NewJob(queue, "a")] * 20
        await crash_during(harness, victim, victim.add_children(held.lease, jobs, request=fresh_request()))
        store = await harness.open()
        if queue in await store.queues():
            assert await store.counts(queue) == Counts(waiting=20)
            assert await states_of(store, held.lease.ref) == [ChildState.PENDING] * 20
        else:
            assert await children_of(store, held.lease.ref) == []


async def test_a_parent_of_ten_thousand_is_paged(store: Store) -> None:
    """Ten thousand children are added in one step, and told in pages, each once."""
    root, children = await plant(store, *[NewJob(MAIL, "a", spec=JobSpec(on_failure=OnFailure.IGNORE))] * 10_000)
    assert len(children) == 10_000
    assert await child_refs(store, root, limit=999) == set(children)


async def test_refuses_to_tell_the_children_of_a_missing_job(store: Store) -> None:
    """JobMissing for a job that is not there; BadOption for a cursor that no page gave."""
    with pytest.raises(JobMissing):
        await store.children(JobRef(MAIL, "nobody"))
    root, _ = await plant(store, NewJob(MAIL, "a"))
    with pytest.raises(BadOption):
        await store.children(root, cursor="what")
    assert await states_of(store, root) == [ChildState.PENDING]
