"""Promises of schedules: `put_schedule`, `remove_schedule` and the looks at them."""

import msgspec
import pytest

from bullpen.errors import ScheduleMissing, WrongState
from bullpen.job.events import EventKind
from bullpen.job.schedule import Overlap, ScheduleRecord, Timing
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.stores.base import Counts, ScheduleOutcome, Store
from bullpen.testing.conformance.moves import (
    MAIL,
    add_many,
    claim,
    claim_one,
    end_of_log,
    ids_in,
    kinds_since,
    leave_behind,
    state_of,
)
from bullpen.testing.conformance.schedules import (
    EVERY_MS,
    SWEEP,
    advance_to,
    claim_tick,
    put_new,
    schedule_of,
    tick_ref,
)
from bullpen.testing.harness import Harness

# ── making and changing ──────────────────────────────────────────────────────────────────


async def test_a_schedule_has_one_tick_pending(harness: Harness, store: Store) -> None:
    """A new schedule is told whole, and its first tick is a delayed job with its name, data and options."""
    cursor = await end_of_log(store)
    next_ms = await put_new(harness, store)
    record = await store.schedule(MAIL, SWEEP)
    assert record == ScheduleRecord(schedule=schedule_of(), last_ms=next_ms, pending=True, count=1, ticks=1)
    tick = await store.job(tick_ref(next_ms))
    assert (tick.state, tick.run_at_ms, tick.name, tick.data) == (State.DELAYED, next_ms, "clean-up", b'{"deep":true}')
    assert (tick.spec.attempts, tick.spec.priority, tick.tenant) == (2, 3, "acme")
    assert await kinds_since(store, cursor) == [EventKind.ADDED, EventKind.DELAYED]


async def test_a_tick_whose_time_has_come_waits(harness: Harness, store: Store) -> None:
    """A first tick for now is runnable at once."""
    next_ms = await put_new(harness, store, in_ms=0)
    assert (await claim_one(store)).lease.ref == tick_ref(next_ms)


async def test_timings_are_kept_as_given(harness: Harness, store: Store) -> None:
    """Every part of a timing comes back as it was put."""
    now_ms = harness.clock.now_ms()
    cron = Timing(cron="0 3 * * 1-5", tz="Europe/Berlin", start_ms=now_ms, end_ms=now_ms + 10**9, limit=7)
    every = Timing(every_ms=1_500, offset_ms=250)
    for schedule_id, timing in (("a", cron), ("b", every)):
        schedule = msgspec.structs.replace(schedule_of(schedule_id), timing=timing, overlap=Overlap.ALLOW)
        await store.put_schedule(schedule, next_ms=now_ms + 5_000, seen_ms=None)
        assert (await store.schedule(MAIL, schedule_id)).schedule == schedule


async def test_a_changed_schedule_has_another_tick(harness: Harness, store: Store) -> None:
    """The pending tick of what was there is removed; the new one has the new data."""
    old_ms = await put_new(harness, store)
    changed = msgspec.structs.replace(schedule_of(), data=b"[1]")
    cursor = await end_of_log(store)
    assert await store.put_schedule(changed, next_ms=old_ms + 5, seen_ms=old_ms) == ScheduleOutcome.DONE
    assert await ids_in(store, State.DELAYED) == [tick_ref(old_ms + 5).id]
    assert (await store.job(tick_ref(old_ms + 5))).data == b"[1]"
    assert (await store.schedule(MAIL, SWEEP)).ticks == 1
    assert await kinds_since(store, cursor) == [EventKind.REMOVED, EventKind.ADDED, EventKind.DELAYED]


async def test_the_same_time_can_be_put_again(harness: Harness, store: Store) -> None:
    """A pending tick is replaced by one for the same time."""
    at_ms = await put_new(harness, store)
    changed = msgspec.structs.replace(schedule_of(), data=b"[1]")
    assert await store.put_schedule(changed, next_ms=at_ms, seen_ms=at_ms) == ScheduleOutcome.DONE
    assert (await store.job(tick_ref(at_ms))).data == b"[1]"


async def test_refuses_to_change_what_was_not_seen(harness: Harness, store: Store) -> None:
    """Whoever saw an older tick, none, or one where there is none, changes nothing."""
    at_ms = await put_new(harness, store)
    for seen_ms in (None, at_ms - 1, at_ms + 1):
        outcome = await store.put_schedule(schedule_of(every_ms=5), next_ms=at_ms + 9, seen_ms=seen_ms)
        assert outcome == ScheduleOutcome.CHANGED
    assert await store.put_schedule(schedule_of("new"), next_ms=at_ms, seen_ms=7) == ScheduleOutcome.CHANGED
    assert [record.schedule for record in await store.schedules(MAIL)] == [schedule_of()]
    assert await ids_in(store, State.DELAYED) == [tick_ref(at_ms).id]


async def test_refuses_a_time_that_has_a_job(harness: Harness, store: Store) -> None:
    """A tick that ran is not run again under the same id."""
    at_ms = await put_new(harness, store)
    await claim_tick(harness, store, at_ms)
    assert await store.put_schedule(schedule_of(), next_ms=at_ms, seen_ms=at_ms) == ScheduleOutcome.TAKEN
    assert (await store.schedule(MAIL, SWEEP)).last_ms == at_ms


