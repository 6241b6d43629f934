"""How fast: adding, draining, several processes; what a drain costs its store, and how long verdicts wait."""

import asyncio
import contextlib
import time
from pathlib import Path

from benchmarks.children import Answer, ask, child, module
from benchmarks.own.filling import fill, queue_at
from benchmarks.own.places import ALL, FULL, REDIS, Place, Spot
from benchmarks.redis.meter import meter
from benchmarks.series import Best, Ratio, Series
from benchmarks.trials import Measured, Trial, WentWrong
from bullpen import Queue

SYSTEM = "Bullpen"
ENQUEUE, DRAIN, PROCESSES = "enqueue", "drain", "drain by several processes"
STORE_CPU, WORKER_CPU, TRIPS, COMMANDS = "store CPU", "worker CPU", "round trips", "commands"
COMPANY, WAIT = "verdict waits for company", "verdict waits in all"
_WAYS = {"one": "one at a time", "concurrent": "200 at once", "bulk": "in bulk of 200"}
_CONCURRENCIES = (1, 10, 50, 200)
_KEPT: dict[str, int | None] = {"results kept": None, "results dropped": 0}
_LONGEST_S = 600.0


def worker(*arguments: str | float) -> list[str]:
    return module("own.working", *map(str, arguments))


# ── adding ───────────────────────────────────────────────────────────────────────────────


def enqueue(*, quick: bool) -> list[Trial]:
    jobs = {"one": 500, "concurrent": 2_000, "bulk": 4_000} if quick else dict.fromkeys(_WAYS, 20_000) | {"one": 4_000}
    return [_adding(place, way, jobs[way]) for place in ALL for way in _WAYS]


def _adding(place: Place, way: str, jobs: int) -> Trial:
    series = Series(SYSTEM, ENQUEUE, f"{place.name}, {_WAYS[way]}")

    async def measure(folder: Path) -> Measured:
        async with place.opened(folder) as spot:
            answer = await ask(*module("own.producing", spot.address, way, "--jobs", jobs))
        return {series: answer["per_s"]}

    return Trial([series], measure)


# ── draining ─────────────────────────────────────────────────────────────────────────────


def drain(*, quick: bool) -> list[Trial]:
    jobs = {1: 500, 10: 2_000, 50: 5_000, 200: 5_000} if quick else {1: 3_000, 10: 10_000, 50: 30_000, 200: 30_000}
    return [
        _draining(place, concurrency, how, jobs[concurrency])
        for place in ALL
        for concurrency in _CONCURRENCIES
        for how in _KEPT
    ]


def _draining(place: Place, concurrency: int, how: str, jobs: int) -> Trial:
    setting = f"{place.name}, concurrency {concurrency}, {how}"
    speed = Series(SYSTEM, DRAIN, setting)
    costs = {what: Series(SYSTEM, what, setting, "µs/job") for what in (STORE_CPU, WORKER_CPU)}
    trips, commands = (Series(SYSTEM, what, setting, "/job") for what in (TRIPS, COMMANDS))

    async def measure(folder: Path) -> Measured:
        async with place.opened(folder) as spot:
            answer, at_server = await drained(spot, jobs, "--concurrency", concurrency, kept=_KEPT[how])
        writer_us, process_us = (answer["costs"][name] * 1e6 / jobs for name in ("writer_s", "process_s"))
        found = {speed: per_s(answer, jobs), trips: answer["trips"] / jobs, costs[WORKER_CPU]: process_us}
        if place.is_redis:
            return found | {costs[STORE_CPU]: at_server["cpu_us"], commands: at_server["commands"]}
        # The store works in a thread of the worker's own process.
        return found | {costs[STORE_CPU]: writer_us, costs[WORKER_CPU]: process_us - writer_us}

    return Trial([speed, *costs.values(), trips, *([commands] if place.is_redis else [])], measure)


