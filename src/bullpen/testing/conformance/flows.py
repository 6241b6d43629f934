"""Promises of trees: parents that run after their children, across queues."""

import pytest

from bullpen.errors import BadOption, JobMissing, WrongState
from bullpen.job.events import EventKind
from bullpen.job.spec import Dedup, JobSpec, Keep, NewJob
from bullpen.job.state import State
from bullpen.job.trees import MAX_DEPTH
from bullpen.job.verdicts import Completed, Settlement
from bullpen.stores.base import Added, AddOutcome, ChildState, Counts, SettleOutcome, Store
from bullpen.testing.conformance.kin import PARENTS, PARTS, child_refs, plant, tree
from bullpen.testing.conformance.moves import (
    MAIL,
    ROUNDS,
    add,
    add_many,
    add_one,
    claim,
    claim_ids,
    claim_one,
    complete_one,
    crash_during,
    end_of_log,
    events_since,
    fresh_request,
    kinds_since,
    race,
    run_one,
    settle_one,
    state_of,
)
from bullpen.testing.harness import Harness

# ── adding ───────────────────────────────────────────────────────────────────────────────


async def test_a_parent_waits_and_its_children_can_run(store: Store) -> None:
    """A job with children is in waiting-children, and each child in its own queue, ready to run."""
    (added,) = await add(store, tree(NewJob(MAIL, "a"), NewJob(PARTS, "b")))
    assert added.outcome == AddOutcome.ADDED
    assert [child.outcome for child in added.children] == [AddOutcome.ADDED] * 2
    assert await store.counts(PARENTS) == Counts(waiting_children=1)
    assert await store.counts(MAIL) == await store.counts(PARTS) == Counts(waiting=1)
    (waiting,) = (await store.jobs(PARENTS, State.WAITING_CHILDREN, limit=10)).jobs
    assert waiting.id == added.id
    assert await claim(store, 5, PARENTS) == ()


async def test_a_child_knows_its_parent(store: Store) -> None:
    """Its record names the parent, also when it is claimed; a job without one has none."""
    root, (child,) = await plant(store, NewJob(MAIL, "a"))
    assert (await store.job(child)).parent == root
    assert (await claim_one(store)).job.parent == root
    assert (await store.job(root)).parent is None


async def test_a_parent_runs_after_its_last_child(store: Store) -> None:
    """It becomes runnable in the step in which the last child completes, not before."""
    root, _ = await plant(store, NewJob(MAIL, "a"), NewJob(PARTS, "b"))
    await complete_one(store)
    assert await state_of(store, root) == State.WAITING_CHILDREN
    await complete_one(store, PARTS)
    assert await claim_ids(store, 5, PARENTS) == [root.id]


async def test_a_parent_has_the_results_of_its_children(store: Store) -> None:
    """Each result stands under its child's name, also when retention took the child itself."""
    gone = JobSpec(keep_completed=Keep(count=0))
    root, (first, second) = await plant(store, NewJob(MAIL, "a", spec=gone), NewJob(PARTS, "b"))
    await run_one(store, Completed(b'{"n":1}'))
    await run_one(store, Completed(b"2"), PARTS)
    page = await store.children(root)
    assert {child.ref: child.result for child in page.children} == {first: b'{"n":1}', second: b"2"}
    assert {child.state for child in page.children} == {ChildState.COMPLETED}
    assert page.next_cursor is None
    with pytest.raises(JobMissing):
        await store.job(first)


async def test_a_tree_may_have_many_levels(store: Store) -> None:
    """Each level runs after the one below it, and the root at last."""
    leaf = NewJob(MAIL, "leaf")
    middle = NewJob(PARTS, "middle", children=(leaf, leaf))
    (added,) = await add(store, tree(middle, leaf))
    assert [len(child.children) for child in added.children] == [2, 0]
    await complete_one(store)
    assert await store.counts(PARTS) == Counts(waiting_children=1)
    await complete_one(store)
    await complete_one(store, PARTS)
    assert await store.counts(PARENTS) == Counts(waiting_children=1)
    await complete_one(store)
    assert await claim_ids(store, 5, PARENTS) == [added.id]


async def test_a_tree_may_be_as_deep_as_is_allowed(store: Store) -> None:
    """A chain of that many levels is added, and its lowest job is the first to run."""
    job = NewJob(MAIL, "1")
    for level in range(2, MAX_DEPTH + 1):
        job = NewJob(MAIL, str(level), children=(job,))
    await add(store, job)
    assert await store.counts(MAIL) == Counts(waiting=1, waiting_children=MAX_DEPTH - 1)
    for level in range(1, MAX_DEPTH + 1):
        claimed = await claim_one(store)
        assert claimed.job.name == str(level)
        await settle_one(store, claimed.lease, Completed())


