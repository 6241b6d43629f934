"""Promises of `job`, `jobs`, `counts`, `queues` and `oldest_waiting_ms`."""

import pytest

from bullpen.errors import BadOption, BullpenError, JobMissing, QueueMissing
from bullpen.job.record import JobRef
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.job.verdicts import Released
from bullpen.stores.base import Counts, Store
from bullpen.testing.conformance.moves import (
    MAIL,
    add_many,
    add_one,
    claim,
    claim_ids,
    claim_one,
    complete_one,
    fail_one,
    ids_in,
    race,
    settle_one,
)
from bullpen.testing.harness import Harness


async def _pages(store: Store, state: State, *, limit: int, newest_first: bool = False) -> list[list[str]]:
    """The ids of a state, page by page until the end."""
    pages: list[list[str]] = []
    cursor: str | None = None
    while True:
        page = await store.jobs(MAIL, state, limit=limit, cursor=cursor, newest_first=newest_first)
        pages.append([job.id for job in page.jobs])
        cursor = page.next_cursor
        if cursor is None:
            return pages


# ── counts and queues ────────────────────────────────────────────────────────────────────


async def test_counts_are_exact(store: Store) -> None:
    """Every job is counted in one state, the one that its record says."""
    await add_many(store, 10)
    for _ in range(3):
        await complete_one(store)
    for _ in range(2):
        await fail_one(store)
    await claim(store, 1)
    await add_many(store, 5, spec=JobSpec(priority=1))
    await add_many(store, 6, spec=JobSpec(delay_ms=60_000))
    counts = await store.counts(MAIL)
    assert counts == Counts(waiting=4, prioritized=5, delayed=6, active=1, completed=3, failed=2)
    assert counts.unfinished == 16


async def test_an_empty_queue_still_counts(store: Store) -> None:
    """A queue that once had a job is there, with nothing in it."""
    await store.remove(await add_one(store))
    assert await store.counts(MAIL) == Counts()
    assert list(await store.queues()) == [MAIL]


async def test_queues_are_listed_by_name(store: Store) -> None:
    """The names of all queues come sorted, each once."""
    for queue in ("b", "a-2", "c.d", "a", "b"):
        await add_one(store, queue)
    assert list(await store.queues()) == ["a", "a-2", "b", "c.d"]


async def test_refuses_to_look_into_a_missing_queue(store: Store) -> None:
    """A queue that never was has no counts, no pages and no oldest job: QueueMissing."""
    await add_one(store)
    with pytest.raises(QueueMissing):
        await store.counts("nowhere")
    with pytest.raises(QueueMissing):
        await store.jobs("nowhere", State.WAITING, limit=10)
    with pytest.raises(QueueMissing):
        await store.oldest_waiting_ms("nowhere")
    assert list(await store.queues()) == [MAIL]


async def test_refuses_a_missing_job(store: Store) -> None:
    """A job that was never added, or is another queue's, is missing: JobMissing."""
    ref = await add_one(store)
    await add_one(store, "calls", own_id="user-1")
    for missing in (
        JobRef(MAIL, "nobody"), JobRef(MAIL, "user-1"), JobRef(MAIL, ref.id + "0"), JobRef(MAIL, "9" * 40),
        JobRef("calls", ref.id), JobRef("nowhere", ref.id),
    ):  # fmt: skip
        with pytest.raises(JobMissing):
            await store.job(missing)


async def test_race_counts_are_of_one_moment(harness: Harness, store: Store) -> None:
    """However jobs move meanwhile, the counts add up to all of them."""
    await add_many(store, 30)
    other = await harness.open()
    _, sums = await race(_complete_all(store, 30), _sums_until_done(other, 30), turn=0)
    assert not isinstance(sums, BullpenError)
    assert set(sums) == {30}


async def _complete_all(store: Store, count: int) -> None:
    for _ in range(count):
        await complete_one(store)


async def _sums_until_done(store: Store, count: int) -> list[int]:
    sums = []
    while True:
        counts = await store.counts(MAIL)
        sums.append(counts.unfinished + counts.completed)
        if counts.completed == count:
            return sums


# ── pages ────────────────────────────────────────────────────────────────────────────────


async def test_pages_show_runnable_jobs_in_the_order_in_which_they_run(store: Store) -> None:
    """Waiting and prioritized jobs are paged in the order in which a claim takes them, or against it."""
    for spec in (JobSpec(), JobSpec(), JobSpec(lifo=True), JobSpec(), JobSpec(lifo=True)):
        await add_one(store, spec=spec)
    for priority in (5, 2, 5, 2, 9):
        await add_one(store, spec=JobSpec(priority=priority))
    waiting, ranked = await ids_in(store, State.WAITING), await ids_in(store, State.PRIORITIZED)
    for state, ids in ((State.WAITING, waiting), (State.PRIORITIZED, ranked)):
        assert await _pages(store, state, limit=2) == [ids[:2], ids[2:4], ids[4:]]
        back = ids[::-1]
        assert await _pages(store, state, limit=2, newest_first=True) == [back[:2], back[2:4], back[4:]]
    assert await claim_ids(store) == waiting + ranked


async def test_pages_show_delayed_jobs_by_due_time(store: Store) -> None:
    """Delayed jobs are paged in the order in which they are due, or against it."""
    refs = [await add_one(store, spec=JobSpec(delay_ms=delay_ms)) for delay_ms in (30_000, 10_000, 20_000)]
    last, first, second = (ref.id for ref in refs)
    assert await _pages(store, State.DELAYED, limit=2) == [[first, second], [last]]
    assert await _pages(store, State.DELAYED, limit=2, newest_first=True) == [[last, second], [first]]


