"""Promises of `events`: an ordered log for each queue."""

import asyncio

import pytest

from bullpen.errors import BadOption, BullpenError
from bullpen.job.events import Event, EventKind
from bullpen.job.record import CrashKind, CrashLimits, JobRef
from bullpen.job.spec import Dedup, JobSpec
from bullpen.job.verdicts import Completed, Failed, Postponed, Retry, Settlement
from bullpen.stores.base import FROM_START, MAX_EVENTS, EventPage, Store
from bullpen.testing.conformance.moves import (
    BOOM,
    LEASE_MS,
    MAIL,
    PATIENCE_S,
    ROUNDS,
    WORKER,
    add_many,
    add_one,
    claim_one,
    complete_one,
    end_of_log,
    events_since,
    fail_one,
    fresh_request,
    kinds_since,
    race,
    run_one,
)
from bullpen.testing.harness import Harness

_LONG_MS = 600_000


async def _finish_and_ask_for_more(store: Store) -> None:
    """What a worker does: settle a job and claim the next in one trip."""
    held = await claim_one(store)
    await store.exchange(
        [Settlement(held.lease, Completed())], {MAIL: 1}, worker=WORKER, lease_ms=LEASE_MS, request=fresh_request()
    )


# ── what is told ─────────────────────────────────────────────────────────────────────────


async def test_a_job_s_life_is_told_in_order(harness: Harness, store: Store) -> None:
    """From its add to its end, each move of a job is one event, in the order in which it happened."""
    cursor = await end_of_log(store)
    ref = await add_one(store, spec=JobSpec(delay_ms=1_000, attempts=3))
    await harness.advance(1_001)
    await run_one(store, Retry(BOOM))
    await run_one(store, Retry(BOOM, 1_000))
    await harness.advance(1_001)
    await claim_one(store)
    events = [event for event in await events_since(store, cursor) if event.job_id == ref.id]
    assert [event.kind for event in events] == [
        EventKind.ADDED, EventKind.DELAYED, EventKind.WAITING, EventKind.ACTIVE,
        EventKind.WAITING, EventKind.ACTIVE,
        EventKind.DELAYED, EventKind.WAITING, EventKind.ACTIVE,
    ]  # fmt: skip
    times = [event.at_ms for event in events]
    assert times == sorted(times)


async def test_the_end_of_a_job_is_told_with_its_outcome(store: Store) -> None:
    """The result comes with the completion, the failure with the failure."""
    cursor = await end_of_log(store)
    await add_many(store, 2)
    done = await run_one(store, Completed(b'{"n":1}'))
    failed = await run_one(store, Failed(BOOM))
    ends = {event.kind: event for event in await events_since(store, cursor)}
    completion, failure = ends[EventKind.COMPLETED], ends[EventKind.FAILED]
    assert (completion.job_id, completion.value) == (done.id, b'{"n":1}')
    assert failure.job_id == failed.id
    assert failure.failure is not None
    assert failure.failure.message == "boom"


async def test_the_last_attempt_is_told(store: Store) -> None:
    """A job that fails with no attempts left says so, with their number."""
    await add_one(store, spec=JobSpec(attempts=2))
    await run_one(store, Retry(BOOM))
    cursor = await end_of_log(store)
    ref = await fail_one(store)
    (event,) = [event for event in await events_since(store, cursor) if event.kind == EventKind.RETRIES_EXHAUSTED]
    assert (event.job_id, event.count) == (ref.id, 2)


async def test_a_stall_is_told(harness: Harness, store: Store) -> None:
    """A job that lost its worker says so before it waits again."""
    await add_one(store)
    await claim_one(store)
    cursor = await end_of_log(store)
    await harness.advance(LEASE_MS + 1)
    await store.rescue([MAIL], limits=CrashLimits())
    assert set(await kinds_since(store, cursor)) == {EventKind.STALLED, EventKind.WAITING}