async def test_trees_and_plain_jobs_travel_together(store: Store) -> None:
    """A batch may hold both; it is answered in the order asked."""
    answers = await add(store, NewJob(MAIL, "plain"), tree(NewJob(PARTS, "a")), NewJob(MAIL, "plain"))
    assert [len(answer.children) for answer in answers] == [0, 1, 0]
    assert await claim_ids(store, 5) == [answers[0].id, answers[2].id]


async def test_what_is_added_with_a_completion_may_be_a_tree(store: Store) -> None:
    """Followers have children as any other job."""
    await add_one(store)
    await run_one(store, Completed(then=(tree(NewJob(PARTS, "a")),)))
    assert await store.counts(PARENTS) == Counts(waiting_children=1)
    await complete_one(store, PARTS)
    assert await store.counts(PARENTS) == Counts(waiting=1)


async def test_the_log_tells_of_waiting_for_children(store: Store) -> None:
    """`added`, `waiting-children`, and `waiting` from there once the children are done."""
    await add_one(store, PARENTS)
    await complete_one(store, PARENTS)
    cursor = await end_of_log(store, PARENTS)
    await plant(store, NewJob(MAIL, "a"))
    await complete_one(store)
    told = await events_since(store, cursor, PARENTS)
    assert [event.kind for event in told] == [EventKind.ADDED, EventKind.WAITING_CHILDREN, EventKind.WAITING]
    assert told[2].prev == State.WAITING_CHILDREN


# ── release ──────────────────────────────────────────────────────────────────────────────


async def test_a_released_parent_is_next_in_line(store: Store) -> None:
    """Without a priority it goes to the head of its line."""
    await add_many(store, 3, PARENTS)
    root, _ = await plant(store, NewJob(MAIL, "a"))
    await complete_one(store)
    assert (await claim_ids(store, 5, PARENTS))[0] == root.id


async def test_a_released_parent_keeps_its_priority(store: Store) -> None:
    """With one it goes to the end of its priority's line."""
    spec = JobSpec(priority=3)
    others = await add_many(store, 2, PARENTS, spec=spec)
    root, _ = await plant(store, NewJob(MAIL, "a"), spec=spec)
    await complete_one(store)
    assert await claim_ids(store, 5, PARENTS) == [*[other.id for other in others], root.id]


async def test_a_released_parent_waits_for_its_delay(harness: Harness, store: Store) -> None:
    """Its delay begins when its children are done."""
    root, _ = await plant(store, NewJob(MAIL, "a"), spec=JobSpec(delay_ms=60_000))
    await harness.advance(100_000)
    await complete_one(store)
    assert await state_of(store, root) == State.DELAYED
    await harness.advance(59_000)
    assert await claim(store, 1, PARENTS) == ()
    await harness.advance(2_000)
    assert await claim_ids(store, 5, PARENTS) == [root.id]


async def test_a_release_wakes_those_who_wait(store: Store) -> None:
    """A worker of the parent's queue that sleeps is woken by the end of a child in another queue."""
    await plant(store, NewJob(MAIL, "a"))
    held = await claim_one(store)
    assert not await store.wait([PARENTS], timeout_ms=0)
    answer, woken = await race(
        settle_one(store, held.lease, Completed()), store.wait([PARENTS], timeout_ms=15_000), turn=1
    )
    assert (answer, woken) == (SettleOutcome.SETTLED, True)


async def test_a_batch_may_end_a_whole_family(store: Store) -> None:
    """All children settled at once release their parent once."""
    root, children = await plant(store, *[NewJob(MAIL, "a")] * 5)
    held = await claim(store, 5)
    cursor = await end_of_log(store, PARENTS)
    await store.settle([Settlement(one.lease, Completed(b"1")) for one in held], request=fresh_request())
    assert await kinds_since(store, cursor, PARENTS) == [EventKind.WAITING]
    assert await child_refs(store, root) == set(children)


# ── ids ──────────────────────────────────────────────────────────────────────────────────


async def test_nothing_below_a_duplicate_is_added(store: Store) -> None:
    """A tree whose root has an id can be added again without harm: the first one stands."""
    once = NewJob(PARENTS, "root", id="report", children=(NewJob(MAIL, "a"),))
    await add(store, once)
    assert await add(store, once) == [Added("report", AddOutcome.DUPLICATE)]
    assert await store.counts(MAIL) == Counts(waiting=1)


