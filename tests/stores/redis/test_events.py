"""The log as a Redis stream: cursors, gaps, and entries that are not ours."""

import asyncio

import pytest

from bullpen.errors import BadOption
from bullpen.job.events import EventKind
from bullpen.job.spec import NewJob
from bullpen.stores.base import FROM_START
from bullpen.stores.redis import RedisStore
from tests.support.redis_harness import RedisHarness


async def cursor_at_end(store: RedisStore) -> str:
    return (await store.events("mail", after=None, limit=1, timeout_ms=0)).cursor


async def test_events_come_after_the_cursor_in_order(store: RedisStore) -> None:
    start = await cursor_at_end(store)
    await store.add([NewJob("mail", "a"), NewJob("mail", "b")], request="r1")
    first = await store.events("mail", after=start, limit=3, timeout_ms=0)
    rest = await store.events("mail", after=first.cursor, limit=9, timeout_ms=0)
    told = [(event.kind, event.job_id) for event in first.events + rest.events]
    assert told == [
        (EventKind.ADDED, "1"),
        (EventKind.WAITING, "1"),
        (EventKind.ADDED, "2"),
        (EventKind.WAITING, "2"),
    ]
    assert not first.gap
    assert not rest.gap


async def test_a_reader_is_woken_by_the_first_event(store: RedisStore) -> None:
    start = await cursor_at_end(store)
    reading = asyncio.create_task(store.events("mail", after=start, limit=9, timeout_ms=120_000))
    await store.pause("mail")
    page = await asyncio.wait_for(reading, 60)
    assert [event.kind for event in page.events] == [EventKind.PAUSED]


async def test_a_gap_is_told_exactly(harness: RedisHarness, store: RedisStore) -> None:
    """A cursor at the edge of what is left has missed nothing; one before it has."""
    start = await cursor_at_end(store)
    await store.add([NewJob("mail", "a"), NewJob("mail", "b")], request="r1")
    events = (await store.events("mail", after=start, limit=9, timeout_ms=0)).events
    await harness.raw.xtrim(f"{harness.prefix}:mail:events", maxlen=2, approximate=False)
    edge = await store.events("mail", after=events[1].cursor, limit=9, timeout_ms=0)
    assert (edge.gap, edge.events) == (False, events[2:])
    behind = await store.events("mail", after=events[0].cursor, limit=9, timeout_ms=0)
    assert (behind.gap, behind.events) == (True, events[2:])
    assert (await store.events("mail", after=start, limit=9, timeout_ms=0)).gap


async def test_reading_from_the_start_has_no_gap(harness: RedisHarness, store: RedisStore) -> None:
    """The start is the oldest event that is kept, whatever was dropped before it."""
    await store.add([NewJob("mail", "a"), NewJob("mail", "b")], request="r1")
    await harness.raw.xtrim(f"{harness.prefix}:mail:events", maxlen=1, approximate=False)
    page = await store.events("mail", after=FROM_START, limit=9, timeout_ms=0)
    assert [(event.kind, event.job_id) for event in page.events] == [(EventKind.WAITING, "2")]
    assert not page.gap
    assert not (await store.events("mail", after=page.cursor, limit=9, timeout_ms=0)).gap


async def test_entries_of_others_are_passed_over(harness: RedisHarness, store: RedisStore) -> None:
    """A queue's log may carry events that users of BullMQ made up."""
    start = await cursor_at_end(store)
    await harness.raw.xadd(f"{harness.prefix}:mail:events", {"event": "made-up", "x": "1"})
    page = await store.events("mail", after=start, limit=9, timeout_ms=0)
    assert page.events == ()
    assert page.cursor != start


async def test_a_cursor_that_no_event_gave_is_refused(store: RedisStore) -> None:
    with pytest.raises(BadOption, match="cursor"):
        await store.events("mail", after="yesterday", limit=9, timeout_ms=0)