async def test_a_queue_that_ran_dry_is_told(store: Store) -> None:
    """When the last job was settled and nothing is left to run, the queue is drained, and not before."""
    await add_many(store, 2)
    cursor = await end_of_log(store)
    await complete_one(store)
    assert EventKind.DRAINED not in await kinds_since(store, cursor)
    await _finish_and_ask_for_more(store)
    assert (await kinds_since(store, cursor))[-1] == EventKind.DRAINED


async def test_a_queue_with_delayed_jobs_is_not_drained(store: Store) -> None:
    """As long as a job is to come, the queue has not run dry."""
    await add_one(store, spec=JobSpec(delay_ms=60_000))
    await add_one(store)
    cursor = await end_of_log(store)
    await _finish_and_ask_for_more(store)
    assert EventKind.DRAINED not in await kinds_since(store, cursor)


async def test_every_event_of_a_job_carries_its_tenant(harness: Harness, store: Store) -> None:
    """Whatever happens to a tenant's job, its events say whose it is."""
    cursor = await end_of_log(store)
    spec = JobSpec(tenant="acme", attempts=9, dedup=Dedup("subject"))
    ref = await add_one(store, own_id="user-1", spec=spec)
    await add_one(store, own_id="user-1", spec=spec)
    await add_one(store, spec=spec)
    await run_one(store, Retry(BOOM))
    await run_one(store, Postponed(60_000))
    await store.promote(ref)
    await claim_one(store)
    await store.set_progress(ref, b"1")
    await harness.advance(LEASE_MS + 1)
    await store.rescue([MAIL], limits=CrashLimits())
    await complete_one(store)
    await store.retry(ref)
    await claim_one(store)
    await store.cancel(ref, reason="")
    await store.report_crash(WORKER, CrashKind.KILLED, limits=CrashLimits())
    await store.remove(ref)
    events = [event for event in await events_since(store, cursor) if event.job_id is not None]
    assert len({event.kind for event in events}) >= 10
    assert {event.tenant for event in events} == {"acme"}


async def test_queues_have_logs_of_their_own(store: Store) -> None:
    """The log of one queue has no event of another."""
    mail, calls = await end_of_log(store), await end_of_log(store, "calls")
    ref, other = await add_one(store), await add_one(store, "calls", own_id="call-1")
    assert {event.job_id for event in await events_since(store, mail)} == {ref.id}
    assert {event.job_id for event in await events_since(store, calls, "calls")} == {other.id}


# ── reading ──────────────────────────────────────────────────────────────────────────────


async def test_no_cursor_starts_at_the_end(store: Store) -> None:
    """Without a cursor nothing old is told, and the answer says where to go on."""
    await add_many(store, 3)
    page = await store.events(MAIL, after=None, limit=10, timeout_ms=0)
    assert (page.events, page.gap) == ((), False)
    ref = await add_one(store)
    assert {event.job_id for event in await events_since(store, page.cursor)} == {ref.id}


async def test_a_log_can_be_read_from_its_start(store: Store) -> None:
    """FROM_START is before the oldest event that is kept, and no gap, also where nothing was told yet."""
    assert await events_since(store, FROM_START, "nowhere") == []
    ref = await add_one(store)
    await complete_one(store)
    events = await events_since(store, FROM_START)
    assert (events[0].kind, events[0].job_id) == (EventKind.ADDED, ref.id)
    assert EventKind.COMPLETED in {event.kind for event in events}


async def test_a_log_can_be_followed_before_its_first_job(store: Store) -> None:
    """A reader that came before the queue misses nothing of it."""
    cursor = await end_of_log(store, "not-yet")
    await add_one(store, "not-yet")
    assert (await kinds_since(store, cursor, "not-yet"))[0] == EventKind.ADDED


async def test_every_event_says_where_to_go_on(store: Store) -> None:
    """The cursor of any event, like that of a page, continues after it: nothing twice, nothing missed."""
    start = await end_of_log(store)
    await add_many(store, 10)
    events = await events_since(store, start)
    for n, event in enumerate(events):
        assert await events_since(store, event.cursor) == events[n + 1 :]
    paged: list[Event] = []
    page = EventPage((), start)
    while len(paged) < len(events):
        page = await store.events(MAIL, after=page.cursor, limit=3, timeout_ms=0)
        assert 1 <= len(page.events) <= 3
        paged += page.events
    assert paged == events


