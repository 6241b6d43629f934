"""`bullpen bench`: how quick this store is from here, measured on a queue of its own that is gone afterwards."""

import argparse
import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from bullpen.cli.showing import Show
from bullpen.cli.tables import Column, Row
from bullpen.cli.times import seconds
from bullpen.cli.verb import INTERRUPTED, OK, Verb, cancelled_by_signal, opened
from bullpen.errors import QueueMissing
from bullpen.queue.queue import Queue
from bullpen.worker.context import Context
from bullpen.worker.options import WorkerOptions
from bullpen.worker.worker import Worker

_AT_ONCE = 500
_SLOTS = 50
_JOB = "nothing"
_EXAMPLES = """
  bullpen bench                            about ten seconds
  bullpen bench --seconds 30 --store redis://localhost --json

  It shares the store with whoever works there: measure when that may be slowed down.
"""


class Pace(NamedTuple):
    jobs: int
    taken_s: float

    @property
    def per_s(self) -> float:
        return round(self.jobs / self.taken_s, 1) if self.taken_s else 0.0


class Measured(NamedTuple):
    adds: Pace
    adds_at_once: Pace
    work: Pace
    pickups_ms: Sequence[float]
    """From the call that adds a job to the start of its handler, the shortest first."""

    def pickup_ms(self, share: float) -> float:
        return round(self.pickups_ms[min(len(self.pickups_ms) - 1, int(len(self.pickups_ms) * share))], 2)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=seconds, default=10.0, metavar="TIME", help="about how long it takes (10)")


async def run(args: argparse.Namespace, show: Show) -> int:
    logging.getLogger("bullpen").addHandler(logging.NullHandler())
    async with opened(args, create=True) as store:
        queue = Queue(store, f"bullpen-bench-{secrets.token_hex(6)}")
        show.note(f"measuring on {queue.name}; Ctrl-C ends")
        measuring = asyncio.create_task(_measure(queue, args.seconds / 4))
        with cancelled_by_signal(measuring):
            await asyncio.wait([measuring])
            # Whoever presses Ctrl-C again must not be left with what was not cleaned up.
            with contextlib.suppress(QueueMissing):
                await queue.obliterate(force=True)
        if measuring.cancelled():
            return INTERRUPTED
        _tell(show, store.facts.name, measuring.result())
    return OK


async def _measure(queue: Queue, part_s: float) -> Measured:
    """Each part takes about that long; what is left of one is no part of the next."""
    adds = await _add(lambda: _add_one(queue), part_s)
    adds_at_once = await _add(lambda: _add_many(queue), part_s)
    work = await _work(queue, adds.jobs + adds_at_once.jobs, part_s)
    await queue.drain()
    return Measured(adds, adds_at_once, work, await _pick_up(queue, part_s))


async def _add(some: Callable[[], Awaitable[int]], for_s: float) -> Pace:
    begun_s, jobs = time.perf_counter(), 0
    while True:
        jobs += await some()
        taken_s = time.perf_counter() - begun_s
        if taken_s >= for_s:
            return Pace(jobs, taken_s)


async def _add_one(queue: Queue) -> int:
    await queue.add(_JOB)
    return 1


async def _add_many(queue: Queue) -> int:
    return len(await queue.add_bulk([queue.prepare(_JOB) for _ in range(_AT_ONCE)]))


async def _work(queue: Queue, waiting: int, for_s: float) -> Pace:
    """Until all is done or the time is over, from the first job on."""
    begun = asyncio.Event()
    over = asyncio.Event()
    at_s: list[float] = []

    async def note(_: Context) -> None:
        at_s.append(time.perf_counter())
        begun.set()
        if len(at_s) == waiting:
            over.set()

    async with _working(queue, note):
        await begun.wait()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), for_s)
        jobs, taken_s = len(at_s), at_s[-1] - at_s[0]
    return Pace(jobs, taken_s)


async def _pick_up(queue: Queue, for_s: float) -> list[float]:
    """One job at a time, to a worker that has nothing else to do."""
    begun: asyncio.Queue[float] = asyncio.Queue()
    found: list[float] = []

    async def note(_: Context) -> None:
        begun.put_nowait(time.perf_counter())

    async with _working(queue, note):
        await queue.add(_JOB)
        until_s = await begun.get() + for_s  # the first finds a worker that is still being started
        while not found or time.perf_counter() < until_s:
            added_s = time.perf_counter()
            await queue.add(_JOB)
            found.append((await begun.get() - added_s) * 1000)
    return sorted(found)


@contextlib.asynccontextmanager
async def _working(queue: Queue, handler: Callable[[Context], Awaitable[None]]) -> AsyncIterator[None]:
    worker = Worker(queue.store, {queue.name: handler}, WorkerOptions(concurrency=_SLOTS))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run(), name="worker")
        try:
            yield
        finally:
            worker.stop()


def _tell(show: Show, store: str, found: Measured) -> None:
    if show.as_json:
        show.document(_json(store, found))
        return
    rows: list[Row] = [
        ["adds, one at a time", f"{found.adds.jobs:,}", f"{found.adds.per_s:,.0f} per s"],
        [f"adds, {_AT_ONCE} at once", f"{found.adds_at_once.jobs:,}", f"{found.adds_at_once.per_s:,.0f} per s"],
        [f"work, one worker of {_SLOTS} slots", f"{found.work.jobs:,}", f"{found.work.per_s:,.0f} per s"],
        ["pickup, p50", f"{len(found.pickups_ms):,}", f"{found.pickup_ms(0.5):,.2f} ms"],
        ["pickup, p99", "", f"{found.pickup_ms(0.99):,.2f} ms"],
    ]
    show.table([Column(store), Column("jobs", right=True), Column("measured", right=True)], rows)


def _json(store: str, found: Measured) -> dict[str, Any]:
    paces = {"adds": found.adds, "adds_at_once": found.adds_at_once, "work": found.work}
    return {
        "store": store,
        **{name: {"jobs": pace.jobs, "per_s": pace.per_s} for name, pace in paces.items()},
        "pickup": {"jobs": len(found.pickups_ms), "p50_ms": found.pickup_ms(0.5), "p99_ms": found.pickup_ms(0.99)},
    }


VERB = Verb("bench", "measure how quick the store is from here", _EXAMPLES, arguments, run, serves=True)
