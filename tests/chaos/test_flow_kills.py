"""Flows whose workers are killed all the time: parents run after all their children, with all results."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bullpen import Bullpen, ChildState, QueueMissing, State
from tests.chaos.crew import Crew
from tests.chaos.flow_actors import FAN_OUT, QUEUES, ROOTS, TARGETS, application, prepared
from tests.support.redis_server import running_redis
from tests.support.sqlite_harness import check_file
from tests.worker.waiting import until

pytestmark = pytest.mark.timeout(300)

_KILL_EVERY_S = 0.5
_LIMIT_S = 200
_CHILDREN = 1_000
_JOBS = 200


@pytest.fixture(params=["sqlite", "redis"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:{tmp_path}/queue.db"
        check_file(tmp_path / "queue.db")
    else:
        with running_redis() as server:
            yield server.url


@pytest.fixture
async def pen(address: str) -> AsyncIterator[Bullpen]:
    async with application(address) as pen:
        yield pen


@contextlib.asynccontextmanager
async def under_kills(pen: Bullpen, address: str) -> AsyncIterator[Crew]:
    crew = Crew(pen.store, "tests.chaos.flow_actors", address)
    for _ in range(3):
        await crew.enter()
    killing = asyncio.create_task(_kill_now_and_then(crew))
    try:
        yield crew
    finally:
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)
        await crew.leave()


async def _kill_now_and_then(crew: Crew) -> None:
    while True:
        await asyncio.sleep(_KILL_EVERY_S)  # the beat of the kills
        # On a machine that takes longer to start a process than we to kill one, nothing would ever be done.
        await until(crew.missing, lambda missing: missing <= 1, limit_s=_LIMIT_S)
        await crew.kill_one()


async def test_a_thousand_children_in_ten_queues(pen: Bullpen, address: str) -> None:
    """Their parent runs after all of them and has all results, though a worker dies every half second."""
    root = pen.types[ROOTS, "root"]
    job = await pen.flow(root.prepare(), [prepared(pen, n) for n in range(_CHILDREN)])
    async with under_kills(pen, address) as crew:
        assert await job.result(_LIMIT_S) == [n * 2 for n in range(_CHILDREN)]
    record = await job.record()
    assert record.attempts_made == 1
    print(f"{crew.kills} kills, root activated {record.epoch} times, crashes {record.crashes}")
    assert {child.state for child in await job.children()} == {ChildState.COMPLETED}
    for queue in QUEUES:
        assert (await pen.queue(queue).counts()).unfinished == 0


async def test_children_that_their_parent_adds_itself(pen: Bullpen, address: str) -> None:
    """Parents that die while they add their children, or before they wait, add none twice and get all results."""
    dynamic = pen.types[ROOTS, "dynamic"]
    async with under_kills(pen, address) as crew:
        jobs = [await dynamic.add(40) for _ in range(10)]
        for job in jobs:
            assert await job.result(_LIMIT_S) == [n * 2 for n in range(40)]
    for job in jobs:
        assert len(await job.children()) == 40
    print(f"{crew.kills} kills")


async def test_what_follows_a_completion_is_there_with_it(pen: Bullpen, address: str) -> None:
    """Each job that completed has its five followers, once; and no other has any."""
    fan_out = pen.types[FAN_OUT, "fan_out"]
    jobs = [await fan_out.add(n) for n in range(_JOBS)]
    watching = asyncio.Event()
    torn: list[str] = []

    async def watch() -> None:
        """At any moment: as many followers in each queue as completions, or the two were not one step."""
        while not watching.is_set():
            completed, followers = await _counts(pen)
            # Counted one after the other while others work: what is counted later may only be more.
            torn.extend(f"{completed} completed, {n} followers" for n in followers if n < completed)
            await asyncio.sleep(0)

    looking = asyncio.create_task(watch())
    async with under_kills(pen, address) as crew:
        await until(pen.queue(FAN_OUT).counts, lambda counts: counts.unfinished == 0, limit_s=_LIMIT_S)
    watching.set()
    await looking
    assert torn == []
    assert await _counts(pen) == (_JOBS, [_JOBS] * len(TARGETS))
    for target in TARGETS:
        followers = await _all_of(pen, target)
        assert sorted(followers) == list(range(_JOBS))
    print(f"{crew.kills} kills, {len(jobs)} jobs")


async def _counts(pen: Bullpen) -> tuple[int, list[int]]:
    completed = (await pen.queue(FAN_OUT).counts()).completed
    followers = []
    for target in TARGETS:
        try:
            followers.append((await pen.queue(target).counts()).waiting)
        except QueueMissing:
            followers.append(0)
    return completed, followers


async def _all_of(pen: Bullpen, queue: str) -> list[int]:
    found: list[int] = []
    cursor = None
    while True:
        page = await pen.queue(queue).jobs(State.WAITING, limit=500, cursor=cursor)
        found += [(await pen.queue(queue).job(job.id).data())["of"] for job in page.jobs]
        cursor = page.next_cursor
        if cursor is None:
            return found
