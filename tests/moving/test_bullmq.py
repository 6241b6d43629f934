"""What moved to Redis is BullMQ's as much as ours: Node reads it, steers it and works on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen import JobRef, MoveRefused, Queue, State, Store
from bullpen.job.spec import Dedup, JobSpec
from bullpen.stores.base import Counts
from bullpen.testing.conformance.carrying import fill
from bullpen.testing.conformance.moves import MAIL, add_many, add_one, claim_ids
from tests.interop.cells import NPM_5, NPM_6
from tests.interop.peers import Peer, running_peer
from tests.moving.places import Place, all_logs, all_records, redis_place, sqlite_place
from tests.moving.test_mover import move
from tests.support.redis_server import RedisServer


@pytest.fixture
async def places(redis_server: RedisServer, tmp_path: Path) -> AsyncIterator[tuple[Place, Place]]:
    """From a file to the server."""
    pair = sqlite_place(tmp_path, "old"), redis_place(redis_server)
    yield pair
    for place in pair:
        await place.close()


@pytest.fixture(params=[NPM_5, NPM_6])
async def node(
    request: pytest.FixtureRequest, places: tuple[Place, Place], redis_server: RedisServer
) -> AsyncIterator[Peer]:
    with running_peer(request.param, redis_server.port) as process:
        peer = Peer(request.param, process, places[1].address.partition("prefix=")[2])
        yield peer
        await peer.close()


async def test_node_reads_what_moved(source: Store, target: Store, node: Peer) -> None:
    """Every state with its fields and logs, in its order."""
    await fill(source)
    records, logs = await all_records(source, MAIL), await all_logs(source, MAIL)
    await move(source, target)
    for state, jobs in records.items():
        ids = await node.call("ids", MAIL, state=state.value, asc=True)
        assert ids == [job.id for job in jobs], state
    for jobs in records.values():
        for job in jobs:
            told = await node.call("job", MAIL, id=job.id)
            assert (told["name"], told["priority"], told["attemptsMade"]) == (job.name, job.priority, job.attempts_made)
            assert told.get("failedReason") == (job.failure.message if job.failure else None)
            assert told["stacktrace"] == list(job.stacks)
            assert told["stalledCounter"] == job.stalls
            assert await node.call("logs", MAIL, id=job.id) == list(logs[job.id])
    (delayed, *_) = records[State.DELAYED]
    told = await node.call("job", MAIL, id=delayed.id)
    assert told["delay"] == (delayed.run_at_ms or 0) - delayed.added_ms


async def test_node_works_on_what_moved(source: Store, target: Store, node: Peer) -> None:
    """A worker that sleeps there already wakes, and our promise to whoever waits is kept."""
    await target.add([], request="r")
    await node.call("work", MAIL, options={})
    job = await Queue(source, MAIL).add("sum", {"a": 1})
    later = await add_one(source, spec=JobSpec(delay_ms=3_600_000, dedup=Dedup("subject")))
    await move(source, target)
    result = await Queue(target, MAIL).job(job.id).result(60)
    assert result == {"echo": {"a": 1}, "name": "sum", "attempt": 1}
    assert await node.call("subject", MAIL, id="subject") == later.id
    await node.call("promote", MAIL, id=later.id)
    await node.hears("completed", id=later.id)


async def test_what_node_added_moves_to_a_file(source: Store, target: Store, node: Peer) -> None:
    """The way back, from a queue that Node made."""
    ids = await node.call("addBulk", MAIL, jobs=[{"name": "n", "data": {"n": n}} for n in range(3)])
    await node.call("add", MAIL, name="later", data={}, opts={"delay": 3_600_000, "jobId": "own-1", "attempts": 4})
    await node.call("pause", MAIL)
    await move(target, source)
    assert await source.counts(MAIL) == Counts(waiting=3, delayed=1, paused=True)
    assert (await source.job(JobRef(MAIL, "own-1"))).spec.attempts == 4
    await source.resume(MAIL)
    assert await claim_ids(source) == ids


async def test_refuses_a_queue_with_a_schedule_of_node(
    source: Store, target: Store, places: tuple[Place, Place], redis_server: RedisServer
) -> None:
    """What Bullpen cannot carry is not left behind in silence; nothing was changed."""
    await add_many(target, 1)
    prefix = places[1].address.partition("prefix=")[2]
    with redis_server.client() as server:
        server.zadd(f"{prefix}:{MAIL}:repeat", {"nightly": 1})
    with pytest.raises(MoveRefused, match="schedules"):
        await move(target, source)
    assert await target.counts(MAIL) == Counts(waiting=1)


async def test_refuses_a_job_that_is_part_of_a_flow(
    source: Store, target: Store, places: tuple[Place, Place], redis_server: RedisServer
) -> None:
    """Its parent would wait for ever; it is still where it was."""
    (ref,) = await add_many(target, 1)
    prefix = places[1].address.partition("prefix=")[2]
    with redis_server.client() as server:
        server.hset(f"{prefix}:{MAIL}:{ref.id}", "parentKey", "bull:other:1")
    with pytest.raises(ExceptionGroup) as ended:
        await move(target, source)
    assert ended.group_contains(MoveRefused, match="flow")
    assert await target.counts(MAIL) == Counts(waiting=1, paused=True)
