"""The trials that every system gets: how fast jobs are added and drained, and how soon one is picked up."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.children import Child, child
from benchmarks.peers.environments import Command, NotInstalled
from benchmarks.redis.meter import meter
from benchmarks.series import Series
from benchmarks.systems import WAYS, System, Way, place_for
from benchmarks.trials import CALLED, CPU, CPU_LIFE, TRIPS, Measured, NotMeasured, Trial
from benchmarks.workload import payload

_LONGEST_S = 400.0
_FEWEST = 40
_PORTIONS: dict[Way, int] = {"one": 3, "concurrent": 5, "bulk": 12}
"""A slow way adds fewer jobs."""
_A_TIME_NS = 10**14
"""As long as the time that a pickup puts in its place."""


@contextlib.asynccontextmanager
async def driven(system: System, command: Command | NotInstalled, where: str, *options: str) -> AsyncIterator[Child]:
    """The system, connected, for the time of a block."""
    if isinstance(command, NotInstalled):
        raise NotMeasured(str(command))
    async with child(*command, *system.arguments(where), *options, longest_s=_LONGEST_S) as driver:
        await driver.answer()  # connected
        yield driver


def adding(way: Way, jobs: int, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"do": "add", "way": way, "jobs": jobs, "data": data or payload(n=0)}


def draining(jobs: int) -> dict[str, Any]:
    return {"do": "drain", "jobs": jobs}


def portions(system: System, jobs: int) -> dict[Way, int]:
    """How many jobs are added in which way."""
    all_portions = sum(_PORTIONS[way] for way in system.ways)
    return {way: max(_FEWEST, round(jobs * system.pace * _PORTIONS[way] / all_portions)) for way in system.ways}


# ── a job's life ─────────────────────────────────────────────────────────────────────────


def living(system: System, command: Command | NotInstalled, jobs: int) -> Trial:
    """Some jobs are added in each way, then all of them are drained."""
    measure = _metered_life if system.store == "Redis" else _plain_life

    async def measured(folder: Path) -> Measured:
        orders = {WAYS[way]: adding(way, count) for way, count in portions(system, jobs).items()}
        orders["drain"] = draining(sum(order["jobs"] for order in orders.values()) + 1)
        async with place_for(system, folder) as where, driven(system, command, where) as driver:
            await driver.told(adding("one", 1))  # the queue exists and the scripts are known
            return await measure(system, driver, where, orders)

    return Trial([*_speeds(system).values(), *_costs(system)], measured)


def _speeds(system: System) -> dict[str, Series]:
    return {**{WAYS[way]: system.enqueue(way) for way in system.ways}, "drain": system.drain}


def cost(system: System, measure: str, of: str) -> Series:
    """What a job costs the server: of its drain, or of one way to add."""
    unit = "/job" if measure in (TRIPS, CALLED) else "µs/job"
    return Series(system.name, measure, f"drain, {system.drain.setting}" if of == "drain" else of, unit)


def life_cost(system: System) -> Series:
    added = WAYS["bulk"] if "bulk" in system.ways else WAYS["one"]
    return Series(system.name, CPU_LIFE, f"added {added}, drained with {system.drain.setting}", "µs/job")


def _costs(system: System) -> list[Series]:
    if system.store != "Redis":
        return []
    parts = [cost(system, CPU, of) for of in _speeds(system)]
    counts = [cost(system, measure, "drain") for measure in (TRIPS, CALLED)] if system.scripted else []
    return [life_cost(system), *parts, *counts]


async def _plain_life(system: System, driver: Child, _where: str, orders: Mapping[str, dict[str, Any]]) -> Measured:
    speeds = _speeds(system)
    return {speeds[of]: order["jobs"] / (await driver.told(order))["seconds"] for of, order in orders.items()}


async def _metered_life(system: System, driver: Child, where: str, orders: Mapping[str, dict[str, Any]]) -> Measured:
    found: dict[Series, float] = {}
    async with meter(int(where.rpartition(":")[2].partition("/")[0])) as at_server:
        for of, order in orders.items():
            before = at_server.read()
            found[_speeds(system)[of]] = order["jobs"] / (await driver.told(order))["seconds"]
            work = at_server.since(before, order["jobs"])
            found[cost(system, CPU, of)] = work.cpu_us
            if of == "drain" and system.scripted:
                found |= {cost(system, TRIPS, of): work.sent, cost(system, CALLED, of): work.called}
    added = WAYS["bulk"] if "bulk" in system.ways else WAYS["one"]
    found[life_cost(system)] = found[cost(system, CPU, added)] + found[cost(system, CPU, "drain")]
    return found


# ── pickup ───────────────────────────────────────────────────────────────────────────────


def picking_up(system: System, command: Command | NotInstalled, samples: int) -> Trial:
    """From before the add to the start of the handler, in another process that has nothing else to do."""
    p50, p99 = system.pickup

    async def measure(folder: Path) -> Measured:
        order = {"do": "pickup", "samples": samples, "data": payload(sent_ns=_A_TIME_NS)}
        async with place_for(system, folder) as where, driven(system, command, where) as driver:
            answer = await driver.told(order)
        return {p50: answer["p50"], p99: answer["p99"]}

    return Trial([p50, p99], measure)