async def test_a_job_that_is_there_becomes_a_child(store: Store) -> None:
    """A child whose id is taken by a job without a parent is that job, as it stands."""
    await add_one(store, own_id="a", data=b'{"n":1}')
    root, (child,) = await plant(store, NewJob(MAIL, "other", id="a"))
    assert (await store.job(child)).parent == root
    assert (await store.job(child)).data == b'{"n":1}'
    await run_one(store, Completed(b"7"))
    assert [one.result for one in (await store.children(root)).children] == [b"7"]
    assert await store.counts(PARENTS) == Counts(waiting=1)


async def test_a_job_that_completed_becomes_a_child_that_is_done(store: Store) -> None:
    """Its result is there at once, and a parent with no other child can run."""
    await add_one(store, own_id="a")
    await run_one(store, Completed(b"7"))
    root, _ = await plant(store, NewJob(MAIL, "other", id="a"))
    assert await state_of(store, root) == State.WAITING
    assert [one.result for one in (await store.children(root)).children] == [b"7"]


async def test_refuses_a_child_of_another_parent(store: Store) -> None:
    """One job has one parent: WrongState, and nothing of the batch was added."""
    await plant(store, NewJob(MAIL, "a", id="a"))
    with pytest.raises(WrongState):
        await add(store, NewJob(MAIL, "plain"), tree(NewJob(PARTS, "b"), NewJob(MAIL, "a", id="a")))
    assert await store.counts(MAIL) == Counts(waiting=1)
    assert await store.counts(PARENTS) == Counts(waiting_children=1)


async def test_refuses_one_id_in_two_places_of_a_tree(store: Store) -> None:
    """A job cannot wait for itself, nor be the child of two: BadOption."""
    loop = NewJob(MAIL, "a", id="x", children=(NewJob(MAIL, "b", children=(NewJob(MAIL, "a", id="x"),)),))
    with pytest.raises(BadOption):
        await add(store, loop)
    with pytest.raises(BadOption):
        await add(store, tree(NewJob(MAIL, "a", id="x")), tree(NewJob(MAIL, "a", id="x")))
    assert list(await store.queues()) == []


async def test_refuses_deduplication_in_a_tree(store: Store) -> None:
    """Neither parents nor children can be deduplicated: BadOption."""
    spec = JobSpec(dedup=Dedup("subject"))
    for wrong in (tree(NewJob(MAIL, "a", spec=spec)), tree(NewJob(MAIL, "a"), spec=spec)):
        with pytest.raises(BadOption):
            await add(store, wrong)
    assert list(await store.queues()) == []


async def test_refuses_a_tree_that_is_too_deep(store: Store) -> None:
    """BadOption for one level more than is allowed."""
    job = NewJob(MAIL, "a")
    for _ in range(MAX_DEPTH):
        job = NewJob(MAIL, "a", children=(job,))
    with pytest.raises(BadOption):
        await add(store, job)
    assert list(await store.queues()) == []


# ── all or nothing ───────────────────────────────────────────────────────────────────────


async def test_the_same_request_plants_once(store: Store) -> None:
    """A tree whose answer was lost is added once, and answered the same again."""
    job = tree(NewJob(MAIL, "a", children=(NewJob(PARTS, "b"),)), NewJob(MAIL, "c"))
    first = await store.add([job], request="r1")
    assert list(await store.add([job], request="r1")) == list(first)
    assert await store.counts(PARENTS) == Counts(waiting_children=1)


async def test_race_a_crash_while_a_tree_is_added_leaves_all_or_nothing(harness: Harness, store: Store) -> None:
    """A producer that dies amid the add leaves the whole tree, or nothing of it."""
    for turn in range(ROUNDS):
        queue = f"mail-{turn}"
        victim = await harness.open()
        job = NewJob(f"parents-{turn}", "root", children=(NewJob(queue, "a"),) * 20)
        await crash_during(harness, victim, victim.add([job], request=fresh_request()))
        store = await harness.open()
        known = set(await store.queues())
        assert (queue in known) == (job.queue in known)
        if queue in known:
            assert await store.counts(queue) == Counts(waiting=20)


async def test_race_the_last_two_children_release_once(harness: Harness, store: Store) -> None:
    """Two workers that settle the last children at the same time make the parent runnable once."""
    other = await harness.open()
    for turn in range(ROUNDS):
        root, _ = await plant(store, NewJob(MAIL, "a"), NewJob(MAIL, "b"))
        first, second = await claim(store, 2)
        cursor = await end_of_log(store, PARENTS)
        await race(settle_one(store, first.lease, Completed()), settle_one(other, second.lease, Completed()), turn=turn)
        assert await kinds_since(store, cursor, PARENTS) == [EventKind.WAITING]
        assert await claim_ids(store, 5, PARENTS) == [root.id]
