"""Promises of groups: fair turns, pauses, and the looks at them."""

from collections import Counter

import pytest

from bullpen.errors import QueueMissing
from bullpen.job.limits import GroupInfo, GroupLimits
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.job.verdicts import Completed
from bullpen.stores.base import Counts, Store
from bullpen.testing.conformance.groups import add_to, claim_groups, group_of
from bullpen.testing.conformance.moves import MAIL, add_one, claim, claim_ids, claim_one, settle_one
from bullpen.testing.harness import Harness

# ── turns ────────────────────────────────────────────────────────────────────────────────


async def test_groups_take_turns(store: Store) -> None:
    """However many jobs one group has, the groups give theirs in turn."""
    await add_to(store, "big", 10)
    await add_to(store, "small", 2)
    assert await claim_groups(store, 5) == ["big", "small", "big", "small", "big"]


async def test_turns_go_on_from_claim_to_claim(store: Store) -> None:
    """Whether jobs are claimed one by one or many at once, the turns are the same."""
    await add_to(store, "a", 4)
    await add_to(store, "b", 4)
    turns = [(await claim_groups(store, count)) for count in (1, 1, 3, 2)]
    assert turns == [["a"], ["b"], ["a", "b", "a"], ["b", "a"]]


async def test_turns_follow_the_weights(store: Store) -> None:
    """A group of weight 3 has three turns where one of weight 1 has one."""
    await store.set_group(MAIL, "gold", GroupLimits(weight=3))
    await add_to(store, "gold", 80)
    await add_to(store, "plain", 80)
    turns = Counter(await claim_groups(store, 100))
    assert 72 <= turns["gold"] <= 78
    assert turns["gold"] + turns["plain"] == 100


async def test_a_group_that_was_idle_saved_nothing_up(store: Store) -> None:
    """Whoever comes late takes turns with the others, and no turns for the time before."""
    await add_to(store, "early", 30)
    assert await claim_groups(store, 20) == ["early"] * 20
    await add_to(store, "late", 5)
    assert Counter(await claim_groups(store, 6)) == {"early": 3, "late": 3}


async def test_coming_and_going_wins_no_turns(store: Store) -> None:
    """A group with one job at a time, added anew after each claim, has no more than its share."""
    await add_to(store, "steady", 30)
    turns: Counter[str | None] = Counter()
    for _ in range(10):
        await add_to(store, "a")
        turns += Counter(await claim_groups(store, 2))
    assert turns == {"a": 10, "steady": 10}


async def test_jobs_without_a_group_come_first(store: Store) -> None:
    """A job in no group is given out before those in groups, whatever their priority."""
    await add_to(store, "a", 2)
    await add_to(store, None, 2, priority=7)
    assert await claim_groups(store, 4) == [None, None, "a", "a"]


async def test_priorities_hold_within_a_group(store: Store) -> None:
    """Within a group: no priority first, then by priority, each first in, first out; LIFO at the head."""
    (late,) = await add_to(store, "a", priority=9)
    (first,) = await add_to(store, "a")
    (second,) = await add_to(store, "a")
    (urgent,) = await add_to(store, "a", priority=1)
    lifo = await add_one(store, spec=JobSpec(group="a", lifo=True))
    assert await claim_ids(store) == [ref.id for ref in (lifo, first, second, urgent, late)]


async def test_priorities_do_not_hold_across_groups(store: Store) -> None:
    """An urgent job overtakes its own group and no other."""
    await add_to(store, "a", 2, priority=9)
    await add_to(store, "b", 2, priority=1)
    assert await claim_groups(store, 4) == ["a", "b", "a", "b"]


async def test_a_delayed_job_joins_its_group(harness: Harness, store: Store) -> None:
    """When it is due it waits with its group, at the end."""
    due = await add_one(store, spec=JobSpec(group="a", delay_ms=1_000))
    assert (await group_of(store, "a")).waiting == 0
    (first,) = await add_to(store, "a")
    await harness.advance(1_001)
    assert await claim_ids(store) == [first.id, due.id]


