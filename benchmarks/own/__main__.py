"""Measures Bullpen itself on SQLite and on Redis: `python -m benchmarks.own [--quick] [--only NAME]`.

The tables go to stdout and `benchmarks/out/own.md`, the figures to `benchmarks/out/own.json`.
"""

import argparse
import asyncio
import dataclasses
import json
import os
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.children import ROOT, ChildFailed
from benchmarks.own import SECTIONS, growth
from benchmarks.own.growing import DIMENSIONS
from benchmarks.redis import server
from benchmarks.series import Figures, Series
from benchmarks.trials import NotMeasured, Trial, WentWrong
from bullpen.errors import StoreError

OUT = ROOT / "benchmarks" / "out"


class Rounds:
    """Makes trials and keeps what they found, in the order in which it came."""

    def __init__(self, write: Callable[["Rounds"], None]) -> None:
        self._write = write
        self.figures = Figures()
        self.series: dict[Series, None] = {}
        self.went_wrong = False

    async def make(self, trials: Sequence[Trial], rounds: int) -> None:
        for number in range(1, rounds + 1):
            for trial in trials:
                if number == 1 or not trial.once:
                    await self._try(trial, number)
                    self._write(self)  # a long run that is broken off leaves what it found

    async def _try(self, trial: Trial, number: int) -> None:
        print(f"round {number}: {trial.series[0].measure}, {trial.series[0].setting}", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=OUT, prefix="trial-") as folder:
            try:
                measured = await trial.measure(Path(folder))
            except (NotMeasured, ChildFailed, WentWrong, StoreError) as error:
                print(f"  not measured: {error}", file=sys.stderr)
                self.figures.missing |= dict.fromkeys(trial.series, str(error))
                self.series |= dict.fromkeys(trial.series)
                self.went_wrong |= not isinstance(error, NotMeasured)
                return
        for series, value in measured.items():
            self.series[series] = None
            self.figures.note(series, number, value)


def as_markdown(rounds: Rounds, found: Sequence[growth.Verdict], setup: str) -> str:
    lines = [setup, "", "| measure | setting | median | spread (min–max) | unit |", "|---|---|---:|---:|---|"]
    for one in rounds.series:
        if one.measure.startswith("growth"):
            continue  # has a table of its own
        summary = rounds.figures.of(one)
        if summary is None:
            lines.append(f"| {one.measure} | {one.setting} | not measured: {rounds.figures.missing[one]} | | |")
            continue
        median, low, high = (_number(value) for value in (summary.median, summary.low, summary.high))
        lines.append(f"| {one.measure} | {one.setting} | {median} | {low}–{high} | {one.unit} |")
    return "\n".join([*lines, "", *growth.as_table(found)]) + "\n"


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.4f}"


def as_json(rounds: Rounds, found: Sequence[growth.Verdict], setup: str) -> str:
    rows = []
    for one in rounds.series:
        summary = rounds.figures.of(one)
        row: dict[str, object] = dataclasses.asdict(one)
        if summary is None:
            row["note"] = rounds.figures.missing[one]
        else:
            row |= {"median": round(summary.median, 4), "spread": [round(summary.low, 4), round(summary.high, 4)]}
        rows.append(row)
    judged = [dataclasses.asdict(one) | {"time_ratio": round(one.time_ratio, 3), "verdict": one.words} for one in found]
    return json.dumps({"setup": setup, "rows": rows, "growth": judged}, indent=1, ensure_ascii=False) + "\n"


def setup_of(load: float) -> str:
    versions = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, Redis {server.version()}"
    return f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores (load {load:.1f} before the run), {versions}."


async def bench(args: argparse.Namespace) -> int:
    OUT.mkdir(exist_ok=True)
    setup = setup_of(os.getloadavg()[0])
    dimensions = args.dimension or list(DIMENSIONS)

    def write(rounds: Rounds) -> None:
        found = growth.verdicts(rounds.figures, quick=args.quick, only=dimensions)
        (OUT / "own.md").write_text(as_markdown(rounds, found, setup))
        (OUT / "own.json").write_text(as_json(rounds, found, setup))

    rounds = Rounds(write)
    await rounds.make(list(_chosen(args.only or SECTIONS, dimensions, quick=args.quick)), args.rounds)
    print((OUT / "own.md").read_text())
    return 1 if rounds.went_wrong else 0


def _chosen(sections: Iterable[str], dimensions: Sequence[str], *, quick: bool) -> Iterator[Trial]:
    for name in sections:
        yield from growth.trials(quick=quick, only=dimensions) if name == "growth" else SECTIONS[name](quick=quick)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", action="append", choices=list(SECTIONS), help="may be given more than once")
    parser.add_argument("--dimension", action="append", choices=list(DIMENSIONS), help="of growth")
    parser.add_argument("--rounds", type=int, default=1, help="how often each trial is made")
    raise SystemExit(asyncio.run(bench(parser.parse_args())))


if __name__ == "__main__":
    main()