async def test_some_kinds_can_be_passed_over(store: Store) -> None:
    """They are read and not told: the page's cursor is after them, and a full page says that there may be more."""
    start = await end_of_log(store)
    ref = await add_one(store)
    for n in range(5):
        await store.set_progress(ref, str(n).encode())
    await store.pause(MAIL)
    events = await events_since(store, start)
    told: list[Event] = []
    page = EventPage((), start, is_full=True)
    while page.is_full:
        page = await store.events(MAIL, after=page.cursor, limit=3, timeout_ms=0, without={EventKind.PROGRESS})
        assert not page.gap
        told += page.events
    assert told == [event for event in events if event.kind != EventKind.PROGRESS]
    assert page.cursor == events[-1].cursor


async def test_reading_goes_on_after_a_crash(harness: Harness, store: Store) -> None:
    """A cursor is good in another process, and after a crash of the one that gave it."""
    await add_one(store)
    cursor = await end_of_log(store)
    await harness.crash(store)
    survivor = await harness.open()
    ref = await add_one(survivor)
    assert {event.job_id for event in await events_since(survivor, cursor)} == {ref.id}


async def test_a_reader_waits_for_the_first_event(harness: Harness, store: Store) -> None:
    """With no event there, the answer comes with the first one, by whichever store."""
    cursor = await end_of_log(store)
    other = await harness.open()
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        reader = tasks.create_task(store.events(MAIL, after=cursor, limit=10, timeout_ms=_LONG_MS))
        await asyncio.sleep(0)
        ref = await add_one(other)
    assert reader.result().events[0].job_id == ref.id


async def test_a_reader_waits_no_longer_than_asked(store: Store) -> None:
    """When the time is over the page is empty, and its cursor is as good as before."""
    await add_one(store)
    cursor = await end_of_log(store)
    async with asyncio.timeout(PATIENCE_S):
        page = await store.events(MAIL, after=cursor, limit=10, timeout_ms=30)
    assert (page.events, page.gap) == ((), False)
    ref = await add_one(store)
    assert {event.job_id for event in await events_since(store, page.cursor)} == {ref.id}


async def test_a_log_keeps_its_newest_events_and_says_gap(store: Store) -> None:
    """A reader that fell behind what the log keeps is told so, and then reads all that is left."""
    cursor = await end_of_log(store)
    await add_one(store)
    last: list[JobRef] = []
    for _ in range(16):
        last = await add_many(store, 1_000)
    page = await store.events(MAIL, after=cursor, limit=1_000, timeout_ms=0)
    assert page.gap
    kept = [*page.events, *await events_since(store, page.cursor)]
    assert MAX_EVENTS <= len(kept) < 32_000
    assert kept[-1].job_id == last[-1].id


async def test_refuses_a_cursor_that_no_event_gave(store: Store) -> None:
    """A made-up cursor is BadOption, not the beginning of the log."""
    await add_one(store)
    for cursor in ("nonsense", "-1", "½"):
        with pytest.raises(BadOption):
            await store.events(MAIL, after=cursor, limit=10, timeout_ms=0)


async def test_race_a_reader_misses_nothing_of_two_writers(harness: Harness, store: Store) -> None:
    """Whoever follows the log while two write reads every event once, in one order for all."""
    start = await end_of_log(store)
    writer, reader = await harness.open(), await harness.open()
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        followed = tasks.create_task(_follow(reader, start, 2 * ROUNDS * 3))
        for turn in range(ROUNDS):
            left, right = await race(add_one(store), add_many(writer, 2), turn=turn)
            assert not isinstance(left, BullpenError)
            assert not isinstance(right, BullpenError)
    assert followed.result() == await events_since(store, start)


async def _follow(store: Store, cursor: str, count: int) -> list[Event]:
    events: list[Event] = []
    while len(events) < count:
        page = await store.events(MAIL, after=cursor, limit=5, timeout_ms=_LONG_MS)
        assert not page.gap
        events += page.events
        cursor = page.cursor
    return events
