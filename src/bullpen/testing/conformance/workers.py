"""Promises of `beat` and `workers`."""

import msgspec

from bullpen.job.record import CrashKind, CrashLimits, JobRef
from bullpen.stores.base import Store, WorkerInfo, WorkerState
from bullpen.testing.conformance.moves import MAIL, ROUNDS, race
from bullpen.testing.harness import Harness

_TTL_MS = 10_000


def _info(name: str, state: WorkerState = WorkerState.READY, *, jobs_done: int = 0) -> WorkerInfo:
    return WorkerInfo(
        name=name,
        state=state,
        queues={MAIL: 4, "calls": 1},
        host="host-1",
        pid=42,
        started_ms=1_000,
        running=(JobRef(MAIL, "user-1"),),
        stuck=(JobRef("calls", "7"),),
        jobs_done=jobs_done,
    )


async def _names(store: Store) -> list[str]:
    return [info.name for info in await store.workers()]


async def test_a_worker_is_known_by_its_own_words(harness: Harness, store: Store) -> None:
    """What a worker says of itself is listed as it said it, with the time of the beat."""
    before_ms = harness.clock.now_ms()
    await store.beat(_info("worker-1"), ttl_ms=_TTL_MS)
    (info,) = await store.workers()
    assert before_ms <= info.beat_ms <= harness.clock.now_ms()
    assert msgspec.structs.replace(info, beat_ms=0) == _info("worker-1")


async def test_a_beat_renews_what_is_known(harness: Harness, store: Store) -> None:
    """The next beat of a worker takes the place of the last one."""
    await store.beat(_info("worker-1"), ttl_ms=_TTL_MS)
    await harness.advance(1_000)
    await store.beat(_info("worker-1", WorkerState.DRAINING, jobs_done=9), ttl_ms=_TTL_MS)
    (info,) = await store.workers()
    assert (info.state, info.jobs_done) == (WorkerState.DRAINING, 9)


async def test_workers_are_listed_by_name(store: Store) -> None:
    """All that beat lately are there, sorted."""
    for name in ("b", "c", "a"):
        await store.beat(_info(name), ttl_ms=_TTL_MS)
    assert await _names(store) == ["a", "b", "c"]


async def test_a_worker_that_falls_silent_is_forgotten(harness: Harness, store: Store) -> None:
    """After its time without a beat a worker is listed no more; one that beats on is."""
    for name in ("silent", "steady"):
        await store.beat(_info(name), ttl_ms=_TTL_MS)
    await harness.advance(_TTL_MS - 1_000)
    await store.beat(_info("steady"), ttl_ms=_TTL_MS)
    assert await _names(store) == ["silent", "steady"]
    await harness.advance(1_001)
    assert await _names(store) == ["steady"]


async def test_workers_are_seen_by_all(harness: Harness, store: Store) -> None:
    """Every store of the place lists the workers of all."""
    other = await harness.open()
    await other.beat(_info("worker-1"), ttl_ms=_TTL_MS)
    assert await _names(store) == ["worker-1"]


async def test_a_worker_whose_crash_was_reported_is_forgotten(store: Store) -> None:
    """A worker that was seen to end is listed no more, though its time is not over."""
    await store.beat(_info("worker-1"), ttl_ms=_TTL_MS)
    await store.report_crash("worker-1", CrashKind.KILLED, limits=CrashLimits())
    assert await _names(store) == []


async def test_race_beats_do_not_overwrite_each_other(harness: Harness, store: Store) -> None:
    """Workers that beat at once are all listed."""
    other = await harness.open()
    for turn in range(ROUNDS):
        await race(
            store.beat(_info(f"a-{turn}"), ttl_ms=_TTL_MS), other.beat(_info(f"b-{turn}"), ttl_ms=_TTL_MS), turn=turn
        )
    assert len(await _names(store)) == 2 * ROUNDS
