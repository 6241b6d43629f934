"""Runs every trial in rounds and writes what was found: `make bench`, `make bench QUICK=1`.

The tables go to stdout and `benchmarks/out/latest.md`, the figures to `benchmarks/out/latest.json`.
"""

import argparse
import asyncio
import os
import platform
import sqlite3
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.children import ROOT, ChildFailed
from benchmarks.limit import find_limit
from benchmarks.peers.huey_setup import Huey, NotInstalled, install
from benchmarks.plan import Sizes, all_ratios, all_trials
from benchmarks.report import as_json, as_markdown, in_order, write_between_markers
from benchmarks.series import Figures
from benchmarks.trials import NotMeasured, Trial, WentWrong

OUT = ROOT / "benchmarks" / "out"
PAGE = ROOT / "docs" / "explanation" / "performance.md"


class Run:
    def __init__(self, trials: list[Trial], rounds: int) -> None:
        self._trials = trials
        self._rounds = rounds
        self.figures = Figures()
        self.went_wrong = False

    async def all_rounds(self) -> None:
        for number in range(1, self._rounds + 1):
            for trial in self._trials:
                if number == 1 or not trial.once:
                    await self._try(trial, number)

    async def _try(self, trial: Trial, number: int) -> None:
        first = trial.series[0]
        print(f"round {number}/{self._rounds}: {first.system}, {first.measure}, {first.setting}", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=OUT, prefix="trial-") as folder:
            try:
                measured = await trial.measure(Path(folder))
            except NotMeasured as reason:
                self._miss(trial, str(reason))
                return
            except (ChildFailed, WentWrong) as error:
                self._miss(trial, f"it went wrong: {error}")
                self.went_wrong = True
                return
        for series, value in measured.items():
            self.figures.note(series, number, value)

    def _miss(self, trial: Trial, why: str) -> None:
        print(f"  {why}", file=sys.stderr)
        for series in trial.series:
            self.figures.missing[series] = why


async def peer() -> Huey | NotInstalled:
    try:
        return await install(OUT / "peers" / "huey")
    except NotInstalled as error:
        return error


def setup_of(sizes: Sizes, huey: Huey | NotInstalled, load: float) -> list[str]:
    """What a reader needs to know of the run."""
    beside = f"huey {huey.version}" if isinstance(huey, Huey) else f"huey not measured ({huey})"
    machine = f"{os.cpu_count()} cores (load {load:.1f} before the run)"
    versions = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {beside}"
    return [
        f"{datetime.now(UTC):%Y-%m-%d}, {machine}, {versions}.",
        f"Rounds: {sizes.rounds}, each of up to {sizes.jobs:,} jobs and {sizes.samples} pickups.",
    ]


async def bench(args: argparse.Namespace) -> int:
    sizes = sizes_of(args)
    OUT.mkdir(exist_ok=True)
    load = os.getloadavg()[0]
    huey = await peer()
    trials = all_trials(sizes, find_limit(args.limit), huey)
    run = Run(trials, sizes.rounds)
    await run.all_rounds()
    series = in_order(one for trial in trials for one in trial.series)
    found = run.figures, series, all_ratios(sizes), setup_of(sizes, huey, load)
    text = as_markdown(*found)
    (OUT / "latest.json").write_text(as_json(*found))
    (OUT / "latest.md").write_text(text)
    print(text)
    if args.write_docs:
        write_between_markers(PAGE, text)
    return 1 if run.went_wrong else 0


def sizes_of(args: argparse.Namespace) -> Sizes:
    usual = (
        Sizes(rounds=3, jobs=6_000, samples=200, waiting=100_000)
        if args.quick
        else Sizes(rounds=5, jobs=20_000, samples=500, waiting=1_000_000)
    )
    return Sizes(
        rounds=args.rounds or usual.rounds,
        jobs=args.jobs or usual.jobs,
        samples=args.samples or usual.samples,
        waiting=args.waiting or usual.waiting,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three short rounds")
    parser.add_argument("--rounds", type=int, help="how often each trial is made")
    parser.add_argument("--jobs", type=int, help="jobs of the largest trials")
    parser.add_argument("--samples", type=int, help="pickups in a round")
    parser.add_argument("--waiting", type=int, help="the longer line of the growth check")
    parser.add_argument("--limit", type=Path, help="the script of the limit, else BULLPEN_LIMIT")
    parser.add_argument("--write-docs", action="store_true", help=f"put the tables into {PAGE.name}")
    raise SystemExit(asyncio.run(bench(parser.parse_args())))


if __name__ == "__main__":
    main()
