"""The hub: reads each log once, and each listener hears exactly what it wants, once and in order."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from bullpen.errors import RecordsUnavailable, StoreError, StoreUnavailable
from bullpen.job.events import Event, EventKind
from bullpen.job.record import JobRef
from bullpen.job.verdicts import Completed, Settlement
from bullpen.server.streams.cursors import LONGEST, Cursors
from bullpen.server.streams.following import Following
from bullpen.server.streams.hub import Hub
from bullpen.server.streams.listening import Listener
from bullpen.server.streams.telling import StreamEvent, Wanted
from bullpen.stores.base import FROM_START, Store
from tests.support.around import StoreAround
from tests.support.places import Place

CURSORS = Cursors(b"secret")


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    store = place.store()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def read() -> list[str]:
    """The queues whose logs were read, once for each time."""
    return []


@pytest.fixture
async def hub(store: Store, read: list[str]) -> AsyncIterator[Hub]:
    around = StoreAround(store)

    async def events(queue: str, **asked: Any) -> Any:
        read.append(queue)
        return await store.events(queue, **asked)

    around.events = events
    hub = Hub(around, store.queues, limit=1_000)
    yield hub
    await hub.stop()


async def _add(store: Store, *ids: str, queue: str = "mail", tenant: str | None = None) -> None:
    from bullpen import Queue

    for job_id in ids:
        await Queue(store, queue).add("work", id=job_id, tenant=tenant)


async def _hear(following: Following, heard: list[StreamEvent], until: int) -> None:
    """Until that many were heard."""
    async for batch in following.batches(beat_s=0.5):
        heard += batch
        if len(heard) >= until:
            return


def _added(heard: list[StreamEvent]) -> list[str | None]:
    return [told.event.job_id for told in heard if told.event is not None and told.event.kind is EventKind.ADDED]


async def test_many_listeners_cost_one_reader(store: Store, hub: Hub, read: list[str]) -> None:
    await _add(store, "before")
    listeners = [hub.listener(Wanted(queue="mail", kinds=frozenset({EventKind.ADDED}))) for _ in range(50)]
    async with asyncio.TaskGroup() as group:
        for listener in listeners:
            group.create_task(_one(hub, listener))
        while hub.listeners < 50 or any(not listener.places for listener in listeners):
            await asyncio.sleep(0)
        before = len(read)
        await _add(store, *[f"job-{n}" for n in range(20)])
    assert len(read) - before <= 21, "one read for each event at most, however many listen"


async def _one(hub: Hub, listener: Any) -> None:
    heard: list[StreamEvent] = []
    async with hub.listening(listener), asyncio.timeout(60):
        while len(heard) < 20:
            await listener.wait(10)
            heard += listener.take()
    assert _added(heard) == [f"job-{n}" for n in range(20)]


async def test_whoever_comes_whenever_from_wherever_misses_nothing(store: Store, hub: Hub) -> None:
    """Listeners come from random places in the log while events are written."""
    dice = random.Random(3)
    await _add(store, *[f"job-{n:03}" for n in range(60)])
    page = await store.events("mail", after=FROM_START, limit=1_000, timeout_ms=0)
    places = [event for event in page.events if event.kind is EventKind.ADDED]
    expected = [f"job-{n:03}" for n in range(200)]
    wanted = Wanted(queue="mail", kinds=frozenset({EventKind.ADDED}))

    async def listen(start: int) -> None:
        await asyncio.sleep(dice.random() / 5)  # not to wait for something: to come at any moment
        heard: list[StreamEvent] = []
        following = Following(hub, CURSORS, wanted, places[start].cursor)
        async with asyncio.timeout(60):
            await _hear(following, heard, 199 - start)
        assert _added(heard) == expected[start + 1 :]

    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(listen(dice.randrange(60)))
        for n in range(60, 200):
            await _add(store, f"job-{n:03}")


async def test_a_listener_hears_its_job_or_tenant_only(store: Store, hub: Hub) -> None:
    await _add(store, "other")
    mine = hub.listener(Wanted(queue="mail", jobs=frozenset({"b", "b.0mark"})))
    theirs = hub.listener(Wanted(tenant="acme"))
    async with hub.listening(mine), hub.listening(theirs):
        await _add(store, "a", tenant="acme")
        await _add(store, "b", tenant="other")
        await _add(store, "c")
        await store.pause("mail")
        claimed = await store.claim({"mail": 3}, worker="w", lease_ms=60_000, request="claim")
        assert not claimed.jobs
        await store.resume("mail")
        claimed = await store.claim({"mail": 4}, worker="w", lease_ms=60_000, request="claim again")
        await store.settle([Settlement(job.lease, Completed()) for job in claimed.jobs], request="settle")
        for listener, job in ((mine, "b"), (theirs, "a")):
            heard: list[StreamEvent] = []
            async with asyncio.timeout(60):
                while not heard or heard[-1].words()["kind"] != "completed":
                    await listener.wait(10)
                    heard += listener.take()
            assert {told.event.job_id for told in heard if told.event} == {job}
            assert heard[0].words()["kind"] == "added"


async def test_a_slow_listener_is_told_of_a_gap_and_costs_no_memory(store: Store) -> None:
    hub = Hub(store, store.queues, limit=10)
    await _add(store, "first")
    slow = hub.listener(Wanted(queue="mail", kinds=frozenset({EventKind.ADDED})))
    async with hub.listening(slow):
        await _add(store, *[f"job-{n}" for n in range(15)])
        async with asyncio.timeout(60):
            while (
                hub._channels["mail"].position != (await store.events("mail", after=None, limit=1, timeout_ms=0)).cursor
            ):
                await asyncio.sleep(0.01)
        heard = slow.take()
        assert heard[0].words()["kind"] == "gap"
        assert len(heard) <= 11
        assert heard[-1].event is not None
        assert heard[-1].event.job_id == "job-14"
    await hub.stop()


async def test_a_job_of_the_same_id_of_another_tenant_is_not_heard(store: Store, hub: Hub) -> None:
    """Who asks for a job hears it within their tenant only, and only the kinds that they asked for."""
    await _add(store, "other")
    mine = hub.listener(Wanted(queue="mail", jobs=frozenset({"a"}), tenant="acme"))
    theirs = hub.listener(Wanted(queue="mail", jobs=frozenset({"a"}), tenant="other"))
    ends = hub.listener(Wanted(queue="mail", tenant="acme", kinds=frozenset({EventKind.REMOVED})))
    async with hub.listening(mine), hub.listening(theirs), hub.listening(ends), asyncio.timeout(60):
        await _add(store, "a", tenant="acme")
        await store.remove(JobRef("mail", "a"))
        await ends.wait(20)
        assert [told.kind for told in ends.take()] == ["removed"]
        assert {told.event.tenant for told in mine.take() if told.event} == {"acme"}
        assert theirs.is_idle


async def test_many_busy_readers_are_sent_to_less_often(hub: Hub) -> None:
    listeners = [hub.listener(Wanted(queue="mail")) for _ in range(400)]
    assert hub.pace_s == 0.1
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        resting = [group.create_task(hub.rest(listener)) for listener in listeners]
        await asyncio.sleep(0)
        assert hub.pace_s == 0.4, "so that all together get no more sends than a few would"
        for listener in listeners:
            listener.end()
    assert all(one.done() for one in resting)
    assert hub.pace_s == 0.1


async def test_a_reader_rests_no_longer_than_its_line_allows() -> None:
    """Else a rest would end in a gap, though the reader is quick enough."""
    listener = Listener(Wanted(queue="mail"), limit=10)
    event = Event(EventKind.PROGRESS, "a", cursor="1")
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        resting = group.create_task(listener.rest(3_600))
        await asyncio.sleep(0)
        listener.put([StreamEvent("mail", event, "1")] * 5)
        listener.wake()
        await asyncio.sleep(0)
        assert not resting.done()
        listener.put([StreamEvent("mail", event, "1")])
        listener.wake()
    await listener.rest(3_600)  # not even begun, as long as so much waits
    assert len(listener.take()) == 6


async def test_a_gap_in_the_log_is_told(store: Store, hub: Hub) -> None:
    await _add(store, "one")
    page = await store.events("mail", after=FROM_START, limit=1, timeout_ms=0)
    await store.obliterate("mail", force=True)
    await _add(store, "two")
    heard: list[StreamEvent] = []
    async with asyncio.timeout(60):
        await _hear(Following(hub, CURSORS, Wanted(queue="mail"), page.cursor), heard, 1)
    assert heard[0].words()["kind"] == "gap"


async def test_all_queues_go_on_from_one_cursor(store: Store, hub: Hub) -> None:
    await _add(store, "m1", queue="mail")
    await _add(store, "r1", queue="reports")
    wanted = Wanted(kinds=frozenset({EventKind.ADDED}))
    following = Following(hub, CURSORS, wanted, None)
    batches = following.batches(beat_s=0.01)
    assert await anext(batches) == ()
    cursor = following.cursor
    await batches.aclose()
    await _add(store, "m2", queue="mail")
    await _add(store, "r2", queue="reports")
    heard: list[StreamEvent] = []
    async with asyncio.timeout(60):
        await _hear(Following(hub, CURSORS, wanted, cursor), heard, 2)
    assert sorted(str(job) for job in _added(heard)) == ["m2", "r2"]
    assert "reports" not in cursor


@pytest.mark.parametrize("place", [lambda n: f"{1_722_900_000_000 + n * 7919}-{n % 3}", lambda n: str(n * 7919)])
def test_a_cursor_has_room_for_hundreds_of_queues(place: Callable[[int], str]) -> None:
    """Whatever there is fits into a request; who is not to know of most queues has all of their own in it."""
    for count in (1, 300, 1_200, 5_000):
        places = {f"queue-{n}-{'x' * 150}": place(n) for n in range(count)}
        cursor = CURSORS.write(places)
        assert len(cursor) <= LONGEST
        found = CURSORS.read(cursor, places)
        assert found == places if count <= 1_200 else found.items() <= places.items()
        own = list(places)[-100:]
        cursors = [CURSORS.write(some, own) for some in (places, {queue: places[queue] for queue in own})]
        assert len({len(cursor) for cursor in cursors}) == 1
        found = CURSORS.read(cursors[0], places)
        assert found == places if count <= 300 else found.keys() >= set(own)


async def test_listeners_of_all_queues_hear_new_ones(store: Store, hub: Hub) -> None:
    await _add(store, "m1", queue="mail")
    listener = hub.listener(Wanted())
    async with hub.listening(listener), asyncio.timeout(60):
        await _add(store, "r1", queue="reports")
        while "reports" not in listener.places:
            await asyncio.sleep(0.02)
        await _add(store, "r2", queue="reports")
        while not listener.is_idle or not listener.take():
            await listener.wait(10)
            if any(told.event and told.event.job_id == "r2" for told in listener.take()):
                break


async def test_new_queues_are_heard_after_the_records_were_away(store: Store) -> None:
    """The names of queues come from the records: one error there must not be the end of it."""
    failures = [RecordsUnavailable("no answer"), RuntimeError("something else")]

    async def names() -> Sequence[str]:
        if listener in hub._everywhere and failures:
            raise failures.pop()
        return await store.queues()

    hub = Hub(store, names, limit=1_000)
    listener = hub.listener(Wanted())
    async with hub.listening(listener), asyncio.timeout(60):
        await _add(store, "r1", queue="reports")
        while "reports" not in listener.places:
            await asyncio.sleep(0.02)
    assert not failures
    await hub.stop()


async def test_a_stream_goes_on_after_an_error_of_the_store(store: Store) -> None:
    """Such as a password that was changed, or a command that the server does not allow for a moment."""
    await _add(store, "one")
    around = StoreAround(store)
    failures = [StoreError("NOPERM"), RuntimeError("something else"), StoreUnavailable("no answer")]

    async def events(queue: str, **wanted: Any) -> Any:
        if wanted["after"] is not None and failures:
            raise failures.pop()
        return await store.events(queue, **wanted)

    around.events = events
    hub = Hub(around, store.queues, limit=1_000)
    following = Following(hub, CURSORS, Wanted(queue="mail", kinds=frozenset({EventKind.ADDED})), None)
    batches = following.batches(tells_start=True)
    async with asyncio.timeout(60):
        await anext(batches)
        await _add(store, "two")
        assert [_added(list(batch)) async for batch in _first(batches)] == [["two"]]
    assert not failures
    await batches.aclose()
    await hub.stop()


async def test_a_channel_waits_for_whoever_catches_up(store: Store, hub: Hub) -> None:
    """Somebody else leaves meanwhile, and what nobody hears is tidied away."""
    await _add(store, "one")
    page = await store.events("mail", after=FROM_START, limit=1, timeout_ms=0)
    following = Following(hub, CURSORS, Wanted(queue="mail", kinds=frozenset({EventKind.ADDED})), page.cursor)
    batches = following.batches(tells_start=True)
    assert await anext(batches) == ()
    hub._tidy()
    await _add(store, "two")
    async with asyncio.timeout(60):
        assert [_added(list(batch)) async for batch in _first(batches)] == [["two"]]
    await batches.aclose()
    hub._tidy()
    assert not hub._channels


async def _first(batches: AsyncIterator[Sequence[StreamEvent]]) -> AsyncIterator[Sequence[StreamEvent]]:
    async for batch in batches:
        if batch:
            yield batch
            return


async def test_a_channel_that_is_just_opened_is_not_tidied_away(store: Store) -> None:
    """Its reader would go on with nobody to stop it."""
    await _add(store, "one")
    around = StoreAround(store)
    asked, answer = asyncio.Event(), asyncio.Event()

    async def events(queue: str, **wanted: Any) -> Any:
        asked.set()
        await answer.wait()
        return await store.events(queue, **wanted)

    around.events = events
    hub = Hub(around, store.queues, limit=1_000)
    async with asyncio.timeout(60):
        listening = asyncio.create_task(_hear(Following(hub, CURSORS, Wanted(queue="mail"), None), [], 1))
        await asked.wait()
        hub._tidy()
        assert list(hub._channels) == ["mail"]
        stopping = asyncio.create_task(hub.stop())
        await asyncio.sleep(0)
        answer.set()
        await asyncio.gather(stopping, listening)
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "events of mail"]


async def test_stopping_ends_all_streams(store: Store, hub: Hub) -> None:
    await _add(store, "one")
    heard: list[StreamEvent] = []
    listening = asyncio.create_task(_hear(Following(hub, CURSORS, Wanted(queue="mail"), None), heard, 10))
    async with asyncio.timeout(60):
        while not hub.listeners:
            await asyncio.sleep(0)
        await hub.stop()
        await hub.stop()
        await listening
