"""Fills a queue along one dimension and asks what each operation costs there.

First the operations are made many times over and timed, with warm caches, as they are in use;
then a few times more while the store counts its own work.
"""

import asyncio
import contextlib
import dataclasses
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.own.gauges import Gauge, RedisGauge, SqliteGauge, deepest_tree, thread_cpu_ns
from benchmarks.own.operations import BATCHES, LEASE_MS, TICK_EVERY_MS, Line, life, looks, tick
from benchmarks.own.places import Place, Spot
from benchmarks.redis.server import process_of
from benchmarks.trials import WentWrong
from bullpen.stores.base import Store
from bullpen.stores.redis import RedisStore
from bullpen.stores.sqlite import SqliteStore
from bullpen.testing import ManualClock

TIME, WRITER, DEPTH = "time", "writer's CPU", "levels of the deepest tree"
_AT_ONCE = 5_000
_THROUGH_AT_ONCE = 1_000
_UNTIL_FORGOTTEN_MS = 2 * LEASE_MS
_WARM_UP, _TIMED, _COUNTED = 5, 200, 9
_PER_GROUP = 3

Found = dict[tuple[str, str], float]
"""By operation and by what was measured of it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Dimension:
    name: str
    things: str
    sizes: tuple[int, ...]
    quick_sizes: tuple[int, ...]
    fill: Callable[[Line, int], Awaitable[None]]
    cycle: Callable[[Line, "Taker", int], Awaitable[None]]
    """Each operation once; the size stays."""


class Taker:
    """Does operations and takes down what each costs, in one of two ways."""

    def __init__(self, cpu_ns: Callable[[], int] | None) -> None:
        self._cpu_ns = cpu_ns
        self._taken: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self.gauge: Gauge | None = None
        self.is_on = False

    async def __call__(self, name: str, operation: Callable[[], Awaitable[Any]]) -> Any:
        if not self.is_on:
            return await operation()
        answer, costs = await (self._timed(operation) if self.gauge is None else self.gauge.count(operation))
        for what, cost in costs.items():
            self._taken[name, what].append(cost)
        return answer

    async def _timed(self, operation: Callable[[], Awaitable[Any]]) -> tuple[Any, dict[str, float]]:
        cpu_ns = self._cpu_ns() if self._cpu_ns else 0
        start = time.perf_counter_ns()
        answer = await operation()
        costs = {TIME: (time.perf_counter_ns() - start) / 1000}
        if self._cpu_ns:
            costs[WRITER] = (self._cpu_ns() - cpu_ns) / 1000
        return answer, costs

    def found(self) -> Found:
        return {key: statistics.median(costs) for key, costs in self._taken.items()}


class Ground:
    """One store that was filled to one size, and what its operations cost."""

    def __init__(self, store: Store, spot: Spot, line: Line, dimension: Dimension, size: int) -> None:
        self.size = size
        self.spot = spot
        self._store = store
        self._line = line
        self._dimension = dimension
        self._taker = Taker(_writer_cpu(store))

    async def warm_up(self) -> None:
        for _ in range(_WARM_UP):
            await self.cycle()
        self._taker.is_on = True

    async def cycle(self) -> None:
        await self._dimension.cycle(self._line, self._taker, self.size)

    async def count(self) -> list[str]:
        """Go on while the store counts; the ways of statements that no index serves."""
        self._taker.gauge = gauge = _gauge(self._store, self.spot)
        for _ in range(_COUNTED):
            await self.cycle()
        if gauge.keep_cache():
            for _ in range(_COUNTED):
                await self.cycle()
        return list(gauge.plans())

    def found(self) -> Found:
        return self._taker.found()


async def measure(place: Place, folder: Path, dimension: Dimension, sizes: Sequence[int]) -> dict[int, Found]:
    """What was found of each operation at each size."""
    found: dict[int, Found] = {}
    async with contextlib.AsyncExitStack() as stack:
        core = stack.enter_context(_away_from_a_core()) if place.is_redis else None
        grounds = [await stack.enter_async_context(_filled(place, folder, dimension, size, core)) for size in sizes]
        await asyncio.to_thread(os.sync)  # or the system writes what filled the large ones while they are timed
        for ground in grounds:
            await ground.warm_up()
        # In turn, and each first as often as last, so that a slow moment of the machine meets all sizes alike.
        for n in range(_TIMED):
            for ground in grounds if n % 2 else reversed(grounds):
                await ground.cycle()
        for ground in grounds:
            for detour in await ground.count():
                print(f"  no index serves: {detour}", file=sys.stderr)
            found[ground.size] = ground.found()
            if ground.spot.path is not None:
                found[ground.size]["any", DEPTH] = await asyncio.to_thread(deepest_tree, ground.spot.path)
    return found


@contextlib.contextmanager
def _away_from_a_core() -> Iterator[int | None]:
    """Leave one core to the servers, if there are two: the system lets one server share our core and another not, for
    minutes, and to wake one elsewhere takes as long as a small operation.
    """
    if not hasattr(os, "sched_setaffinity") or len(before := os.sched_getaffinity(0)) < 2:
        yield None
        return
    core = max(before)
    os.sched_setaffinity(0, before - {core})
    try:
        yield core
    finally:
        os.sched_setaffinity(0, before)


@contextlib.asynccontextmanager
async def _filled(
    place: Place, folder: Path, dimension: Dimension, size: int, core: int | None
) -> AsyncIterator[Ground]:
    own = folder / f"{size}"
    own.mkdir()
    clock = ManualClock(int(time.time() * 1000))
    async with place.opened(own) as spot, _opened(place, spot, clock) as store:
        if spot.port is not None and core is not None:
            os.sched_setaffinity(await asyncio.to_thread(process_of, spot.port), {core})
        line = Line(store, clock, kept=None)
        await dimension.fill(line, size)
        yield Ground(store, spot, line, dimension, size)


@contextlib.asynccontextmanager
async def _opened(place: Place, spot: Spot, clock: ManualClock) -> AsyncIterator[Store]:
    store: SqliteStore | RedisStore
    if spot.path is not None and place.sync is not None:
        store = SqliteStore(spot.path, sync=place.sync, clock=clock)
    else:
        store = RedisStore(spot.address, clock=clock)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def _writer_cpu(store: Store) -> Callable[[], int] | None:
    if not isinstance(store, SqliteStore):
        return None
    ident = store._file.writer._thread.ident
    assert ident is not None
    return lambda: thread_cpu_ns(ident)


def _gauge(store: Store, spot: Spot) -> Gauge:
    if isinstance(store, SqliteStore):
        return SqliteGauge(store._file)
    assert spot.port is not None
    return RedisGauge(spot.port)


# ── the dimensions ───────────────────────────────────────────────────────────────────────


async def _wait_in_line(line: Line, jobs: int) -> None:
    for start in range(0, jobs, _AT_ONCE):
        await line.add(min(_AT_ONCE, jobs - start))
    # The answers to such large adds are remembered for a while, and would be met by what follows.
    line.clock.advance(_UNTIL_FORGOTTEN_MS)


async def _fill_waiting(line: Line, size: int) -> None:
    line.keep(0)
    await _wait_in_line(line, size)


async def _fill_groups(line: Line, size: int) -> None:
    """Of each group some jobs wait, so that no claim empties it, however many there are."""
    line.keep(0)
    line.spread_over(size)
    await _wait_in_line(line, max(_PER_GROUP * size, 10_000))


async def _fill_completed(line: Line, size: int) -> None:
    # In smaller portions: on Redis each of the three is one script, and nobody waits for ever for its end.
    for start in range(0, size, _THROUGH_AT_ONCE):
        count = min(_THROUGH_AT_ONCE, size - start)
        await line.add(count)
        jobs = await line.claim(count)
        if len(jobs) != count:
            raise WentWrong(f"{len(jobs)} of {count} jobs were claimed")
        await line.settle(jobs)
    line.keep(size)  # whoever completes now pushes the oldest out
    await _wait_in_line(line, 1_000)


async def _fill_schedules(line: Line, size: int) -> None:
    start_ms = line.clock.now_ms()
    for first in range(0, size, 500):
        numbers = range(first, min(first + 500, size))
        await asyncio.gather(*[line.put_schedule(n, start_ms + (n + 1) * TICK_EVERY_MS) for n in numbers])
    line.keep(0)


async def _lives_and_looks(line: Line, ask: Taker, _: int) -> None:
    for batch in BATCHES:
        await life(line, ask, batch)
    await looks(line, ask)


async def _ticks_and_lives(line: Line, ask: Taker, size: int) -> None:
    await tick(line, ask, size)
    await _lives_and_looks(line, ask, size)


DIMENSIONS: Mapping[str, Dimension] = {
    one.name: one
    for one in (
        Dimension("waiting", "waiting", (1_000, 1_000_000), (1_000, 50_000), _fill_waiting, _lives_and_looks),
        Dimension("tenants", "tenants", (1, 100, 100_000), (1, 100, 10_000), _fill_groups, _lives_and_looks),
        Dimension("completed", "completed", (1_000, 1_000_000), (1_000, 30_000), _fill_completed, _lives_and_looks),
        Dimension("schedules", "schedules", (10, 10_000), (10, 2_000), _fill_schedules, _ticks_and_lives),
    )
}
