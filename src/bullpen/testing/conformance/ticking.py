"""Promises of ticks: `start_tick`, `advance_schedule`, and what holds while another tick runs."""

from bullpen.job.record import ClaimedJob, CrashLimits
from bullpen.job.schedule import Overlap, ScheduleRecord
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Failed, Released, Retry
from bullpen.stores.base import ScheduleOutcome, Store
from bullpen.testing.conformance.moves import (
    BOOM,
    LEASE_MS,
    MAIL,
    ROUNDS,
    add_many,
    claim_one,
    ids_in,
    leave_behind,
    race,
    settle_one,
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

# ── ticking ──────────────────────────────────────────────────────────────────────────────


async def test_a_claimed_tick_is_followed_by_the_next(harness: Harness, store: Store) -> None:
    """Whoever claimed a tick learns how its schedule stands, and adds the one after."""
    at_ms = await put_new(harness, store)
    claimed = await claim_tick(harness, store, at_ms)
    start = await store.start_tick(claimed.lease)
    assert start.running is None
    assert start.record == ScheduleRecord(schedule=schedule_of(), last_ms=at_ms, pending=False)
    assert await advance_to(store, at_ms, at_ms + EVERY_MS)
    record = await store.schedule(MAIL, SWEEP)
    assert (record.next_ms, record.count, record.ticks) == (at_ms + EVERY_MS, 2, 2)
    tick = await store.job(tick_ref(at_ms + EVERY_MS))
    assert (tick.state, tick.data, tick.spec.attempts) == (State.DELAYED, b'{"deep":true}', 2)


async def test_each_tick_is_added_once(harness: Harness, store: Store) -> None:
    """Asked again, or for an older tick, nothing is added: after a stall, a retry, or a lost answer."""
    at_ms = await put_new(harness, store)
    claimed = await claim_tick(harness, store, at_ms)
    assert await advance_to(store, at_ms, at_ms + EVERY_MS)
    for next_ms in (at_ms + EVERY_MS, at_ms + 2 * EVERY_MS, None):
        assert not await advance_to(store, at_ms, next_ms)
    await settle_one(store, claimed.lease, Retry(BOOM))
    again = await claim_one(store)
    assert (await store.start_tick(again.lease)).record == await store.schedule(MAIL, SWEEP)
    assert not await advance_to(store, at_ms, at_ms + EVERY_MS)
    assert await ids_in(store, State.DELAYED) == [tick_ref(at_ms + EVERY_MS).id]


async def test_refuses_to_advance_while_a_tick_is_pending(harness: Harness, store: Store) -> None:
    """A tick that nobody claimed is not overtaken, though its time is over."""
    at_ms = await put_new(harness, store)
    await harness.advance(10 * EVERY_MS)
    assert not await advance_to(store, at_ms, at_ms + EVERY_MS)
    assert not await advance_to(store, at_ms, None)
    assert await store.idle_schedules([MAIL]) == []
    assert (await store.schedule(MAIL, SWEEP)).next_ms == at_ms


async def test_refuses_to_advance_what_is_not_there(harness: Harness, store: Store) -> None:
    """A removed schedule stays removed, though its last tick is still at work."""
    at_ms = await put_new(harness, store)
    claimed = await claim_tick(harness, store, at_ms)
    await store.remove_schedule(MAIL, SWEEP)
    assert (await store.start_tick(claimed.lease)).record is None
    assert not await advance_to(store, at_ms, at_ms + EVERY_MS)
    assert not await store.advance_schedule("nowhere", SWEEP, tick_ms=1, next_ms=2)
    assert await store.schedules(MAIL) == []


async def test_a_schedule_ends(harness: Harness, store: Store) -> None:
    """Without a next tick it stays, ended, with nothing pending, and is left alone."""
    at_ms = await put_new(harness, store)
    await claim_tick(harness, store, at_ms)
    assert await advance_to(store, at_ms, None)
    record = await store.schedule(MAIL, SWEEP)
    assert (record.ended, record.pending, record.paused) == (True, False, False)
    assert await store.idle_schedules([MAIL]) == []
    assert not await advance_to(store, at_ms, at_ms + EVERY_MS)


async def test_a_schedule_with_nothing_pending_is_found(harness: Harness, store: Store) -> None:
    """Whatever became of the newest tick, once it is no longer pending somebody can add the next."""
    at_ms = await put_new(harness, store)
    assert await store.idle_schedules([MAIL, "nowhere"]) == []
    claimed = await claim_tick(harness, store, at_ms)
    for verdict in (Released(), Failed(BOOM)):
        assert [record.id for record in await store.idle_schedules([MAIL])] == [SWEEP]
        await settle_one(store, claimed.lease, verdict)
        if verdict == Released():
            claimed = await claim_one(store)
    (idle,) = await store.idle_schedules([MAIL])
    assert idle == await store.schedule(MAIL, SWEEP)
    assert await advance_to(store, idle.last_ms, at_ms + EVERY_MS)
    assert await store.idle_schedules([MAIL]) == []


async def test_a_cancelled_tick_does_not_stop_its_schedule(harness: Harness, store: Store) -> None:
    """A pending tick that was cancelled leaves the schedule idle, not dead."""
    at_ms = await put_new(harness, store, in_ms=0)
    await store.cancel(tick_ref(at_ms), reason="not today")
    assert [record.id for record in await store.idle_schedules([MAIL])] == [SWEEP]
    assert await advance_to(store, at_ms, at_ms + EVERY_MS)


async def test_a_claimant_that_died_holds_nothing_up(harness: Harness, store: Store) -> None:
    """Killed between the claim and the next tick: the tick runs again, and the next is added once."""
    at_ms = await put_new(harness, store)
    await claim_tick(harness, store, at_ms)
    store = await leave_behind(harness, store)
    assert [record.id for record in await store.idle_schedules([MAIL])] == [SWEEP]
    await store.rescue([MAIL], limits=CrashLimits())
    claimed = await claim_one(store)
    assert claimed.lease.ref == tick_ref(at_ms)
    assert await advance_to(store, at_ms, at_ms + 5 * EVERY_MS)
    assert not await advance_to(store, at_ms, at_ms + 6 * EVERY_MS)


# ── overlap ──────────────────────────────────────────────────────────────────────────────


async def _two_ticks(harness: Harness, store: Store, overlap: Overlap) -> tuple[ClaimedJob, ClaimedJob]:
    at_ms = await put_new(harness, store, schedule_of(overlap=overlap), in_ms=0)
    first = await claim_one(store)
    assert (await store.start_tick(first.lease)).running is None
    await advance_to(store, at_ms, at_ms + 1_000)
    return first, await claim_tick(harness, store, at_ms + 1_000)


async def test_a_tick_learns_that_another_runs(harness: Harness, store: Store) -> None:
    """The second one is counted as skipped; once the first has ended, the next may run."""
    first, second = await _two_ticks(harness, store, Overlap.SKIP)
    start = await store.start_tick(second.lease)
    assert start.running == first.job.id
    assert start.record is not None
    assert (await store.schedule(MAIL, SWEEP)).skipped == 1
    assert (await store.start_tick(first.lease)).running is None
    await settle_one(store, first.lease, Completed())
    assert (await store.start_tick(second.lease)).running is None


async def test_ticks_may_overlap_if_allowed(harness: Harness, store: Store) -> None:
    """Then nobody is told of another."""
    _, second = await _two_ticks(harness, store, Overlap.ALLOW)
    assert (await store.start_tick(second.lease)).running is None
    assert (await store.schedule(MAIL, SWEEP)).skipped == 0


async def test_a_tick_whose_lease_ran_out_is_in_nobodys_way(harness: Harness, store: Store) -> None:
    """A worker that went without a word holds its schedule up for a lease at most."""
    at_ms = await put_new(harness, store, in_ms=0)
    first = await claim_one(store)
    await store.start_tick(first.lease)
    await advance_to(store, at_ms, at_ms + LEASE_MS + 1_000)
    second = await claim_tick(harness, store, at_ms + LEASE_MS + 1_000)
    assert (await store.start_tick(second.lease)).running is None


async def test_refuses_to_start_a_tick_without_its_lease(harness: Harness, store: Store) -> None:
    """Whoever lost the lease learns nothing and keeps no other tick away; a plain job is no tick."""
    at_ms = await put_new(harness, store, in_ms=0)
    first = await claim_one(store)
    await settle_one(store, first.lease, Released())
    assert (await store.start_tick(first.lease)).record is None
    again = await claim_one(store)
    assert (await store.start_tick(again.lease)).record is not None
    await advance_to(store, at_ms, at_ms + EVERY_MS)
    await add_many(store, 1)
    assert (await store.start_tick((await claim_one(store)).lease)).record is None


# ── races ────────────────────────────────────────────────────────────────────────────────


async def test_race_two_who_advance_add_one_tick(harness: Harness, store: Store) -> None:
    """The claimant and whoever looks for idle schedules: one of them adds the next tick."""
    other = await harness.open()
    at_ms = await put_new(harness, store, in_ms=0)
    for turn in range(ROUNDS):
        await claim_tick(harness, store, at_ms)
        next_ms = harness.clock.now_ms() + 1_000
        done = await race(advance_to(store, at_ms, next_ms), advance_to(other, at_ms, next_ms + 500), turn=turn)
        assert sorted(map(bool, done)) == [False, True]
        (at_ms,) = [next_ms + 500 * n for n, won in enumerate(done) if won]
        assert (await store.counts(MAIL)).delayed == 1
    assert (await store.schedule(MAIL, SWEEP)).ticks == ROUNDS + 1


async def test_race_a_change_and_an_advance_leave_one_tick(harness: Harness, store: Store) -> None:
    """Whoever comes second finds that the schedule is no longer as it was seen."""
    other = await harness.open()
    for turn in range(ROUNDS):
        at_ms = await put_new(harness, store, in_ms=0)
        claimed = await claim_one(store)
        put = other.put_schedule(schedule_of(), next_ms=at_ms + 7_000, seen_ms=at_ms)
        done, outcome = await race(advance_to(store, at_ms, at_ms + 9_000), put, turn=turn)
        assert (done, outcome) in [(True, ScheduleOutcome.CHANGED), (False, ScheduleOutcome.DONE)]
        assert (await store.counts(MAIL)).delayed == 1
        await settle_one(store, claimed.lease, Completed())
        await store.remove_schedule(MAIL, SWEEP)
        await harness.advance(1)


async def test_race_of_two_ticks_one_runs(harness: Harness, store: Store) -> None:
    """Two ticks that are started at the same moment do not both give way, nor do both run."""
    other = await harness.open()
    for turn in range(ROUNDS):
        at_ms = await put_new(harness, store, in_ms=0)
        first = await claim_one(store)
        await advance_to(store, at_ms, at_ms + 1_000)
        second = await claim_tick(harness, other, at_ms + 1_000)
        starts = await race(store.start_tick(first.lease), other.start_tick(second.lease), turn=turn)
        running = [start.running for start in starts if not isinstance(start, Exception)]
        assert sum(one is None for one in running) == 1
        for claimed in (first, second):
            await settle_one(store, claimed.lease, Completed())
        await store.remove_schedule(MAIL, SWEEP)
        await harness.advance(1)
