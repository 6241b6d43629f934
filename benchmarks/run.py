"""Runs every trial in rounds and writes what was found: `make bench`, `make bench QUICK=1`.

The tables go to stdout and `benchmarks/out/latest.md`, the figures to `benchmarks/out/latest.json`.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.charts import draw
from benchmarks.children import ROOT, ChildFailed
from benchmarks.limit import find_limit
from benchmarks.peers.environments import made
from benchmarks.plan import Commands, Sizes, all_trials, own_part, peers_of
from benchmarks.ratios import all_ratios
from benchmarks.report import as_json, as_markdown, in_order, write_between_markers
from benchmarks.series import Figures
from benchmarks.setting import setting_of
from benchmarks.systems import slug
from benchmarks.trials import NotMeasured, Trial, WentWrong

OUT = ROOT / "benchmarks" / "out"
PAGE = ROOT / "docs" / "explanation" / "performance.md"
FULL = Sizes(rounds=5, jobs=20_000, samples=400)
QUICK = Sizes(rounds=3, jobs=8_000, samples=200, quick=True)


class Run:
    def __init__(self, trials: Sequence[Trial], rounds: int) -> None:
        self._trials = trials
        self._rounds = rounds
        self.figures = Figures()
        self.went_wrong = False

    async def all_rounds(self) -> AsyncIterator[int]:
        """Each round as it ends; what is made only once comes after all rounds, and each counts as one of its own."""
        for number in range(1, self._rounds + 1):
            for trial in self._trials:
                if not trial.once:
                    await self._try(trial, number)
            yield number
        for trial in self._trials:
            if trial.once:
                await self._try(trial, 1)
                yield self._rounds + 1

    async def _try(self, trial: Trial, number: int) -> None:
        first = trial.series[0]
        told = f"round {number}/{self._rounds}: {first.system}, {first.measure}, {first.setting}"
        start = time.perf_counter()
        with tempfile.TemporaryDirectory(dir=OUT, prefix="trial-") as folder:
            try:
                measured = await trial.measure(Path(folder))
            except NotMeasured as reason:
                self._miss(trial, str(reason))
                return
            except Exception as error:  # one system's trouble must not cost the figures of the others
                expected = isinstance(error, (ChildFailed, WentWrong))
                self._miss(trial, f"it went wrong: {error if expected else repr(error)}")
                self.went_wrong = True
                return
        for series, value in measured.items():
            self.figures.note(series, number, value)
        print(f"{told} ({time.perf_counter() - start:.1f} s)", file=sys.stderr)

    def _miss(self, trial: Trial, why: str) -> None:
        first = trial.series[0]
        print(f"{first.system}, {first.measure}: {why}", file=sys.stderr)
        for series in trial.series:
            self.figures.missing[series] = why


async def bench(args: argparse.Namespace) -> int:
    sizes = sizes_of(args)
    OUT.mkdir(exist_ok=True)
    _end_in_order()
    logging.disable(logging.WARNING)  # that these servers keep nothing is known
    load = os.getloadavg()[0]
    commands = await commands_for(sizes, args.only)
    own_trials, own_ratios = own_part(sizes)
    trials = chosen([*all_trials(sizes, find_limit(args.limit), commands), *own_trials], args.only)
    run = Run(trials, sizes.rounds)
    series = in_order(one for trial in trials for one in trial.series)
    found = run.figures, series, [*all_ratios(), *own_ratios], await setting_of(sizes, load, commands)
    async for _ in run.all_rounds():
        # A run that is ended before its time leaves the rounds that it made.
        (OUT / "latest.json").write_text(as_json(*found))
        (OUT / "latest.md").write_text(as_markdown(*found))
    text = as_markdown(*found)
    print(text)
    drawn = await draw(OUT / "latest.json", PAGE.parent if args.write_docs else OUT)
    if args.write_docs:
        write_between_markers(PAGE, "\n".join([*(f"![{name}]({name})" for name in drawn), "", text]))
    return 1 if run.went_wrong else 0


async def commands_for(sizes: Sizes, only: Sequence[str]) -> Commands:
    """Install the peers that take part, two at a time; the wait is the network's, mostly."""
    environments = {
        peer.environment.name: peer.environment for peer in peers_of(sizes) if wanted(peer.system.name, only)
    }
    at_a_time = asyncio.Semaphore(2)

    async def make(name: str) -> None:
        async with at_a_time:
            commands[name] = await made(environments[name])

    commands: dict[str, Any] = {}
    await asyncio.gather(*map(make, environments))
    return commands


def wanted(system: str, only: Sequence[str]) -> bool:
    return not only or slug(system) in map(slug, only)


def chosen(trials: Sequence[Trial], only: Sequence[str]) -> list[Trial]:
    return [trial for trial in trials if wanted(trial.series[0].system, only)]


def _end_in_order() -> None:
    """A SIGTERM ends the run as a Ctrl-C does: servers and children first."""
    task = asyncio.current_task()
    assert task is not None
    with contextlib.suppress(NotImplementedError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def sizes_of(args: argparse.Namespace) -> Sizes:
    usual = QUICK if args.quick else FULL
    given = {name: getattr(args, name) for name in ("rounds", "jobs", "samples")}
    return dataclasses.replace(usual, **{name: value for name, value in given.items() if value})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three short rounds, with the peers that matter most")
    parser.add_argument("--only", action="append", default=[], metavar="SYSTEM", help="e.g. bullpen, bullmq_node, huey")
    parser.add_argument("--rounds", type=int, help="how often each trial is made")
    parser.add_argument("--jobs", type=int, help="jobs of the largest trials")
    parser.add_argument("--samples", type=int, help="pickups in a round")
    parser.add_argument("--limit", type=Path, help="the script of the limit, else BULLPEN_LIMIT")
    parser.add_argument("--write-docs", action="store_true", help=f"put the tables into {PAGE.name}, charts beside it")
    try:
        raise SystemExit(asyncio.run(bench(parser.parse_args())))
    except asyncio.CancelledError:
        raise SystemExit(143) from None


if __name__ == "__main__":
    main()
