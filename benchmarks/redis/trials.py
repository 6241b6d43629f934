"""The trials on Redis: a job's life by one system, and what its jobs weigh at rest."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.adding import COMPANY
from benchmarks.children import Child, child
from benchmarks.limit import run_limit_on_redis
from benchmarks.peers.bullmq_setup import Command
from benchmarks.peers.huey_setup import NotInstalled
from benchmarks.redis.measures import (
    AT_ONCE,
    BULK,
    BYTES,
    CALLED,
    COMPLETED,
    CPU,
    CPU_MAIN,
    DELAYED,
    DRAIN,
    ENQUEUE,
    LIMIT_BATCH,
    LIMIT_CPU,
    LIMIT_DRAIN,
    LIMIT_ENQUEUE,
    ONE,
    READS,
    REMEMBERED,
    SENT,
    TRIPS,
    WAITING,
    System,
)
from benchmarks.redis.meter import Meter, Work, meter
from benchmarks.redis.server import HOST, running_redis
from benchmarks.series import Series
from benchmarks.trials import Measured, NotMeasured, Trial
from benchmarks.workload import payload

SMALL = {"user": 42}
_WAYS = {ONE: "one", AT_ONCE: "concurrent", BULK: "bulk"}
_WORK = (CPU, SENT, CALLED, TRIPS)
_DRAIN_ONLY = (CPU_MAIN, READS)
_AN_HOUR_MS = 3_600_000
_LONGEST_S = 300.0


@contextlib.asynccontextmanager
async def started(command: Command | NotInstalled, folder: Path) -> AsyncIterator[tuple[Child, Meter]]:
    """The system beside a fresh server, connected, and a meter at the server."""
    if isinstance(command, NotInstalled):
        raise NotMeasured(str(command))
    async with running_redis(folder) as port, meter(port) as at_server:
        async with child(*command, str(port), longest_s=_LONGEST_S) as system:
            await system.answer()  # connected
            yield system, at_server


def add(way: str, jobs: int, data: Mapping[str, Any], *, delay_ms: int = 0) -> Mapping[str, Any]:
    return {"do": "add", "way": _WAYS[way], "jobs": jobs, "data": data, "delay_ms": delay_ms}


def drain(system: System, jobs: int) -> Mapping[str, Any]:
    return {"do": "drain", "jobs": jobs, "concurrency": system.concurrency}


async def done(told: Child, at_server: Meter, order: Mapping[str, Any]) -> tuple[float, Work]:
    """Jobs a second, and what the server did for each."""
    before = at_server.read()
    answer = await told.told(order)
    return order["jobs"] / answer["seconds"], at_server.since(before, order["jobs"])


def _noted(system: System, setting: str, work: Work) -> dict[Series, float]:
    # A call of add_bulk is sent in one go and waited for once, whatever it is made of.
    trips = min(work.sent, 1 / COMPANY) if setting == BULK else work.sent
    values = dict(zip(_WORK, (work.cpu_us, work.sent, work.called, trips), strict=True))
    if setting == system.drained:
        values |= dict(zip(_DRAIN_ONLY, (work.main_thread_us, work.reads), strict=True))
    return {system.series(measure, setting): value for measure, value in values.items()}


def living(system: System, jobs: int) -> Trial:
    """Jobs of 200 bytes: some are added one at a time, some at once, most in bulk; then all are drained."""
    speeds = {way: system.series(ENQUEUE, way) for way in _WAYS} | {
        system.drained: system.series(DRAIN, system.setting)
    }
    parts = [system.series(measure, setting) for measure in _WORK for setting in speeds]
    parts += [system.series(measure, system.drained) for measure in _DRAIN_ONLY]
    lives = {way: system.life(way) for way in _WAYS}

    async def measure(folder: Path) -> Measured:
        data = payload(n=0)
        counts = {ONE: jobs // 4, AT_ONCE: jobs // 4, BULK: jobs}
        orders = {way: add(way, count, data) for way, count in counts.items()}
        orders[system.drained] = drain(system, sum(counts.values()) + 1)
        found: dict[Series, float] = {}
        async with started(system.command, folder) as (told, at_server):
            await told.told(add(ONE, 1, data))  # the queue exists and the scripts are known
            for setting, order in orders.items():
                found[speeds[setting]], work = await done(told, at_server, order)
                found |= _noted(system, setting, work)
        drained_us = found[system.series(CPU, system.drained)]
        return found | {life: found[system.series(CPU, way)] + drained_us for way, life in lives.items()}

    return Trial([*speeds.values(), *lives.values(), *parts], measure)


def draining(system: System, jobs: int) -> Trial:
    """The drain alone, with the default options of a system that keeps less than all."""
    setting = f"{system.setting}, the newest 1,000 kept (default)"
    speed, cpu = system.series(DRAIN, setting), system.series(CPU, f"drain, {setting}")

    async def measure(folder: Path) -> Measured:
        async with started(system.with_defaults, folder) as (told, at_server):
            await told.told(add(BULK, jobs, payload(n=0)))
            per_s, work = await done(told, at_server, drain(system, jobs))
        return {speed: per_s, cpu: work.cpu_us}

    return Trial([speed, cpu], measure)


def weighing(system: System, jobs: int) -> Trial:
    """Jobs of one small payload and each system's default options, as they lie there."""
    waiting, delayed = system.series(BYTES, WAITING), system.series(BYTES, DELAYED)
    completed = system.series(BYTES, COMPLETED)
    in_bulk, singly = system.series(REMEMBERED, BULK), system.series(REMEMBERED, ONE)

    async def measure(folder: Path) -> Measured:
        found: dict[Series, float] = {}
        async with started(system.with_defaults, folder) as (told, at_server):
            await told.told(add(BULK, jobs, SMALL))
            weight = at_server.weigh()
            found |= {waiting: weight.jobs / jobs, in_bulk: weight.remembered / jobs}
        async with started(system.with_defaults, folder) as (told, at_server):
            await told.told(add(BULK, jobs, SMALL, delay_ms=_AN_HOUR_MS))
            found[delayed] = at_server.weigh().jobs / jobs
        async with started(system.command, folder) as (told, at_server):
            await told.told(add(BULK, jobs, SMALL))
            await told.told(drain(system, jobs))
            found[completed] = at_server.weigh().jobs / jobs
        if system.remembers:
            async with started(system.with_defaults, folder) as (told, at_server):
                await told.told(add(ONE, jobs // 10, SMALL))
                found[singly] = at_server.weigh().remembered / (jobs // 10)
        return found if system.remembers else {one: found[one] for one in (waiting, delayed, completed)}

    remembered = [in_bulk, singly] if system.remembers else []
    return Trial([waiting, delayed, completed, *remembered], measure, once=True)


def limiting(script: Path, jobs: int) -> Trial:
    async def measure(folder: Path) -> Measured:
        if not script.exists():
            raise NotMeasured("the script of the limit is absent")
        async with running_redis(folder) as port:
            answer = await run_limit_on_redis(script, f"redis://{HOST}:{port}/0", batch=LIMIT_BATCH, jobs=jobs)
        return {
            LIMIT_ENQUEUE: answer["add_per_s"],
            LIMIT_DRAIN: answer["drain_per_s"],
            LIMIT_CPU: answer["store_us_per_job"],
        }

    return Trial([LIMIT_ENQUEUE, LIMIT_DRAIN, LIMIT_CPU], measure)
