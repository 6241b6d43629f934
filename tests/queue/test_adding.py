"""Adding one, many, to several queues, and at the same moment."""

import asyncio
import gc
import weakref

import pytest

from bullpen import BadOption, BullpenError, JobOptions, NewJob, Queue, State, StoreNotOpen, add_all
from bullpen.testing.clock import ManualClock
from tests.queue.working import WatchedStore
from tests.support.places import Place


async def test_an_added_job_is_as_it_was_asked_for(queue: Queue, clock: ManualClock) -> None:
    job = await queue.add("mail", {"to": "ada"}, priority=3, attempts=5, tenant="acme", tags=["a", "b"])
    assert job.outcome == "added"
    assert repr(job) == f"<Job work/{job.id}>"
    record = await job.record()
    assert (record.ref, record.name, record.state) == (job.ref, "mail", State.PRIORITIZED)
    assert (record.priority, record.spec.attempts, record.tenant) == (3, 5, "acme")
    assert record.spec.tags == ("a", "b")
    assert record.added_ms == clock.now_ms()
    assert await job.data() == {"to": "ada"}


async def test_no_data_is_an_empty_object(queue: Queue) -> None:
    assert await (await queue.add("mail")).data() == {}


@pytest.mark.parametrize("data", [0, False, "", [], "text", [1, "a", None], {"a": {"b": 1.5}}])
async def test_any_json_is_data(queue: Queue, data: object) -> None:
    assert await (await queue.add("mail", data)).data() == data


async def test_a_queue_s_defaults_hold_where_an_add_says_nothing(store: WatchedStore, clock: ManualClock) -> None:
    queue = Queue(store, "work", defaults=JobOptions(attempts=3, priority=7), clock=clock)
    record = await (await queue.add("mail", priority=1)).record()
    assert (record.spec.attempts, record.priority) == (3, 1)


async def test_a_taken_id_gives_the_job_that_has_it(queue: Queue) -> None:
    first = await queue.add("mail", {"n": 1}, id="order-1")
    second = await queue.add("mail", {"n": 2}, id="order-1")
    assert (first.outcome, second.outcome) == ("added", "duplicate")
    assert second.ref == first.ref
    assert await second.data() == {"n": 1}


# ── many ─────────────────────────────────────────────────────────────────────────────────


async def test_bulk_adds_in_order_and_in_one_trip(queue: Queue, store: WatchedStore) -> None:
    jobs = await queue.add_bulk([queue.prepare("mail", {"n": n}) for n in range(700)])
    assert store.adds == [700]
    assert [await job.data() for job in jobs[:3]] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert (await queue.counts()).waiting == 700


async def test_bulk_with_nothing_in_it_asks_nothing(queue: Queue, store: WatchedStore) -> None:
    assert await queue.add_bulk([]) == []
    assert await add_all([]) == []
    assert store.adds == []


async def test_bulk_refuses_another_queue_s_job(queue: Queue, store: WatchedStore) -> None:
    other = Queue(store, "other")
    with pytest.raises(BadOption, match=r"jobs\[1\]: is for queue 'other', not 'work'; use add_all"):
        await queue.add_bulk([queue.prepare("mail"), other.prepare("mail")])
    assert await store.queues() == []


async def test_all_adds_to_several_queues_in_one_step(queue: Queue, store: WatchedStore) -> None:
    other = Queue(store, "other")
    jobs = await add_all([(queue, queue.prepare("a")), (other, other.prepare("b")), (queue, queue.prepare("c"))])
    assert [job.ref.queue for job in jobs] == ["work", "other", "work"]
    assert [(await job.record()).name for job in jobs] == ["a", "b", "c"]
    assert store.adds == [3]


async def test_all_is_refused_wholly_when_one_job_is_of_another_store(
    queue: Queue, store: WatchedStore, place: Place
) -> None:
    elsewhere = Queue(place.store(), "work")
    with pytest.raises(BadOption, match=r"jobs\[1\]: was not prepared by a queue of the same store"):
        await add_all([(queue, queue.prepare("a")), (elsewhere, elsewhere.prepare("b"))])
    assert await store.queues() == []