async def test_grouped_jobs_are_counted_and_listed(store: Store) -> None:
    """They are waiting or prioritized as others are, and stand behind those without a group."""
    await add_to(store, "b", priority=2)
    (grouped,) = await add_to(store, "a")
    (other,) = await add_to(store, "b")
    (plain,) = await add_to(store, None)
    assert await store.counts(MAIL) == Counts(waiting=3, prioritized=1)
    page = await store.jobs(MAIL, State.WAITING, limit=2)
    assert [job.id for job in page.jobs] == [plain.id, grouped.id]
    page = await store.jobs(MAIL, State.WAITING, limit=2, cursor=page.next_cursor)
    assert [job.id for job in page.jobs] == [other.id]
    newest = await store.jobs(MAIL, State.WAITING, limit=10, newest_first=True)
    assert [job.id for job in newest.jobs] == [other.id, grouped.id, plain.id]
    assert (await store.job(grouped)).state == State.WAITING


# ── pause ────────────────────────────────────────────────────────────────────────────────


async def test_a_paused_group_gives_nothing(store: Store) -> None:
    """Its jobs wait, adds are taken, running ones are settled, and other groups go on."""
    await add_to(store, "a", 2)
    await add_to(store, "b", 2)
    held = await claim_one(store)
    await store.pause_group(MAIL, "a")
    await add_to(store, "a")
    assert await claim_groups(store, 9) == ["b", "b"]
    await settle_one(store, held.lease, Completed())
    assert (await group_of(store, "a")).paused
    await store.resume_group(MAIL, "a")
    assert await claim_groups(store, 9) == ["a", "a"]


async def test_a_group_can_be_paused_before_its_first_job(store: Store) -> None:
    """A pause makes the queue and the group known."""
    await store.pause_group(MAIL, "a")
    await add_to(store, "a")
    assert await claim(store) == ()
    assert (await group_of(store, "a")).waiting == 1


async def test_refuses_to_resume_a_group_of_no_queue(store: Store) -> None:
    """A queue that is not there is QueueMissing, and none was made."""
    with pytest.raises(QueueMissing):
        await store.resume_group("nobody", "a")
    with pytest.raises(QueueMissing):
        await store.groups("nobody", limit=1)
    with pytest.raises(QueueMissing):
        await store.group("nobody", "a")
    assert await store.queues() == []


# ── looking ──────────────────────────────────────────────────────────────────────────────


async def test_groups_are_listed_by_name_in_pages(harness: Harness, store: Store) -> None:
    """With their counts, their limits and since when their first job waits; idle ones are not listed."""
    for group in ("b", "a", "idle"):
        await add_to(store, group)
    await store.set_group(MAIL, "c", GroupLimits(weight=2))
    await store.set_group_default(MAIL, GroupLimits(concurrency=4))
    since_ms = harness.clock.now_ms()
    held = await claim(store, 3)
    await harness.advance(5_000)
    for one in held:
        if one.job.spec.group == "idle":
            await settle_one(store, one.lease, Completed())
    await add_to(store, "a")
    first = await store.groups(MAIL, limit=2)
    assert first.default == GroupLimits(concurrency=4)
    assert first.groups == (
        GroupInfo(name="a", waiting=1, active=1, oldest_ms=since_ms + 5_000),
        GroupInfo(name="b", active=1),
    )
    rest = await store.groups(MAIL, limit=2, cursor=first.next_cursor)
    assert rest.groups == (GroupInfo(name="c", limits=GroupLimits(weight=2)),)
    assert rest.next_cursor is None


async def test_one_group_is_told_as_the_list_tells_it(store: Store) -> None:
    """With its counts and limits; one that nobody spoke of is empty, and none is made."""
    for group in ("a", "ab", "b"):
        await add_to(store, group)
    await store.set_group(MAIL, "a", GroupLimits(weight=2))
    await claim(store, 1)
    listed = (await store.groups(MAIL, limit=9)).groups
    assert tuple([await store.group(MAIL, one.name) for one in listed]) == listed
    assert await store.group(MAIL, "nobody") == GroupInfo(name="nobody")
    assert (await store.groups(MAIL, limit=9)).groups == listed


async def test_a_removed_queue_forgets_its_groups(store: Store) -> None:
    """After obliterate nothing is left of limits, pauses and turns."""
    await store.pause_group(MAIL, "a")
    await store.set_group_default(MAIL, GroupLimits(concurrency=1))
    await add_to(store, "a", 3)
    await add_to(store, "b", 3)
    await claim_one(store)
    await store.obliterate(MAIL, force=True)
    await add_to(store, "a", 3)
    assert len(await claim(store, 9)) == 3