async def test_a_paused_schedule_has_nothing_pending(harness: Harness, store: Store) -> None:
    """Put without a next tick it rests, and goes on when one is put; its number is kept."""
    at_ms = await put_new(harness, store)
    await store.put_schedule(schedule_of(), next_ms=None, seen_ms=at_ms, count=4, paused=True)
    paused = await store.schedule(MAIL, SWEEP)
    assert (paused.paused, paused.pending, paused.next_ms, paused.count) == (True, False, None, 4)
    assert await store.counts(MAIL) == Counts()
    await store.put_schedule(schedule_of(), next_ms=at_ms + 1, seen_ms=paused.last_ms, count=5)
    record = await store.schedule(MAIL, SWEEP)
    assert (record.paused, record.next_ms, record.count) == (False, at_ms + 1, 5)


async def test_a_tick_that_runs_outlives_a_pause_and_adds_nothing(harness: Harness, store: Store) -> None:
    """Pausing stops no job; its claimant cannot set the schedule going again."""
    at_ms = await put_new(harness, store)
    claimed = await claim_tick(harness, store, at_ms)
    await store.put_schedule(schedule_of(), next_ms=None, seen_ms=at_ms, paused=True)
    record = (await store.start_tick(claimed.lease)).record
    assert record is not None
    for tick_ms in {at_ms, record.last_ms}:
        assert not await advance_to(store, tick_ms, at_ms + EVERY_MS)
    assert await state_of(store, claimed.lease.ref) == State.ACTIVE
    assert await store.counts(MAIL) == Counts(active=1)


# ── removing and looking ─────────────────────────────────────────────────────────────────


async def test_a_removed_schedule_leaves_no_tick(harness: Harness, store: Store) -> None:
    """Delayed or waiting, the pending tick goes with its schedule."""
    for in_ms in (EVERY_MS, 0):
        await put_new(harness, store, in_ms=in_ms)
        await store.remove_schedule(MAIL, SWEEP)
        assert await store.schedules(MAIL) == []
        assert await store.counts(MAIL) == Counts()
        await harness.advance(1)


async def test_schedules_are_listed_by_name(harness: Harness, store: Store) -> None:
    """With their next times; a queue that is not there has none, and is not made by the look."""
    for schedule_id, in_ms in (("b", 5_000), ("c", 1_000), ("a", 9_000)):
        await put_new(harness, store, schedule_of(schedule_id), in_ms=in_ms)
    found = await store.schedules(MAIL)
    now_ms = harness.clock.now_ms()
    assert [(record.id, record.next_ms) for record in found] == [
        ("a", now_ms + 9_000),
        ("b", now_ms + 5_000),
        ("c", now_ms + 1_000),
    ]
    assert await store.schedules("nowhere") == []
    assert list(await store.queues()) == [MAIL]


async def test_refuses_what_is_no_schedule(harness: Harness, store: Store) -> None:
    """Looking for one, or removing one, that is not there."""
    await put_new(harness, store)
    for queue, schedule_id in ((MAIL, "other"), ("nowhere", SWEEP)):
        with pytest.raises(ScheduleMissing):
            await store.schedule(queue, schedule_id)
        with pytest.raises(ScheduleMissing):
            await store.remove_schedule(queue, schedule_id)
    assert len(await store.schedules(MAIL)) == 1


async def test_sweeping_leaves_the_next_tick(harness: Harness, store: Store) -> None:
    """Draining and cleaning take all but the tick without which the schedule would stop."""
    at_ms = await put_new(harness, store)
    await add_many(store, 3, spec=JobSpec(delay_ms=EVERY_MS))
    await harness.advance(10)
    assert await store.clean(MAIL, State.DELAYED, older_than_ms=0, limit=2) == 2
    assert await store.drain(MAIL, delayed=True) == 1
    await harness.advance(EVERY_MS)
    assert await claim(store, 0) == ()
    assert await store.drain(MAIL, delayed=True) == 0
    assert (await store.schedule(MAIL, SWEEP)).next_ms == at_ms


async def test_refuses_to_remove_the_next_tick(harness: Harness, store: Store) -> None:
    """The schedule itself is to be removed, or paused."""
    at_ms = await put_new(harness, store)
    with pytest.raises(WrongState):
        await store.remove(tick_ref(at_ms))
    assert (await store.schedule(MAIL, SWEEP)).pending


async def test_an_obliterated_queue_has_no_schedules(harness: Harness, store: Store) -> None:
    """They go with all else, and a queue that is made anew has none of them."""
    at_ms = await put_new(harness, store)
    await store.obliterate(MAIL, force=False)
    await add_many(store, 1)
    assert await store.schedules(MAIL) == []
    assert await store.put_schedule(schedule_of(), next_ms=at_ms, seen_ms=None) == ScheduleOutcome.DONE


async def test_a_schedule_survives_a_crash(harness: Harness, store: Store) -> None:
    """What was put is there for whoever comes after."""
    at_ms = await put_new(harness, store)
    before = await store.schedule(MAIL, SWEEP)
    store = await leave_behind(harness, store)
    assert await store.schedule(MAIL, SWEEP) == before
    assert await state_of(store, tick_ref(at_ms)) == State.DELAYED
