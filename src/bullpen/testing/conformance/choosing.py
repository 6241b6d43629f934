"""Promises of a claim that asks for the jobs of one group: for a worker that may see no other."""

from bullpen.job.limits import GroupLimits, QueueLimits
from bullpen.stores.base import Store
from bullpen.testing.conformance.groups import add_to, cap, claim_groups
from bullpen.testing.conformance.moves import LEASE_MS, MAIL, WORKER, fresh_request


async def choose(store: Store, group: str, count: int, *, request: str | None = None) -> list[str]:
    """The ids of the group's next jobs."""
    claimed = await store.claim(
        {MAIL: count}, worker=WORKER, lease_ms=LEASE_MS, request=request or fresh_request(), group=group
    )
    assert all(one.job.spec.group == group for one in claimed.jobs)
    return [one.job.id for one in claimed.jobs]


async def test_a_claim_for_a_group_gets_no_other_jobs(store: Store) -> None:
    """Neither another group's, nor those that wait in the queue's own line; within the group by priority."""
    await add_to(store, None, 2)
    await add_to(store, "other", 2)
    (late,) = await add_to(store, "mine", priority=5)
    (first,) = await add_to(store, "mine")
    assert await choose(store, "mine", 10) == [first.id, late.id]
    assert await claim_groups(store, 10) == [None, None, "other", "other"]


async def test_a_claim_for_a_group_without_jobs_gets_none(store: Store) -> None:
    """However many others wait."""
    await add_to(store, "other", 2)
    assert await choose(store, "mine", 10) == []


async def test_a_claim_for_a_group_keeps_its_limits(store: Store) -> None:
    """The cap of the group and that of the queue hold for those who ask for it too."""
    await cap(store, "mine", 2)
    await add_to(store, "mine", 5)
    assert len(await choose(store, "mine", 5)) == 2
    await store.set_group(MAIL, "mine", GroupLimits(concurrency=10))
    await store.set_limits(MAIL, QueueLimits(concurrency=3))
    assert len(await choose(store, "mine", 5)) == 1


async def test_a_paused_group_gives_nothing_to_those_who_ask_for_it(store: Store) -> None:
    """A pause is a pause."""
    await add_to(store, "mine", 2)
    await store.pause_group(MAIL, "mine")
    assert await choose(store, "mine", 2) == []
    await store.resume_group(MAIL, "mine")
    assert len(await choose(store, "mine", 2)) == 2


async def test_what_a_group_got_by_name_it_has_had_when_turns_are_taken(store: Store) -> None:
    """Its turns are used, the others' are not; a group that comes now stands beside those, not behind them."""
    await add_to(store, "mine", 10)
    await add_to(store, "other", 10)
    assert len(await choose(store, "mine", 4)) == 4
    await add_to(store, "new", 10)
    assert sorted(str(group) for group in await claim_groups(store, 6)) == ["new"] * 3 + ["other"] * 3


async def test_the_same_claim_for_a_group_gets_the_same_jobs(store: Store) -> None:
    """A lost answer is asked for again."""
    await add_to(store, "mine", 4)
    request = fresh_request()
    first = await choose(store, "mine", 2, request=request)
    assert await choose(store, "mine", 2, request=request) == first
