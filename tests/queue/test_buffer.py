"""Producers while the store is away: an error, or a bounded wait; never a silent loss."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from bullpen import (
    BadOption,
    BufferFull,
    BufferLost,
    Bullpen,
    Context,
    NewJob,
    Queue,
    State,
    Store,
    StoreFull,
    StoreUnavailable,
    UsageError,
)
from bullpen.queue.buffer import Buffer
from bullpen.stores.base import Added, AddOutcome
from tests.support.outage import OutageStore
from tests.support.places import Place

MANY = 2_000


@pytest.fixture
async def away(place: Place) -> AsyncIterator[OutageStore]:
    """A store that was there once, and is away now."""
    store = OutageStore(place.store())
    await store.open()
    store.is_away = True
    yield store
    store.is_away = False
    await store.close()
    await place.check()


async def _numbers(store: Store) -> list[int]:
    """The numbers that were added, in the order in which they will run."""
    numbers: list[int] = []
    cursor: str | None = None
    while True:
        page = await store.jobs("work", State.WAITING, limit=500, cursor=cursor)
        numbers += [int(job.data) for job in page.jobs]
        if (cursor := page.next_cursor) is None:
            return numbers


async def _all_sent(buffer: Buffer) -> None:
    async with asyncio.timeout(60):
        while len(buffer):
            await asyncio.sleep(0.01)


async def _outage(store: OutageStore, away_s: float) -> None:
    """Add many one after the other; the store goes away among them for that long, and loses answers at both ends."""
    store.is_away = False
    buffer = Buffer(store, MANY)
    queue = Queue(store, "work", buffer=buffer)
    loop = asyncio.get_running_loop()

    def go() -> None:
        store.is_away = True
        loop.call_later(away_s, come_back)

    def come_back() -> None:
        store.is_away = False
        store.answers_to_lose = 3

    store.answers_to_lose = 1
    outcomes: list[AddOutcome | None] = []
    for number in range(MANY):
        if number == MANY // 20:
            await _all_sent(buffer)  # what follows is taken by the store itself, until it goes
        if number == MANY // 10:
            go()
        outcomes.append((await queue.add("one", number)).outcome)
        if not number % 100:
            await asyncio.sleep(away_s / 40)  # the outage falls among the adds, not after them
    await _all_sent(buffer)
    await buffer.close()
    assert AddOutcome.BUFFERED in outcomes
    assert AddOutcome.ADDED in outcomes
    assert await _numbers(store) == list(range(MANY))


async def test_all_adds_of_an_outage_arrive_once_and_in_order(away: OutageStore) -> None:
    """Two thousand adds, with a store that is away for a second and loses answers when it goes and comes."""
    await _outage(away, away_s=1)


@pytest.mark.soak
async def test_a_long_outage_is_no_different(away: OutageStore) -> None:
    await _outage(away, away_s=20)


async def test_without_a_buffer_an_add_is_an_error(away: OutageStore) -> None:
    """The default: the caller knows at once, and decides."""
    pen = Bullpen(away)

    @pen.job
    async def work(ctx: Context) -> None: ...

    with pytest.raises(StoreUnavailable):
        await work.add()
    with pytest.raises(StoreUnavailable):
        await Queue(away, "work").add("one")


async def test_a_full_buffer_is_an_error_and_keeps_what_it_has(away: OutageStore) -> None:
    """An add that does not fit is refused whole; what was taken arrives."""
    buffer = Buffer(away, 3)
    queue = Queue(away, "work", buffer=buffer)
    for number in range(2):
        assert (await queue.add("one", number)).outcome == AddOutcome.BUFFERED
    with pytest.raises(BufferFull, match="2 jobs wait here already; at most 3 may"):
        await queue.add_bulk([queue.prepare("one", number) for number in (2, 3)])
    await queue.add("one", 2)
    with pytest.raises(BufferFull):
        await queue.add("one", 3)
    assert len(buffer) == 3
    away.is_away = False
    await buffer.close()
    assert await _numbers(away) == [0, 1, 2]


async def test_what_cannot_be_sent_before_the_end_is_told(away: OutageStore) -> None:
    buffer = Buffer(away, 10)
    queue = Queue(away, "work", buffer=buffer)
    for number in range(4):
        await queue.add("one", number)
    with pytest.raises(BufferLost, match="4 jobs"):
        await buffer.close(within_s=0.1)
    await buffer.close()  # said once


async def test_an_application_buffers_the_adds_of_its_types(place: Place) -> None:
    """Also when the store was never there since the start; the id is known at once, and the job can be followed."""
    store = OutageStore(place.store())
    store.is_away = True
    pen = Bullpen(store, buffer=10)

    @pen.job
    async def work(ctx: Context, number: int) -> int:
        return number

    job = await work.options(id="mine").add(7)
    other = await work.add(8)
    assert (job.id, job.outcome) == ("mine", AddOutcome.BUFFERED)
    store.is_away = False
    worker = pen.worker()
    working = asyncio.create_task(worker.run())
    assert [await one.result(timeout=60) for one in (job, other)] == [7, 8]
    worker.stop_now()
    await working
    await pen.close()


async def test_an_application_that_ends_tells_what_it_lost(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store = OutageStore(place.store())
    store.is_away = True
    pen = Bullpen(store, buffer=10)
    await pen.queue("work").add("one")
    monkeypatch.setattr(Buffer.close, "__defaults__", (0.05,))
    with pytest.raises(BufferLost, match="1 jobs"):
        await pen.close()


async def test_a_full_store_is_waited_for_too(away: OutageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was taken is not dropped because the store came back with another trouble."""
    buffer = Buffer(away, 10)
    await Queue(away, "work", buffer=buffer).add("one", 1)
    full = asyncio.Event()

    async def add(jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        full.set()
        raise StoreFull("no room")

    monkeypatch.setattr(away, "add", add)
    away.is_away = False
    async with asyncio.timeout(60):
        await full.wait()
    monkeypatch.undo()
    await buffer.close()
    assert await _numbers(away) == [1]


async def test_a_job_that_the_store_refuses_takes_no_other_along(
    away: OutageStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It cannot be told to its caller any more: it is named in the log, and counted at the end."""
    buffer = Buffer(away, 10)
    queue = Queue(away, "work", buffer=buffer)
    for number in range(5):
        await queue.add("one", number, id=f"job-{number}")
    add = away.add

    async def picky(jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        if any(job.id == "job-3" for job in jobs):
            raise UsageError("not this one")
        return await add(jobs, request=request)

    monkeypatch.setattr(away, "add", picky)
    away.is_away = False
    with pytest.raises(BufferLost, match="1 jobs"):
        await buffer.close()
    assert await _numbers(away) == [0, 1, 2, 4]
    assert "job job-3 of queue work is refused and lost: not this one" in caplog.text


def test_what_an_event_loop_left_behind_is_sent_by_the_next(place: Place) -> None:
    """A script that runs several loops, one after the other, loses nothing between them."""
    store = OutageStore(place.store())
    store.is_away = True
    buffer = Buffer(store, 10)
    queue = Queue(store, "work", buffer=buffer)

    async def add(number: int) -> None:
        await queue.add("one", number)

    async def end() -> list[int]:
        await buffer.close()
        numbers = await _numbers(store)
        await store.close()
        return numbers

    asyncio.run(add(1))
    store.is_away = False
    asyncio.run(add(2))
    assert asyncio.run(end()) == [1, 2]


async def test_a_server_that_buffers_starts_without_the_store(place: Place) -> None:
    """One that does not is told at once."""
    store = OutageStore(place.store())
    store.is_away = True
    async with Bullpen(store, buffer=5) as pen:
        assert (await pen.queue("work").add("one", 1)).outcome == AddOutcome.BUFFERED
        store.is_away = False
    await store.open()
    assert await _numbers(store) == [1]
    await store.close()
    store.is_away = True
    with pytest.raises(StoreUnavailable):
        await Bullpen(store).__aenter__()


@pytest.mark.parametrize("limit", [-1, True, 1.5, "3"])
def test_what_a_limit_cannot_be(limit: object) -> None:
    with pytest.raises(BadOption, match="buffer"):
        Bullpen("sqlite:never-opened.db", buffer=limit)  # type: ignore[arg-type]


_ENDS_WITHOUT_CLOSE = """
import asyncio, sys
from bullpen import Bullpen, Context
from bullpen.settings import store_from
from tests.support.outage import OutageStore

store = OutageStore(store_from(sys.argv[1]))
store.is_away = True
pen = Bullpen(store, buffer=100)

@pen.job
async def work(ctx: Context, number: int) -> None: ...

async def add() -> None:
    for number in range(7):
        await work.add(number)

asyncio.run(add())
"""


async def test_a_process_that_ends_without_a_close_says_what_is_lost(place: Place) -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _ENDS_WITHOUT_CLOSE,
        place.address,
        cwd=Path(__file__).parents[2],
        stderr=pipe,
    )
    _, said = await process.communicate()
    assert process.returncode == 0
    assert "bullpen: 7 jobs that waited for the store are lost" in said.decode().splitlines()
