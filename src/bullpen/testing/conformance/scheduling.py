"""Promises of schedules: `put_schedule`, `start_tick`, `advance_schedule`, `remove_schedule` and the looks at them."""

import msgspec
import pytest

from bullpen.errors import ScheduleMissing, WrongState
from bullpen.job.events import EventKind
from bullpen.job.record import ClaimedJob, CrashLimits, JobRef
from bullpen.job.schedule import Overlap, Schedule, ScheduleRecord, Tick, Timing
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Failed, Released, Retry
from bullpen.stores.base import Counts, ScheduleOutcome, Store
from bullpen.testing.conformance.moves import (
    BOOM,
    LEASE_MS,
    MAIL,
    ROUNDS,
    add_many,
    claim,
    claim_one,
    end_of_log,
    ids_in,
    kinds_since,
    leave_behind,
    race,
    settle_one,
    state_of,
)
from bullpen.testing.harness import Harness

_EVERY_MS = 60_000
_ID = "sweep"


def _schedule(schedule_id: str = _ID, *, overlap: Overlap = Overlap.SKIP, **timing: int) -> Schedule:
    return Schedule(
        queue=MAIL,
        id=schedule_id,
        name="clean-up",
        data=b'{"deep":true}',
        spec=JobSpec(priority=3, attempts=2, tenant="acme"),
        timing=Timing(**{"every_ms": _EVERY_MS, **timing}),  # type: ignore[arg-type]  # all are numbers here
        overlap=overlap,
    )


async def _put(harness: Harness, store: Store, schedule: Schedule | None = None, *, in_ms: int = _EVERY_MS) -> int:
    """A new schedule, and the time of its first tick."""
    next_ms = harness.clock.now_ms() + in_ms
    assert await store.put_schedule(schedule or _schedule(), next_ms=next_ms, seen_ms=None) == ScheduleOutcome.DONE
    return next_ms


async def _claim_tick(harness: Harness, store: Store, at_ms: int) -> ClaimedJob:
    await harness.advance(max(0, at_ms + 1 - harness.clock.now_ms()))
    claimed = await claim_one(store)
    assert claimed.job.tick == Tick(_ID, at_ms)
    return claimed


async def _advance(store: Store, tick_ms: int, next_ms: int | None) -> bool:
    return await store.advance_schedule(MAIL, _ID, tick_ms=tick_ms, next_ms=next_ms)


def _ref(at_ms: int) -> JobRef:
    return JobRef(MAIL, Tick(_ID, at_ms).job_id)


# ── making and changing ──────────────────────────────────────────────────────────────────


async def test_a_schedule_has_one_tick_pending(harness: Harness, store: Store) -> None:
    """A new schedule is told whole, and its first tick is a delayed job with its name, data and options."""
    cursor = await end_of_log(store)
    next_ms = await _put(harness, store)
    record = await store.schedule(MAIL, _ID)
    assert record == ScheduleRecord(schedule=_schedule(), last_ms=next_ms, pending=True, count=1, ticks=1)
    tick = await store.job(_ref(next_ms))
    assert (tick.state, tick.run_at_ms, tick.name, tick.data) == (State.DELAYED, next_ms, "clean-up", b'{"deep":true}')
    assert (tick.spec.attempts, tick.spec.priority, tick.tenant) == (2, 3, "acme")
    assert await kinds_since(store, cursor) == [EventKind.ADDED, EventKind.DELAYED]


async def test_a_tick_whose_time_has_come_waits(harness: Harness, store: Store) -> None:
    """A first tick for now is runnable at once."""
    next_ms = await _put(harness, store, in_ms=0)
    assert (await claim_one(store)).lease.ref == _ref(next_ms)


async def test_timings_are_kept_as_given(harness: Harness, store: Store) -> None:
    """Every part of a timing comes back as it was put."""
    now_ms = harness.clock.now_ms()
    cron = Timing(cron="0 3 * * 1-5", tz="Europe/Berlin", start_ms=now_ms, end_ms=now_ms + 10**9, limit=7)
    every = Timing(every_ms=1_500, offset_ms=250)
    for schedule_id, timing in (("a", cron), ("b", every)):
        schedule = msgspec.structs.replace(_schedule(schedule_id), timing=timing, overlap=Overlap.ALLOW)
        await store.put_schedule(schedule, next_ms=now_ms + 5_000, seen_ms=None)
        assert (await store.schedule(MAIL, schedule_id)).schedule == schedule


