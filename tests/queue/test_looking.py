"""Looking at a queue: counts, pages, and how long its head has been waiting."""

from collections.abc import Awaitable, Callable

import pytest

from bullpen import Queue, State
from bullpen.testing.clock import ManualClock
from tests.queue.working import WatchedStore, claim, complete_next, fail_next


async def _one_of_each(queue: Queue, store: WatchedStore) -> None:
    for name in ("completed", "failed", "active"):
        await queue.add(name, id=f"is-{name}")
    await complete_next(store)
    await fail_next(store)
    await claim(store)
    await queue.add("waiting", id="is-waiting")
    await queue.add("prioritized", id="is-prioritized", priority=1)
    await queue.add("delayed", id="is-delayed", delay=60)


async def test_counts_by_state(queue: Queue, store: WatchedStore) -> None:
    await _one_of_each(queue, store)
    counts = await queue.counts()
    assert (counts.waiting, counts.prioritized, counts.delayed, counts.active) == (1, 1, 1, 1)
    assert (counts.completed, counts.failed, counts.waiting_children) == (1, 1, 0)
    assert counts.unfinished == 4
    assert not counts.paused


@pytest.mark.parametrize("state", [state for state in State if state != State.WAITING_CHILDREN])
async def test_each_state_has_its_own_page(queue: Queue, store: WatchedStore, state: State) -> None:
    await _one_of_each(queue, store)
    for said in (state, str(state)):
        page = await queue.jobs(said)
        assert [(job.id, job.state) for job in page.jobs] == [(f"is-{state}", state)]
        assert page.next_cursor is None


_MOVE_NEXT: dict[str, Callable[[WatchedStore], Awaitable[object]]] = {
    "completed": complete_next,
    "failed": fail_next,
    "active": claim,
}


@pytest.mark.parametrize("state", ["waiting", "prioritized", "delayed", "active", "completed", "failed"])
@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 7, 100])
async def test_pages_together_are_the_whole_list(
    queue: Queue, store: WatchedStore, clock: ManualClock, state: str, newest_first: bool, limit: int
) -> None:
    """Seven jobs, some of them of the same moment: none twice, none left out, in order."""
    options = {"prioritized": {"priority": 2}, "delayed": {"delay": 60}}.get(state, {})
    ids = []
    for n in range(7):
        clock.advance(n % 2)
        ids.append((await queue.add("mail", **options)).id)  # type: ignore[arg-type]
        if state in _MOVE_NEXT:
            await _MOVE_NEXT[state](store)
    await queue.add("mail", priority=1 if state == "waiting" else 0)

    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await queue.jobs(state, limit=limit, cursor=cursor, newest_first=newest_first)
        assert len(page.jobs) <= limit
        found += [job.id for job in page.jobs]
        if (cursor := page.next_cursor) is None:
            break
    assert found == (ids[::-1] if newest_first else ids)


async def test_a_page_goes_on_where_the_last_one_ended_though_jobs_left_meanwhile(
    queue: Queue, store: WatchedStore
) -> None:
    jobs = await queue.add_bulk([queue.prepare("mail") for _ in range(6)])
    first = await queue.jobs("waiting", limit=3)
    await complete_next(store)
    await jobs[2].remove()
    second = await queue.jobs("waiting", limit=3, cursor=first.next_cursor)
    assert [job.id for job in second.jobs] == [job.id for job in jobs[3:]]


async def test_for_how_long_the_next_job_has_been_waiting(
    queue: Queue, store: WatchedStore, clock: ManualClock
) -> None:
    await queue.add("later", delay=2)
    assert await queue.oldest_waiting() is None
    await queue.add("now")
    clock.advance(1_500)
    assert await queue.oldest_waiting() == 1.5
    await claim(store)
    clock.advance(1_000)
    await claim(store, 0)
    assert await queue.oldest_waiting() == 0
    clock.advance(3_000)
    assert await queue.oldest_waiting() == 3
    await queue.drain()
    assert await queue.oldest_waiting() is None
