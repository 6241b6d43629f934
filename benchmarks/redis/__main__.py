"""Measures Bullpen on Redis beside BullMQ, of Node and of PyPI, in alternating rounds: `python -m benchmarks.redis`.

The tables go to stdout and `benchmarks/out/redis.md`, the figures to `benchmarks/out/redis.json`.
"""

import argparse
import asyncio
import os
import platform
import sys
import tempfile
from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.children import ChildFailed, child, module
from benchmarks.limit import find_limit
from benchmarks.peers.bullmq_setup import Command, find_node, find_pypi
from benchmarks.peers.huey_setup import NotInstalled
from benchmarks.redis import server
from benchmarks.redis.measures import BULK, MEASURES, System, all_ratios
from benchmarks.redis.trials import SMALL, add, drain, draining, limiting, living, started, weighing
from benchmarks.report import as_json, as_markdown, in_order, write_between_markers
from benchmarks.run import OUT, PAGE, Run
from benchmarks.trials import NotMeasured, WentWrong

PLACE = "redis results"
_A_FEW = 100


def bullpen(by: str) -> System:
    setting = "Worker, concurrency 50" if by == "worker" else "a bare loop of exchanges, 50 jobs out"
    child: Command = [*module("redis.bullpen_child", "--by", by)]
    kept: Command = [*child, "--keep-all"]
    return System(name="Bullpen", command=kept, concurrency=50, setting=setting, defaults=child, remembers=True)


async def all_systems() -> tuple[System, System, System]:
    node = await found(find_node(OUT / "peers" / "bullmq-node"))
    pypi = await found(find_pypi(OUT / "peers" / "bullmq-pypi"))
    return (
        bullpen(await who_drains()),
        System(name="BullMQ, Node", command=node, concurrency=50, setting="concurrency 50"),
        System(name="bullmq, PyPI", command=pypi, concurrency=1, setting="concurrency 1 (its best)"),
    )


async def found(finding: Awaitable[Command]) -> Command | NotInstalled:
    try:
        return await finding
    except NotInstalled as error:
        return error


async def who_drains() -> str:
    """The Worker, if it runs on this store."""
    system = bullpen("worker")
    with tempfile.TemporaryDirectory(dir=OUT, prefix="trial-") as folder:
        try:
            async with started(system.command, Path(folder)) as (told, _):
                await told.told(add(BULK, _A_FEW, SMALL))
                await told.told(drain(system, _A_FEW))
        except (ChildFailed, NotMeasured, WentWrong) as error:
            print(f"the Worker does not run on Redis ({error}): a bare loop drains instead", file=sys.stderr)
            return "exchanges"
    return "worker"


async def version_of(system: System) -> str:
    if isinstance(system.command, NotInstalled):
        return f"{system.name} not measured ({system.command})"
    with tempfile.TemporaryDirectory(dir=OUT, prefix="trial-") as folder:
        async with server.running_redis(Path(folder)) as port, child(*system.command, str(port)) as told:
            return f"{system.name} {(await told.answer())['version']}"


async def setup_of(args: argparse.Namespace, load: float, peers: Sequence[System]) -> list[str]:
    """What a reader needs to know of the run."""
    machine = f"{os.cpu_count()} cores (load {load:.1f} before the run)"
    versions = [f"Python {platform.python_version()}", f"Redis {server.version() or 'not installed'}"]
    versions += [await version_of(peer) for peer in peers]
    added = f"{args.jobs:,} jobs added in bulk and {args.jobs // 4:,} in each other way"
    return [
        f"{datetime.now(UTC):%Y-%m-%d}, {machine}, {'; '.join(versions)}.",
        f"Rounds: {args.rounds}, each of {added}, then drained. Bytes: {args.at_rest:,} jobs, weighed once.",
    ]


async def bench(args: argparse.Namespace) -> int:
    OUT.mkdir(exist_ok=True)
    load = os.getloadavg()[0]
    systems = await all_systems()
    ours, node, pypi = systems
    trials = [living(system, args.jobs) for system in (ours, node, pypi)]
    trials += [draining(ours, args.jobs), limiting(find_limit(args.limit), args.jobs)]
    trials += [weighing(system, args.at_rest) for system in systems]
    run = Run(trials, args.rounds)
    await run.all_rounds()
    series = in_order((one for trial in trials for one in trial.series), MEASURES)
    result = run.figures, series, all_ratios(ours, node, pypi), await setup_of(args, load, (node, pypi))
    text = as_markdown(*result)
    (OUT / "redis.json").write_text(as_json(*result))
    (OUT / "redis.md").write_text(text)
    print(text)
    if args.write_docs:
        write_between_markers(PAGE, text, PLACE)
    return 1 if run.went_wrong else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how often each trial is made")
    parser.add_argument("--jobs", type=int, default=10_000, help="jobs added in bulk in a round")
    parser.add_argument("--at-rest", type=int, default=20_000, help="jobs that are weighed")
    parser.add_argument("--limit", type=Path, help="the script of the limit, else BULLPEN_LIMIT")
    parser.add_argument("--write-docs", action="store_true", help=f"put the tables into {PAGE.name}")
    raise SystemExit(asyncio.run(bench(parser.parse_args())))


if __name__ == "__main__":
    main()