async def test_a_changed_schedule_has_another_tick(harness: Harness, store: Store) -> None:
    """The pending tick of what was there is removed; the new one has the new data."""
    old_ms = await _put(harness, store)
    changed = msgspec.structs.replace(_schedule(), data=b"[1]")
    cursor = await end_of_log(store)
    assert await store.put_schedule(changed, next_ms=old_ms + 5, seen_ms=old_ms) == ScheduleOutcome.DONE
    assert await ids_in(store, State.DELAYED) == [_ref(old_ms + 5).id]
    assert (await store.job(_ref(old_ms + 5))).data == b"[1]"
    assert (await store.schedule(MAIL, _ID)).ticks == 1
    assert await kinds_since(store, cursor) == [EventKind.REMOVED, EventKind.ADDED, EventKind.DELAYED]


async def test_the_same_time_can_be_put_again(harness: Harness, store: Store) -> None:
    """A pending tick is replaced by one for the same time."""
    at_ms = await _put(harness, store)
    changed = msgspec.structs.replace(_schedule(), data=b"[1]")
    assert await store.put_schedule(changed, next_ms=at_ms, seen_ms=at_ms) == ScheduleOutcome.DONE
    assert (await store.job(_ref(at_ms))).data == b"[1]"


async def test_refuses_to_change_what_was_not_seen(harness: Harness, store: Store) -> None:
    """Whoever saw an older tick, none, or one where there is none, changes nothing."""
    at_ms = await _put(harness, store)
    for seen_ms in (None, at_ms - 1, at_ms + 1):
        outcome = await store.put_schedule(_schedule(every_ms=5), next_ms=at_ms + 9, seen_ms=seen_ms)
        assert outcome == ScheduleOutcome.CHANGED
    assert await store.put_schedule(_schedule("new"), next_ms=at_ms, seen_ms=7) == ScheduleOutcome.CHANGED
    assert [record.schedule for record in await store.schedules(MAIL)] == [_schedule()]
    assert await ids_in(store, State.DELAYED) == [_ref(at_ms).id]


async def test_refuses_a_time_that_has_a_job(harness: Harness, store: Store) -> None:
    """A tick that ran is not run again under the same id."""
    at_ms = await _put(harness, store)
    await _claim_tick(harness, store, at_ms)
    assert await store.put_schedule(_schedule(), next_ms=at_ms, seen_ms=at_ms) == ScheduleOutcome.TAKEN
    assert (await store.schedule(MAIL, _ID)).last_ms == at_ms


async def test_a_paused_schedule_has_nothing_pending(harness: Harness, store: Store) -> None:
    """Put without a next tick it rests, and goes on when one is put; its number is kept."""
    at_ms = await _put(harness, store)
    await store.put_schedule(_schedule(), next_ms=None, seen_ms=at_ms, count=4, paused=True)
    paused = await store.schedule(MAIL, _ID)
    assert (paused.paused, paused.pending, paused.next_ms, paused.count) == (True, False, None, 4)
    assert await store.counts(MAIL) == Counts()
    await store.put_schedule(_schedule(), next_ms=at_ms + 1, seen_ms=paused.last_ms, count=5)
    record = await store.schedule(MAIL, _ID)
    assert (record.paused, record.next_ms, record.count) == (False, at_ms + 1, 5)


async def test_a_tick_that_runs_outlives_a_pause_and_adds_nothing(harness: Harness, store: Store) -> None:
    """Pausing stops no job; its claimant cannot set the schedule going again."""
    at_ms = await _put(harness, store)
    claimed = await _claim_tick(harness, store, at_ms)
    await store.put_schedule(_schedule(), next_ms=None, seen_ms=at_ms, paused=True)
    record = (await store.start_tick(claimed.lease)).record
    assert record is not None
    for tick_ms in {at_ms, record.last_ms}:
        assert not await _advance(store, tick_ms, at_ms + _EVERY_MS)
    assert await state_of(store, claimed.lease.ref) == State.ACTIVE
    assert await store.counts(MAIL) == Counts(active=1)


# ── ticking ──────────────────────────────────────────────────────────────────────────────