async def drained(
    spot: Spot, jobs: int, *arguments: str | int, kept: int | None = None
) -> tuple[Answer, dict[str, float]]:
    """What a worker said that drained a full queue; and what the server did meanwhile for each job, if there is one."""
    async with queue_at(spot.address, kept=kept) as queue:
        await fill(queue, jobs)
    async with contextlib.AsyncExitStack() as stack:
        server = None if spot.port is None else await stack.enter_async_context(meter(spot.port))
        before = None if server is None else server.read()
        command = worker(spot.address, "--until", jobs, *arguments)
        working = await stack.enter_async_context(child(*command, longest_s=_LONGEST_S))
        await working.answer()  # ready
        answer = await working.answer()
        if server is None or before is None:
            return answer, {}
        work = server.since(before, jobs)
        return answer, {"cpu_us": work.cpu_us, "commands": work.sent + work.called}


def per_s(answer: Answer, jobs: int) -> float:
    seconds: float = (answer["last_ns"] - answer["first_ns"]) / 1e9
    return jobs / seconds


# ── verdicts ─────────────────────────────────────────────────────────────────────────────


def verdicts(*, quick: bool) -> list[Trial]:
    return [_waiting(place, 5_000 if quick else 30_000) for place in ALL]


def ratios() -> list[Ratio]:
    longest = Best(tuple(_verdicts_series(place, COMPANY, "max") for place in ALL))
    return [Ratio("verdict_company_max_ms", longest, None, "≤ 2")]


def _verdicts_series(place: Place, name: str, word: str) -> Series:
    return Series(SYSTEM, f"{name}, {word}", f"{place.name}, concurrency 50", "ms")


def _waiting(place: Place, jobs: int) -> Trial:
    shares = {"p50": "p50", "p99": "p99", "p100": "max"}
    names = {"for_company": COMPANY, "waits": WAIT}
    series = {
        (said, share): _verdicts_series(place, name, word)
        for said, name in names.items()
        for share, word in shares.items()
    }

    async def measure(folder: Path) -> Measured:
        async with place.opened(folder) as spot:
            answer, _ = await drained(spot, jobs, "--verdicts")
        return {one: answer[said][share] for (said, share), one in series.items()}

    return Trial([*series.values()], measure)


# ── several processes ────────────────────────────────────────────────────────────────────


def processes(*, quick: bool) -> list[Trial]:
    jobs = 6_000 if quick else 40_000
    return [_several(place, count, jobs) for place in (FULL, REDIS) for count in (1, 2, 4)]


def _several(place: Place, count: int, jobs: int) -> Trial:
    """From the moment the queue is resumed, with every worker waiting, to the last settlement of any."""
    series = Series(SYSTEM, PROCESSES, f"{place.name}, {count} × concurrency 50, results kept")

    async def measure(folder: Path) -> Measured:
        async with place.opened(folder) as spot, queue_at(spot.address) as queue:
            await queue.pause()
            await fill(queue, jobs)
            async with contextlib.AsyncExitStack() as stack:
                command = worker(spot.address)
                workers = [await stack.enter_async_context(child(*command, longest_s=_LONGEST_S)) for _ in range(count)]
                for one in workers:
                    await one.answer()  # ready
                start_ns = time.monotonic_ns()
                await queue.resume()
                await until_empty(queue)
                answers = [await one.last_answer() for one in workers]
        if (settled := sum(answer["settled"] for answer in answers)) != jobs:
            raise WentWrong(f"{settled} of {jobs} jobs were settled")
        return {series: jobs / ((max(answer["last_ns"] for answer in answers) - start_ns) / 1e9)}

    return Trial([series], measure)


async def until_empty(queue: Queue) -> None:
    """Only to know when to stop: the workers' own clocks say when they were done."""
    try:
        async with asyncio.timeout(_LONGEST_S):
            while (await queue.counts()).unfinished:
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise WentWrong("the queue was not drained in time") from None
