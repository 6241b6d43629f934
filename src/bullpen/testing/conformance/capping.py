"""Promises of groups with limits: caps, rates and sizes."""

from collections import Counter

import pytest

from bullpen.errors import GroupFull
from bullpen.job.limits import GroupLimits
from bullpen.job.record import CrashKind, CrashLimits
from bullpen.job.spec import Dedup, JobSpec, NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Limited, Settlement
from bullpen.stores.base import Store
from bullpen.testing.conformance.groups import add_to, cap, claim_groups, group_of
from bullpen.testing.conformance.moves import (
    LEASE_MS,
    MAIL,
    ROUNDS,
    WORKER,
    add,
    add_one,
    claim,
    claim_ids,
    claim_one,
    fresh_request,
    race,
    settle_one,
)
from bullpen.testing.harness import Harness

MINUTE_MS = 60_000


# ── caps ─────────────────────────────────────────────────────────────────────────────────


async def test_a_cap_holds_however_many_are_wanted(store: Store) -> None:
    """Of a group with a cap no more are active than that, and others go on."""
    await cap(store, "a", 2)
    await add_to(store, "a", 5)
    await add_to(store, "b", 5)
    assert Counter(await claim_groups(store, 6)) == {"a": 2, "b": 4}
    assert (await group_of(store, "a")).active == 2


async def test_the_end_of_a_job_frees_its_place(store: Store) -> None:
    """A group at its cap gives the next job when one of its ends, on the same trip too."""
    await cap(store, "a", 1)
    await add_to(store, "a", 3)
    held = await claim_one(store)
    assert await claim(store, 5) == ()
    exchanged = await store.exchange(
        [Settlement(held.lease, Completed())], {MAIL: 5}, worker=WORKER, lease_ms=LEASE_MS, request=fresh_request()
    )
    assert len(exchanged.claimed.jobs) == 1


async def test_a_lost_worker_frees_its_places(harness: Harness, store: Store) -> None:
    """What is rescued no longer counts as active."""
    await cap(store, "a", 1)
    await add_to(store, "a", 2)
    await claim_one(store)
    await harness.advance(LEASE_MS + 1)
    await store.report_crash(WORKER, CrashKind.KILLED, limits=CrashLimits())
    assert (await group_of(store, "a")).active == 0
    assert len(await claim(store, 5)) == 1


async def test_the_default_is_for_all_groups(store: Store) -> None:
    """Each group has the default's limits where its own say nothing."""
    await store.set_group_default(MAIL, GroupLimits(concurrency=1))
    await cap(store, "b", 2)
    await store.set_group(MAIL, "c", GroupLimits(weight=2))
    for group in "abc":
        await add_to(store, group, 5)
    assert Counter(await claim_groups(store, 15)) == {"a": 1, "b": 2, "c": 1}


async def test_limits_can_be_changed_at_any_time(store: Store) -> None:
    """A higher cap gives out more at once; None takes a group's own limits away."""
    await cap(store, "a", 1)
    await add_to(store, "a", 5)
    assert len(await claim(store, 5)) == 1
    await cap(store, "a", 2)
    assert len(await claim(store, 5)) == 1
    await store.set_group(MAIL, "a", None)
    assert len(await claim(store, 5)) == 3


async def test_a_wider_default_opens_full_groups(store: Store) -> None:
    """Whoever waited for a place has one as soon as the default allows it."""
    await store.set_group_default(MAIL, GroupLimits(concurrency=1))
    await add_to(store, "a", 3)
    assert len(await claim(store, 5)) == 1
    await store.set_group_default(MAIL, GroupLimits())
    assert len(await claim(store, 5)) == 2


