"""What stands still or goes on for long: bytes of a job at rest, an idle worker, memory, a large flow, many steps."""

import asyncio
import sqlite3
from pathlib import Path

from benchmarks.children import child, module
from benchmarks.own.filling import fill, queue_at
from benchmarks.own.places import ALL, FULL, NORMAL, REDIS, Place, Spot
from benchmarks.own.speeds import SYSTEM, worker
from benchmarks.redis.meter import meter
from benchmarks.series import Series
from benchmarks.trials import Measured, Trial, WentWrong
from bullpen import Context, Queue, Worker, WorkerOptions
from bullpen.job.verdicts import Completed, Settlement

BYTES, IDLE, MEMORY = "bytes at rest", "idle worker", "worker memory"
_SMALL = {"user": 42}
_LONG_S = 3_600.0
_LEASE_MS = 60_000
_AT_ONCE = 1_000
_BACKLOG = 10_000


# ── bytes ────────────────────────────────────────────────────────────────────────────────


def at_rest(*, quick: bool) -> list[Trial]:
    return [_weighing(place, 2_000 if quick else 20_000) for place in (NORMAL, REDIS)]


def _weighing(place: Place, jobs: int) -> Trial:
    """Jobs of one small payload; all that belongs to the queue is counted, its log of events too."""
    states = {"waiting": _leave_waiting, "completed and kept": _complete, "asleep in ctx.sleep": _put_to_sleep}
    series = {state: Series(SYSTEM, BYTES, f"{place.name}, {state}", "bytes/job") for state in states}

    async def measure(folder: Path) -> Measured:
        found: dict[Series, float] = {}
        for n, (state, bring_there) in enumerate(states.items()):
            own = folder / str(n)
            own.mkdir()
            async with place.opened(own) as spot:
                async with queue_at(spot.address) as queue:
                    for _ in range(0, jobs, _AT_ONCE):
                        await queue.add_bulk([queue.prepare("small", _SMALL) for _ in range(_AT_ONCE)])
                    await bring_there(queue, jobs)
                found[series[state]] = await _weight(spot) / jobs
        return found

    return Trial([*series.values()], measure, once=True)


async def _leave_waiting(_queue: Queue, _jobs: int) -> None: ...


async def _complete(queue: Queue, jobs: int) -> None:
    for n in range(0, jobs, _AT_ONCE):
        request = f"weigh-{n}"
        claimed = await queue.store.claim({queue.name: _AT_ONCE}, worker="w", lease_ms=_LEASE_MS, request=request)
        done = [Settlement(job.lease, Completed(b"true")) for job in claimed.jobs]
        await queue.store.settle(done, request=f"{request} done")


async def _put_to_sleep(queue: Queue, jobs: int) -> None:
    async def sleep(ctx: Context) -> None:
        await ctx.sleep(86_400)

    sleeper = Worker(queue.store, {queue.name: sleep}, WorkerOptions(concurrency=50))
    working = asyncio.create_task(sleeper.run())
    while (await queue.counts()).delayed < jobs:
        await asyncio.sleep(0.1)
    sleeper.stop()
    await working


async def _weight(spot: Spot) -> float:
    if spot.port is not None:
        async with meter(spot.port) as at_server:
            return at_server.weigh().jobs
    assert spot.path is not None
    db = sqlite3.connect(spot.path)
    try:
        size, pages, free = (db.execute(f"PRAGMA {what}").fetchone()[0] for what in _PAGES)
    finally:
        db.close()
    return float(size * (pages - free))


_PAGES = ("page_size", "page_count", "freelist_count")


# ── an idle worker ───────────────────────────────────────────────────────────────────────


def idle(*, quick: bool) -> list[Trial]:
    seconds = 4 if quick else 20
    places = [(place, queues) for place in (FULL, REDIS) for queues in (1, 100)]
    asleep = 1_000 if quick else 10_000
    return [
        *[_idling(place, queues, 0, seconds) for place, queues in places],
        *[_idling(place, 1, asleep, seconds) for place in (FULL, REDIS)],
    ]


