"""Following a queue: every event, in order, over restarts."""

import asyncio

import pytest

from bullpen import FROM_START, Event, EventKind, Gap, Queue, QueueEvents
from bullpen.stores.base import MAX_EVENTS
from tests.queue.working import WatchedStore, complete_next, fail_next
from tests.support.places import Place


async def _next(events: QueueEvents, how_many: int) -> list[Event | Gap]:
    found: list[Event | Gap] = []
    following = aiter(events)
    async with asyncio.timeout(60):
        while len(found) < how_many:
            found.append(await anext(following))
    return found


def _kinds(found: list[Event | Gap]) -> list[tuple[EventKind, str | None]]:
    return [(event.kind, event.job_id) for event in found if isinstance(event, Event)]


async def test_a_job_s_life_is_told_in_order(queue: Queue, store: WatchedStore) -> None:
    events = QueueEvents(store, "work")
    await events.ready()
    job = await queue.add("mail", id="m")
    await job.set_progress(50)
    await complete_next(store, b"7")
    found = await _next(events, 6)
    assert _kinds(found) == [
        (EventKind.ADDED, "m"),
        (EventKind.WAITING, "m"),
        (EventKind.PROGRESS, "m"),
        (EventKind.ACTIVE, "m"),
        (EventKind.COMPLETED, "m"),
        (EventKind.DRAINED, None),
    ]
    completed = found[4]
    assert isinstance(completed, Event)
    assert (completed.value, completed.prev) == (b"7", "active")


async def test_without_a_cursor_it_starts_now(queue: Queue, store: WatchedStore) -> None:
    await queue.add("mail", id="before")
    events = QueueEvents(store, "work")
    cursor = await events.ready()
    assert await events.ready() == cursor == events.cursor
    await queue.add("mail", id="after")
    assert _kinds(await _next(events, 1)) == [(EventKind.ADDED, "after")]


async def test_from_start_tells_all_that_is_kept(queue: Queue, store: WatchedStore) -> None:
    await queue.add("mail", id="a")
    await fail_next(store)
    found = _kinds(await _next(QueueEvents(store, "work", after=FROM_START), 5))
    assert [kind for kind, _ in found][:4] == [
        EventKind.ADDED,
        EventKind.WAITING,
        EventKind.ACTIVE,
        EventKind.FAILED,
    ]


async def test_a_follower_is_woken_by_an_event(queue: Queue, store: WatchedStore) -> None:
    following = asyncio.create_task(_next(QueueEvents(store, "work", after=FROM_START), 1))
    await store.listening.wait()
    await queue.add("mail", id="a")
    assert _kinds(await following) == [(EventKind.ADDED, "a")]


async def test_only_the_queue_s_own_events_are_told(queue: Queue, store: WatchedStore) -> None:
    await Queue(store, "other").add("mail")
    await queue.add("mail", id="mine")
    await Queue(store, "other").add("mail")
    found = await _next(QueueEvents(store, "work", after=FROM_START), 2)
    assert _kinds(found) == [(EventKind.ADDED, "mine"), (EventKind.WAITING, "mine")]


@pytest.mark.parametrize("page", [1, 3, 500])
async def test_pages_of_any_size_tell_the_same(queue: Queue, store: WatchedStore, page: int) -> None:
    jobs = await queue.add_bulk([queue.prepare("mail") for _ in range(5)])
    await queue.add("mail", id="last")
    found = await _next(QueueEvents(store, "work", after=FROM_START, page=page), 12)
    told = [job_id for kind, job_id in _kinds(found) if kind == EventKind.ADDED]
    assert told == [*[job.id for job in jobs], "last"]
    assert len({event.cursor for event in found}) == 12


async def test_a_saved_cursor_goes_on_after_everything_was_closed(place: Place) -> None:
    """What happened while nobody followed is told next: nothing twice, nothing left out."""
    store = place.store()
    await store.open()
    queue = Queue(store, "work")
    for name in ("a", "b", "c"):
        await queue.add("mail", id=name)
    first = await _next(QueueEvents(store, "work", after=FROM_START), 3)
    saved = first[-1].cursor
    await store.close()

    store = place.store()
    await store.open()
    await Queue(store, "work").add("mail", id="d")
    rest = await _next(QueueEvents(store, "work", after=saved), 5)
    await store.close()
    added = [job_id for kind, job_id in _kinds([*first, *rest]) if kind == EventKind.ADDED]
    assert added == ["a", "b", "c", "d"]
    assert len(_kinds([*first, *rest])) == 8


# ── gaps ─────────────────────────────────────────────────────────────────────────────────


async def _overflow(queue: Queue) -> None:
    """More events than are kept."""
    for _ in range(MAX_EVENTS // 1_000 + 2):
        await queue.add_bulk([queue.prepare("mail") for _ in range(500)])


async def test_one_who_comes_too_late_is_told_of_the_gap(queue: Queue, store: WatchedStore) -> None:
    await queue.add("mail", id="first")
    (early,) = await _next(QueueEvents(store, "work", after=FROM_START), 1)
    await _overflow(queue)
    await queue.add("mail", id="last")
    gap, *rest = await _next(QueueEvents(store, "work", after=early.cursor), MAX_EVENTS)
    assert isinstance(gap, Gap)
    kept = await _next(QueueEvents(store, "work", after=FROM_START), len(rest))
    assert rest == kept, "after the gap comes all that is kept"
    assert early not in kept


async def test_from_start_is_never_a_gap(queue: Queue, store: WatchedStore) -> None:
    """Whoever asks for what is kept has missed nothing."""
    await _overflow(queue)
    (first,) = await _next(QueueEvents(store, "work", after=FROM_START), 1)
    assert isinstance(first, Event)


async def test_a_removed_queue_is_a_gap_to_who_followed_it(queue: Queue, store: WatchedStore) -> None:
    await queue.add("mail")
    (early,) = await _next(QueueEvents(store, "work", after=FROM_START), 1)
    await queue.obliterate()
    await queue.add("mail", id="of-the-new-queue")
    found = await _next(QueueEvents(store, "work", after=early.cursor), 2)
    assert isinstance(found[0], Gap)
    assert _kinds(found[1:]) == [(EventKind.ADDED, "of-the-new-queue")]
