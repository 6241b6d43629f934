"""The trials of Bullpen on Redis."""

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.bullpen_trials import BULLPEN, settled_by
from benchmarks.children import module
from benchmarks.peers.environments import Command, NotInstalled
from benchmarks.redis.meter import Weight, meter
from benchmarks.redis.server import HOST, running_redis
from benchmarks.series import Series
from benchmarks.system_trials import adding, draining, driven
from benchmarks.systems import System, place_for
from benchmarks.trials import BYTES, REMEMBERED, Measured, Trial
from benchmarks.workload import payload
from bullpen import JobOptions, Queue, keep
from bullpen.stores.redis import RedisStore

COMMAND: Command = [*module("redis.driver")]
SMALL = {"user": 42}
WAITING, COMPLETED = "waiting", "completed and kept"


def bullpen_at(concurrency: int) -> System:
    return System(
        name=BULLPEN,
        store="Redis",
        setting=f"concurrency {concurrency}",
        concurrency=concurrency,
        ways=("one", "concurrent", "bulk"),
        scripted=True,
    )


AT_50, AT_100, AT_200 = map(bullpen_at, (50, 100, 200))
WITH_AOF = dataclasses.replace(AT_50, aof=True)


def drained_alone(system: System, jobs: int, *, defaults: bool = False) -> Trial:
    """The drain by itself; with `defaults` only the newest results are kept."""
    setting = f"{system.drain.setting}, the newest 1,000 kept (default)" if defaults else system.drain.setting
    series = dataclasses.replace(system.drain, setting=setting)
    options = ["--defaults"] if defaults else []

    async def measure(folder: Path) -> Measured:
        async with place_for(system, folder) as where, driven(system, COMMAND, where, *options) as driver:
            await driver.told(adding("bulk", jobs))
            return {series: jobs / (await driver.told(draining(jobs)))["seconds"]}

    return Trial([series], measure)


# ── several processes ────────────────────────────────────────────────────────────────────


def processes_series(count: int) -> Series:
    return Series(BULLPEN, "drain by several processes, Redis", f"{count} × concurrency 50")


def processes(count: int, jobs: int) -> Trial:
    """From the moment the queue is resumed, with every worker waiting, to the last settlement of any."""
    series = processes_series(count)

    async def measure(folder: Path) -> Measured:
        async with running_redis(folder) as port:
            url = f"redis://{HOST}:{port}/0"
            store = RedisStore(url)
            await store.open()
            queue = Queue(store, "bench", defaults=JobOptions(keep_completed=keep()))
            await queue.pause()
            for _ in range(0, jobs, 1_000):
                await queue.add_bulk([queue.prepare("noop", payload(n=n)) for n in range(1_000)])
            async with contextlib.AsyncExitStack() as stack:
                stack.push_async_callback(store.close)
                command = module("redis.working", url, "--concurrency", 50)
                return {series: await settled_by(command, count, queue)}

    return Trial([series], measure)


# ── bytes ────────────────────────────────────────────────────────────────────────────────


def bytes_series(name: str, state: str) -> Series:
    return Series(name, BYTES, state, "bytes/job")


def weighing(system: System, command: Command | NotInstalled, jobs: int) -> Trial:
    """Jobs of one small payload and each system's default options, as they lie there."""
    waiting, completed = (bytes_series(system.name, state) for state in (WAITING, COMPLETED))
    remembered = Series(system.name, REMEMBERED, "added in bulk of 200", "bytes/job")
    ours = system.name == BULLPEN

    async def weighed(folder: Path, *orders: dict[str, Any], options: Sequence[str] = ()) -> Weight:
        async with running_redis(folder) as port, meter(port) as at_server:
            async with driven(system, command, f"redis://{HOST}:{port}/0", *options) as driver:
                for order in orders:
                    await driver.told(order)
                return at_server.weigh()

    async def measure(folder: Path) -> Measured:
        add = adding("bulk", jobs, SMALL)
        at_first = await weighed(folder, add, options=["--defaults"] if ours else [])
        at_last = await weighed(folder, add, draining(jobs))
        found = {waiting: at_first.jobs / jobs, completed: at_last.jobs / jobs}
        return found | {remembered: at_first.remembered / jobs} if ours else found

    return Trial([waiting, completed, *([remembered] if ours else [])], measure, once=True)