def _idling(place: Place, queues: int, asleep: int, seconds: float) -> Trial:
    setting = f"{place.name}, {queues} queue{'s' if queues > 1 else ''}"
    setting += f", {asleep:,} jobs asleep" if asleep else ""
    share = Series(SYSTEM, f"{IDLE}, its CPU", setting, "% of a core")
    server_share = Series(SYSTEM, f"{IDLE}, the server's CPU", setting, "% of a core")
    commands = Series(SYSTEM, f"{IDLE}, commands sent", setting)

    async def measure(folder: Path) -> Measured:
        async with place.opened(folder) as spot:
            if asleep:
                async with queue_at(spot.address) as queue:
                    await fill(queue, asleep)
                    await _put_to_sleep(queue, asleep)
            async with child(*worker(spot.address, "--queues", queues, "--idle", seconds)) as idler:
                for _ in ("ready", "begins"):
                    await idler.answer()
                if spot.port is None:
                    found = {share: (await idler.answer())["share"] * 100}
                else:
                    async with meter(spot.port) as at_server:
                        before = at_server.read()
                        found = {share: (await idler.answer())["share"] * 100}
                        after = at_server.read()
                    time_us = (after.at - before.at) * 1e6
                    found[server_share] = (after.cpu_us - before.cpu_us) / time_us * 100
                    found[commands] = (after.sent - before.sent) / (time_us / 1e6)
                await idler.last_answer()
        return found

    return Trial([share, *([server_share, commands] if place.is_redis else [])], measure)


# ── memory ───────────────────────────────────────────────────────────────────────────────


def memory(*, quick: bool) -> list[Trial]:
    return [_remembering(place, 100_000 if quick else 1_000_000) for place in (NORMAL, REDIS)]


def _remembering(place: Place, jobs: int) -> Trial:
    """Jobs are added while they are done, so that it is the worker that grows, if anything does."""
    marks = {0: "after 10 %", 4: "after 50 %", 9: "at the end"}
    series = {n: Series(SYSTEM, MEMORY, f"{place.name}, {jobs:,} jobs, {word}", "MB") for n, word in marks.items()}

    async def measure(folder: Path) -> Measured:
        async with place.opened(folder) as spot, queue_at(spot.address, kept=1_000) as queue:
            command = worker(spot.address, "--until", jobs, "--size-every", jobs // 10)
            async with child(*command, longest_s=_LONG_S) as working:
                await working.answer()  # ready
                await _feed(queue, jobs)
                sizes = (await working.answer())["sizes_mb"]
        if len(sizes) < 10:
            raise WentWrong(f"the worker told its size {len(sizes)} times")
        return {one: sizes[n] for n, one in series.items()}

    return Trial([*series.values()], measure, once=True)


async def _feed(queue: Queue, jobs: int) -> None:
    added = 0
    while added < jobs:
        if added and (await queue.counts()).unfinished > _BACKLOG:
            await asyncio.sleep(0.05)
            continue
        await fill(queue, min(_BACKLOG, jobs - added))
        added += _BACKLOG


# ── a large flow, many steps ─────────────────────────────────────────────────────────────


def flow(*, quick: bool) -> list[Trial]:
    words = {"add_s": "add", "run_s": "run all, parent included", "gather_s": "the parent reads all results"}
    return [_long("flow", place, 1_000 if quick else 10_000, "children", words) for place in ALL]


def steps(*, quick: bool) -> list[Trial]:
    words = {"first_s": "first attempt", "again_s": "next attempt, all on record"}
    return [_long("steps", place, 200 if quick else 1_000, "durable steps", words) for place in ALL]


def _long(what: str, place: Place, count: int, things: str, words: dict[str, str]) -> Trial:
    series = {said: Series(SYSTEM, f"{count:,} {things}: {word}", place.name, "ms") for said, word in words.items()}

    async def measure(folder: Path) -> Measured:
        async with place.opened(folder) as spot:
            command = module("own.long_jobs", spot.address, what, "--count", count)
            async with child(*command, longest_s=_LONG_S) as asked:
                answer = await asked.answer()
        return {one: answer[said] * 1000 for said, one in series.items()}

    return Trial([*series.values()], measure)