async def test_a_claimed_tick_is_followed_by_the_next(harness: Harness, store: Store) -> None:
    """Whoever claimed a tick learns how its schedule stands, and adds the one after."""
    at_ms = await _put(harness, store)
    claimed = await _claim_tick(harness, store, at_ms)
    start = await store.start_tick(claimed.lease)
    assert start.running is None
    assert start.record == ScheduleRecord(schedule=_schedule(), last_ms=at_ms, pending=False)
    assert await _advance(store, at_ms, at_ms + _EVERY_MS)
    record = await store.schedule(MAIL, _ID)
    assert (record.next_ms, record.count, record.ticks) == (at_ms + _EVERY_MS, 2, 2)
    tick = await store.job(_ref(at_ms + _EVERY_MS))
    assert (tick.state, tick.data, tick.spec.attempts) == (State.DELAYED, b'{"deep":true}', 2)


async def test_each_tick_is_added_once(harness: Harness, store: Store) -> None:
    """Asked again, or for an older tick, nothing is added: after a stall, a retry, or a lost answer."""
    at_ms = await _put(harness, store)
    claimed = await _claim_tick(harness, store, at_ms)
    assert await _advance(store, at_ms, at_ms + _EVERY_MS)
    for next_ms in (at_ms + _EVERY_MS, at_ms + 2 * _EVERY_MS, None):
        assert not await _advance(store, at_ms, next_ms)
    await settle_one(store, claimed.lease, Retry(BOOM))
    again = await claim_one(store)
    assert (await store.start_tick(again.lease)).record == await store.schedule(MAIL, _ID)
    assert not await _advance(store, at_ms, at_ms + _EVERY_MS)
    assert await ids_in(store, State.DELAYED) == [_ref(at_ms + _EVERY_MS).id]


async def test_refuses_to_advance_while_a_tick_is_pending(harness: Harness, store: Store) -> None:
    """A tick that nobody claimed is not overtaken, though its time is over."""
    at_ms = await _put(harness, store)
    await harness.advance(10 * _EVERY_MS)
    assert not await _advance(store, at_ms, at_ms + _EVERY_MS)
    assert not await _advance(store, at_ms, None)
    assert await store.idle_schedules([MAIL]) == []
    assert (await store.schedule(MAIL, _ID)).next_ms == at_ms


async def test_refuses_to_advance_what_is_not_there(harness: Harness, store: Store) -> None:
    """A removed schedule stays removed, though its last tick is still at work."""
    at_ms = await _put(harness, store)
    claimed = await _claim_tick(harness, store, at_ms)
    await store.remove_schedule(MAIL, _ID)
    assert (await store.start_tick(claimed.lease)).record is None
    assert not await _advance(store, at_ms, at_ms + _EVERY_MS)
    assert not await store.advance_schedule("nowhere", _ID, tick_ms=1, next_ms=2)
    assert await store.schedules(MAIL) == []


async def test_a_schedule_ends(harness: Harness, store: Store) -> None:
    """Without a next tick it stays, ended, with nothing pending, and is left alone."""
    at_ms = await _put(harness, store)
    await _claim_tick(harness, store, at_ms)
    assert await _advance(store, at_ms, None)
    record = await store.schedule(MAIL, _ID)
    assert (record.ended, record.pending, record.paused) == (True, False, False)
    assert await store.idle_schedules([MAIL]) == []
    assert not await _advance(store, at_ms, at_ms + _EVERY_MS)


async def test_a_schedule_with_nothing_pending_is_found(harness: Harness, store: Store) -> None:
    """Whatever became of the newest tick, once it is no longer pending somebody can add the next."""
    at_ms = await _put(harness, store)
    assert await store.idle_schedules([MAIL, "nowhere"]) == []
    claimed = await _claim_tick(harness, store, at_ms)
    for verdict in (Released(), Failed(BOOM)):
        assert [record.id for record in await store.idle_schedules([MAIL])] == [_ID]
        await settle_one(store, claimed.lease, verdict)
        if verdict == Released():
            claimed = await claim_one(store)
    (idle,) = await store.idle_schedules([MAIL])
    assert idle == await store.schedule(MAIL, _ID)
    assert await _advance(store, idle.last_ms, at_ms + _EVERY_MS)
    assert await store.idle_schedules([MAIL]) == []


async def test_a_cancelled_tick_does_not_stop_its_schedule(harness: Harness, store: Store) -> None:
    """A pending tick that was cancelled leaves the schedule idle, not dead."""
    at_ms = await _put(harness, store, in_ms=0)
    await store.cancel(_ref(at_ms), reason="not today")
    assert [record.id for record in await store.idle_schedules([MAIL])] == [_ID]
    assert await _advance(store, at_ms, at_ms + _EVERY_MS)