async def test_pages_show_finished_jobs_by_their_end(harness: Harness, store: Store) -> None:
    """Finished jobs are paged in the order in which they ended, or against it."""
    await add_many(store, 10)
    ended: dict[State, list[str]] = {State.COMPLETED: [], State.FAILED: []}
    for n in range(10):
        state, finish = (State.FAILED, fail_one) if n % 2 else (State.COMPLETED, complete_one)
        ended[state].append((await finish(store)).id)
        await harness.advance(1)
    for state, ids in ended.items():
        assert await _pages(store, state, limit=2) == [ids[:2], ids[2:4], ids[4:]]
        back = ids[::-1]
        assert await _pages(store, state, limit=3, newest_first=True) == [back[:3], back[3:]]


async def test_pages_show_active_jobs(store: Store) -> None:
    """All active jobs are found over the pages, each once, with who runs them."""
    refs = await add_many(store, 5)
    await claim(store, 5, worker="worker-7")
    pages = await _pages(store, State.ACTIVE, limit=2)
    assert sorted(job_id for page in pages for job_id in page) == sorted(ref.id for ref in refs)
    all_of_them = await store.jobs(MAIL, State.ACTIVE, limit=10)
    assert {job.worker for job in all_of_them.jobs} == {"worker-7"}


async def test_a_full_last_page_is_the_end(store: Store) -> None:
    """A page says that it is the last, also when it is full; a state with no jobs is one empty page."""
    await add_many(store, 4)
    assert [len(page) for page in await _pages(store, State.WAITING, limit=2)] == [2, 2]
    assert await _pages(store, State.FAILED, limit=2) == [[]]


async def test_a_job_that_comes_later_does_not_shift_the_pages(store: Store) -> None:
    """Whoever pages while jobs are added sees none twice and misses none of the old ones."""
    refs = await add_many(store, 4)
    first = await store.jobs(MAIL, State.WAITING, limit=2)
    refs += await add_many(store, 2)
    rest = await store.jobs(MAIL, State.WAITING, limit=10, cursor=first.next_cursor)
    assert [job.ref for job in first.jobs + rest.jobs] == refs


async def test_refuses_a_cursor_that_no_page_gave(store: Store) -> None:
    """A made-up cursor is BadOption, not the first page."""
    await add_many(store, 3)
    for cursor in ("", "nonsense", "1,2,3", "½"):
        with pytest.raises(BadOption):
            await store.jobs(MAIL, State.WAITING, limit=2, cursor=cursor)


# ── oldest_waiting_ms ────────────────────────────────────────────────────────────────────


async def test_the_oldest_job_tells_how_long_the_queue_lags(harness: Harness, store: Store) -> None:
    """It is the time since when the next job could have run, with or without a priority."""
    await add_one(store, spec=JobSpec(priority=1))
    ranked_ms = (await store.jobs(MAIL, State.PRIORITIZED, limit=1)).jobs[0].added_ms
    assert await store.oldest_waiting_ms(MAIL) == ranked_ms
    await harness.advance(5_000)
    next_one = await store.job(await add_one(store))
    await harness.advance(5_000)
    await add_one(store)
    assert await store.oldest_waiting_ms(MAIL) == next_one.added_ms


async def test_nothing_runnable_has_no_oldest(store: Store) -> None:
    """Delayed, running and finished jobs do not lag: None."""
    await add_many(store, 2)
    await complete_one(store)
    await claim_one(store)
    await add_one(store, spec=JobSpec(delay_ms=60_000))
    assert await store.oldest_waiting_ms(MAIL) is None


async def test_a_job_that_came_back_lags_from_then_on(harness: Harness, store: Store) -> None:
    """A job that was handed back could have run since then, not since its add."""
    await add_one(store)
    held = await claim_one(store)
    await harness.advance(5_000)
    back_ms = harness.clock.now_ms()
    await settle_one(store, held.lease, Released())
    oldest_ms = await store.oldest_waiting_ms(MAIL)
    assert oldest_ms is not None
    assert back_ms <= oldest_ms <= harness.clock.now_ms()


# ── many at a time ───────────────────────────────────────────────────────────────────────


async def test_many_jobs_are_looked_at_in_one_trip(store: Store) -> None:
    """Each is told as it is told alone, whatever its state; what is not there is None, in its place."""
    failed, completed = await add_many(store, 2)
    await fail_one(store)
    await complete_one(store)
    (active,) = await add_many(store, 1)
    await claim(store, 1)
    (waiting,) = await add_many(store, 1)
    (prioritized,) = await add_many(store, 1, spec=JobSpec(priority=1))
    (delayed,) = await add_many(store, 1, spec=JobSpec(delay_ms=60_000))
    (grouped,) = await add_many(store, 1, spec=JobSpec(group="acme"))
    (urgent,) = await add_many(store, 1, spec=JobSpec(group="acme", priority=1))
    refs = [failed, completed, active, waiting, prioritized, delayed, grouped, urgent]
    looked = await store.look(MAIL, ["none", *(ref.id for ref in refs), "999999"])
    assert looked[0] is None
    assert looked[-1] is None
    assert list(looked[1:-1]) == [await store.job(ref) for ref in refs]
    assert await store.look(MAIL, []) == []
    assert await store.look("nowhere", ["1"]) == [None]