async def test_race_two_claims_of_a_capped_group(harness: Harness, store: Store) -> None:
    """Two workers that claim at once exceed no cap."""
    other = await harness.open()
    await cap(store, "a", 2)
    for turn in range(ROUNDS):
        await add_to(store, "a", 4)
        mine, theirs = await race(claim(store, 3), claim(other, 3, worker="worker-2"), turn=turn)
        assert isinstance(mine, tuple)
        assert isinstance(theirs, tuple)
        assert len(mine) + len(theirs) == 2
        for held in (*mine, *theirs):
            await settle_one(store, held.lease, Completed())


# ── rates ────────────────────────────────────────────────────────────────────────────────


async def test_a_group_s_rate_holds(harness: Harness, store: Store) -> None:
    """No more start within the window than may, and the claim says when to look again."""
    await store.set_group(MAIL, "a", GroupLimits(rate_max=2, rate_ms=MINUTE_MS))
    await add_to(store, "a", 5)
    await add_to(store, "b", 1)
    started_ms = harness.clock.now_ms()
    claimed = await store.claim({MAIL: 9}, worker=WORKER, lease_ms=LEASE_MS, request=fresh_request())
    assert Counter(one.job.spec.group for one in claimed.jobs) == {"a": 2, "b": 1}
    assert claimed.next_due_ms == started_ms + MINUTE_MS
    await harness.advance(MINUTE_MS - 1_000)
    assert await claim(store, 9) == ()
    await harness.advance(1_001)
    assert len(await claim(store, 9)) == 2


async def test_a_group_can_be_closed_by_its_handler(harness: Harness, store: Store) -> None:
    """A job that was limited goes back without an attempt, and its group rests for that long; others go on."""
    first, _ = await add_to(store, "a", 2)
    await add_to(store, "b", 2)
    held = await claim_one(store)
    await settle_one(store, held.lease, Limited(MINUTE_MS, group_only=True))
    assert await claim_groups(store, 9) == ["b", "b"]
    assert (await group_of(store, "a")).closed_until_ms == harness.clock.now_ms() + MINUTE_MS
    record = await store.job(first)
    assert (record.state, record.attempts_made) == (State.WAITING, 0)
    await harness.advance(MINUTE_MS + 1)
    assert (await claim_ids(store, 9))[0] == first.id


# ── sizes ────────────────────────────────────────────────────────────────────────────────


async def test_refuses_more_than_may_wait(store: Store) -> None:
    """An add over the group's size is GroupFull, which names queue and group, and nothing of it was added."""
    await store.set_group(MAIL, "a", GroupLimits(max_size=3))
    await add_to(store, "a", 2)
    jobs = [NewJob("calls", "x"), *[NewJob(MAIL, "x", spec=JobSpec(group="a"))] * 2]
    with pytest.raises(GroupFull, match=r"'a'.*'mail'"):
        await add(store, *jobs)
    assert await store.queues() == [MAIL]
    assert (await group_of(store, "a")).waiting == 2
    await add_to(store, "a")


async def test_what_is_known_takes_no_room(store: Store) -> None:
    """An id or a subject for which a job stands can be added again to a full group: nothing is added."""
    await store.set_group(MAIL, "a", GroupLimits(max_size=2))
    await add_one(store, own_id="x", spec=JobSpec(group="a"))
    await add_one(store, spec=JobSpec(group="a", dedup=Dedup("subject")))
    await add_one(store, own_id="x", spec=JobSpec(group="a"))
    await add_one(store, spec=JobSpec(group="a", dedup=Dedup("subject")))
    assert (await group_of(store, "a")).waiting == 2


async def test_a_settlement_is_never_refused_for_size(store: Store) -> None:
    """What a completed job adds is added, however full its group: the completion must not fail."""
    await store.set_group(MAIL, "a", GroupLimits(max_size=1))
    await add_to(store, "a")
    held = await claim_one(store)
    await add_to(store, "a")
    await settle_one(store, held.lease, Completed(then=(NewJob(MAIL, "x", spec=JobSpec(group="a")),)))
    assert (await group_of(store, "a")).waiting == 2