async def test_a_claimant_that_died_holds_nothing_up(harness: Harness, store: Store) -> None:
    """Killed between the claim and the next tick: the tick runs again, and the next is added once."""
    at_ms = await _put(harness, store)
    await _claim_tick(harness, store, at_ms)
    store = await leave_behind(harness, store)
    assert [record.id for record in await store.idle_schedules([MAIL])] == [_ID]
    await store.rescue([MAIL], limits=CrashLimits())
    claimed = await claim_one(store)
    assert claimed.lease.ref == _ref(at_ms)
    assert await _advance(store, at_ms, at_ms + 5 * _EVERY_MS)
    assert not await _advance(store, at_ms, at_ms + 6 * _EVERY_MS)


# ── overlap ──────────────────────────────────────────────────────────────────────────────


async def _two_ticks(harness: Harness, store: Store, overlap: Overlap) -> tuple[ClaimedJob, ClaimedJob]:
    at_ms = await _put(harness, store, _schedule(overlap=overlap), in_ms=0)
    first = await claim_one(store)
    assert (await store.start_tick(first.lease)).running is None
    await _advance(store, at_ms, at_ms + 1_000)
    return first, await _claim_tick(harness, store, at_ms + 1_000)


async def test_a_tick_learns_that_another_runs(harness: Harness, store: Store) -> None:
    """The second one is counted as skipped; once the first has ended, the next may run."""
    first, second = await _two_ticks(harness, store, Overlap.SKIP)
    start = await store.start_tick(second.lease)
    assert start.running == first.job.id
    assert start.record is not None
    assert (await store.schedule(MAIL, _ID)).skipped == 1
    assert (await store.start_tick(first.lease)).running is None
    await settle_one(store, first.lease, Completed())
    assert (await store.start_tick(second.lease)).running is None


async def test_ticks_may_overlap_if_allowed(harness: Harness, store: Store) -> None:
    """Then nobody is told of another."""
    _, second = await _two_ticks(harness, store, Overlap.ALLOW)
    assert (await store.start_tick(second.lease)).running is None
    assert (await store.schedule(MAIL, _ID)).skipped == 0


async def test_a_tick_whose_lease_ran_out_is_in_nobodys_way(harness: Harness, store: Store) -> None:
    """A worker that went without a word holds its schedule up for a lease at most."""
    at_ms = await _put(harness, store, in_ms=0)
    first = await claim_one(store)
    await store.start_tick(first.lease)
    await _advance(store, at_ms, at_ms + LEASE_MS + 1_000)
    second = await _claim_tick(harness, store, at_ms + LEASE_MS + 1_000)
    assert (await store.start_tick(second.lease)).running is None


async def test_refuses_to_start_a_tick_without_its_lease(harness: Harness, store: Store) -> None:
    """Whoever lost the lease learns nothing and keeps no other tick away; a plain job is no tick."""
    at_ms = await _put(harness, store, in_ms=0)
    first = await claim_one(store)
    await settle_one(store, first.lease, Released())
    assert (await store.start_tick(first.lease)).record is None
    again = await claim_one(store)
    assert (await store.start_tick(again.lease)).record is not None
    await _advance(store, at_ms, at_ms + _EVERY_MS)
    await add_many(store, 1)
    assert (await store.start_tick((await claim_one(store)).lease)).record is None


# ── removing and looking ─────────────────────────────────────────────────────────────────


async def test_a_removed_schedule_leaves_no_tick(harness: Harness, store: Store) -> None:
    """Delayed or waiting, the pending tick goes with its schedule."""
    for in_ms in (_EVERY_MS, 0):
        await _put(harness, store, in_ms=in_ms)
        await store.remove_schedule(MAIL, _ID)
        assert await store.schedules(MAIL) == []
        assert await store.counts(MAIL) == Counts()
        await harness.advance(1)


async def test_schedules_are_listed_by_name(harness: Harness, store: Store) -> None:
    """With their next times; a queue that is not there has none, and is not made by the look."""
    for schedule_id, in_ms in (("b", 5_000), ("c", 1_000), ("a", 9_000)):
        await _put(harness, store, _schedule(schedule_id), in_ms=in_ms)
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
    await _put(harness, store)
    for queue, schedule_id in ((MAIL, "other"), ("nowhere", _ID)):
        with pytest.raises(ScheduleMissing):
            await store.schedule(queue, schedule_id)
        with pytest.raises(ScheduleMissing):
            await store.remove_schedule(queue, schedule_id)
    assert len(await store.schedules(MAIL)) == 1