async def test_all_is_undone_wholly_when_one_job_cannot_be_stored(queue: Queue, store: WatchedStore) -> None:
    """The first two are sound and in another queue, but it is all of them or none."""
    other = Queue(store, "other")
    too_long: int = 2**70
    bad = NewJob("other", "b", spec=JobOptions(start_by=5).to_spec(too_long))
    with pytest.raises(OverflowError):
        await add_all([(queue, queue.prepare("a")), (queue, queue.prepare("a")), (other, bad)])
    assert await store.queues() == []
    job = await queue.add("a")
    assert [one.id for one in (await queue.jobs("waiting")).jobs] == [job.id]


# ── at the same moment ───────────────────────────────────────────────────────────────────


async def test_adds_of_one_moment_travel_together(queue: Queue, store: WatchedStore) -> None:
    """A hundred requests of a web server make one trip, and each gets its own job, whatever its queue."""
    other = Queue(store, "other")
    jobs = await asyncio.gather(*[(other if n % 2 else queue).add("mail", {"n": n}) for n in range(100)])
    assert store.adds == [100]
    assert [await job.data() for job in jobs] == [{"n": n} for n in range(100)]
    assert {job.ref.queue for job in jobs[::2]} == {"work"}


async def test_a_large_company_travels_in_parts(queue: Queue, store: WatchedStore) -> None:
    await asyncio.gather(*[queue.add("mail") for _ in range(1_200)])
    assert store.adds == [200] * 6
    assert (await queue.counts()).waiting == 1_200


async def test_adds_gather_while_as_many_trips_as_help_are_under_way(queue: Queue, store: WatchedStore) -> None:
    """A store with much to do is asked less often for more; one add after another still leaves at once."""
    go_on = store.hold_adds()
    adds = []
    for n in range(30):
        adds.append(asyncio.ensure_future(queue.add("mail", {"n": n})))
        await asyncio.sleep(0)  # a turn of the loop of its own
        await asyncio.sleep(0)
    adds[10].cancel()
    await asyncio.sleep(0)
    go_on.set()
    answers = await asyncio.gather(*adds, return_exceptions=True)
    assert store.adds == [1, 1, 27]  # whoever was cancelled before the trip began has added nothing
    assert [isinstance(answer, asyncio.CancelledError) for answer in answers].index(True) == 10
    assert (await queue.counts()).waiting == 29


async def test_a_bad_add_does_not_hinder_those_of_the_same_moment(queue: Queue, store: WatchedStore) -> None:
    adds = [queue.add("mail"), queue.add("\ud800"), queue.add("mail", tenant="\ud800"), queue.add("mail", object())]
    answers = await asyncio.gather(*adds, queue.add("mail"), return_exceptions=True)
    assert [isinstance(answer, BullpenError) for answer in answers] == [False, True, True, True, False]
    assert store.adds == [2]


async def test_an_error_of_the_store_reaches_everyone_who_travelled(store: WatchedStore, queue: Queue) -> None:
    await store.close()
    answers = await asyncio.gather(*[queue.add("mail") for _ in range(3)], return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreNotOpen] * 3
    await store.open()


async def test_a_caller_who_goes_away_takes_no_other_along(queue: Queue) -> None:
    adds = [asyncio.ensure_future(queue.add("mail", {"n": n})) for n in range(3)]
    await asyncio.sleep(0)
    adds[1].cancel()
    first, _, third = await asyncio.gather(*adds, return_exceptions=True)
    assert not isinstance(first, BaseException)
    assert not isinstance(third, BaseException)
    assert (await first.data(), await third.data()) == ({"n": 0}, {"n": 2})


async def test_a_store_that_was_added_to_can_be_forgotten(place: Place) -> None:
    """Whoever makes a store for each request must not fill the memory with them."""
    store = place.store()
    await store.open()
    await Queue(store, "work").add("mail")
    await store.close()
    forgotten = weakref.ref(store)
    del store
    gc.collect()
    assert forgotten() is None


def test_one_store_serves_one_event_loop_after_another(place: Place) -> None:
    store = place.store()
    queue = Queue(store, "work")

    async def add() -> str:
        await store.open()
        try:
            return (await queue.add("mail")).id
        finally:
            await store.close()

    assert asyncio.run(add()) != asyncio.run(add())