async def test_sweeping_leaves_the_next_tick(harness: Harness, store: Store) -> None:
    """Draining and cleaning take all but the tick without which the schedule would stop."""
    at_ms = await _put(harness, store)
    await add_many(store, 3, spec=JobSpec(delay_ms=_EVERY_MS))
    await harness.advance(10)
    assert await store.clean(MAIL, State.DELAYED, older_than_ms=0, limit=2) == 2
    assert await store.drain(MAIL, delayed=True) == 1
    await harness.advance(_EVERY_MS)
    assert await claim(store, 0) == ()
    assert await store.drain(MAIL, delayed=True) == 0
    assert (await store.schedule(MAIL, _ID)).next_ms == at_ms


async def test_refuses_to_remove_the_next_tick(harness: Harness, store: Store) -> None:
    """The schedule itself is to be removed, or paused."""
    at_ms = await _put(harness, store)
    with pytest.raises(WrongState):
        await store.remove(_ref(at_ms))
    assert (await store.schedule(MAIL, _ID)).pending


async def test_an_obliterated_queue_has_no_schedules(harness: Harness, store: Store) -> None:
    """They go with all else, and a queue that is made anew has none of them."""
    at_ms = await _put(harness, store)
    await store.obliterate(MAIL, force=False)
    await add_many(store, 1)
    assert await store.schedules(MAIL) == []
    assert await store.put_schedule(_schedule(), next_ms=at_ms, seen_ms=None) == ScheduleOutcome.DONE


async def test_a_schedule_survives_a_crash(harness: Harness, store: Store) -> None:
    """What was put is there for whoever comes after."""
    at_ms = await _put(harness, store)
    before = await store.schedule(MAIL, _ID)
    store = await leave_behind(harness, store)
    assert await store.schedule(MAIL, _ID) == before
    assert await state_of(store, _ref(at_ms)) == State.DELAYED


# ── races ────────────────────────────────────────────────────────────────────────────────


async def test_race_two_who_advance_add_one_tick(harness: Harness, store: Store) -> None:
    """The claimant and whoever looks for idle schedules: one of them adds the next tick."""
    other = await harness.open()
    at_ms = await _put(harness, store, in_ms=0)
    for turn in range(ROUNDS):
        await _claim_tick(harness, store, at_ms)
        next_ms = harness.clock.now_ms() + 1_000
        done = await race(_advance(store, at_ms, next_ms), _advance(other, at_ms, next_ms + 500), turn=turn)
        assert sorted(map(bool, done)) == [False, True]
        (at_ms,) = [next_ms + 500 * n for n, won in enumerate(done) if won]
        assert (await store.counts(MAIL)).delayed == 1
    assert (await store.schedule(MAIL, _ID)).ticks == ROUNDS + 1


async def test_race_a_change_and_an_advance_leave_one_tick(harness: Harness, store: Store) -> None:
    """Whoever comes second finds that the schedule is no longer as it was seen."""
    other = await harness.open()
    for turn in range(ROUNDS):
        at_ms = await _put(harness, store, in_ms=0)
        claimed = await claim_one(store)
        put = other.put_schedule(_schedule(), next_ms=at_ms + 7_000, seen_ms=at_ms)
        done, outcome = await race(_advance(store, at_ms, at_ms + 9_000), put, turn=turn)
        assert (done, outcome) in [(True, ScheduleOutcome.CHANGED), (False, ScheduleOutcome.DONE)]
        assert (await store.counts(MAIL)).delayed == 1
        await settle_one(store, claimed.lease, Completed())
        await store.remove_schedule(MAIL, _ID)
        await harness.advance(1)


async def test_race_of_two_ticks_one_runs(harness: Harness, store: Store) -> None:
    """Two ticks that are started at the same moment do not both give way, nor do both run."""
    other = await harness.open()
    for turn in range(ROUNDS):
        at_ms = await _put(harness, store, in_ms=0)
        first = await claim_one(store)
        await _advance(store, at_ms, at_ms + 1_000)
        second = await _claim_tick(harness, other, at_ms + 1_000)
        starts = await race(store.start_tick(first.lease), other.start_tick(second.lease), turn=turn)
        running = [start.running for start in starts if not isinstance(start, Exception)]
        assert sum(one is None for one in running) == 1
        for claimed in (first, second):
            await settle_one(store, claimed.lease, Completed())
        await store.remove_schedule(MAIL, _ID)
        await harness.advance(1)
