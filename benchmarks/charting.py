"""Child: draws the headline measures of a run, a bar or a pair of dots for each system; it runs where matplotlib is.

python -m benchmarks.charting benchmarks/out/latest.json FOLDER
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

Line = dict[str, Any]

OURS, THEIRS, LIMIT, INK, FAINT = "#2f6fdb", "#b8c0cc", "#e3e7ed", "#22272e", "#8b949e"
_NAME = "performance-{}.png"
_ADDS = {
    "add one at a time": "Jobs added a second, one at a time",
    "add 200 at once": "Single adds, 200 at once",
    "add in bulk": "In bulk of 200",
}


def label(line: Line) -> str:
    return f"{line['system']} · {line['store']}"


def colour(line: Line) -> str:
    return {"Bullpen": OURS, "the limit": LIMIT}.get(line["system"], THEIRS)


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def measured(lines: Sequence[Line], column: str) -> list[tuple[Line, float, float, float]]:
    """Those that have it, with median, lowest and highest; the largest first."""
    having = [(line, line["found"][column]) for line in lines if column in line["found"]]
    return sorted(((line, got["median"], *got["spread"]) for line, got in having), key=lambda bar: -bar[1])


def bare(axes: Any, title: str) -> None:
    axes.invert_yaxis()
    axes.set_title(title, loc="left", fontsize=10, color=INK, pad=8)
    axes.tick_params(length=0, which="both", labelsize=8.5, labelcolor=INK)
    for side in axes.spines.values():
        side.set_visible(False)


def bars(axes: Any, found: Sequence[tuple[Line, float, float, float]], title: str) -> None:
    """One a system with its spread, each with its figure written out."""
    medians = [median for _, median, _, _ in found]
    around = [[median - low for _, median, low, _ in found], [high - median for _, median, _, high in found]]
    shades = [colour(line) for line, *_ in found]
    axes.barh(range(len(found)), medians, xerr=around, color=shades, ecolor=FAINT, height=0.72)
    widest = max((high for *_, high in found), default=1.0)
    for place, (_, median, _, high) in enumerate(found):
        axes.text(high + widest * 0.012, place, number(median), va="center", fontsize=8, color=INK)
    axes.set_yticks(range(len(found)), [label(line) for line, *_ in found])
    axes.set_ylim(-0.6, len(found) - 0.4)
    axes.set_xlim(0, widest * 1.14)
    axes.xaxis.set_visible(False)
    bare(axes, title)


def saved(figure: Any, folder: Path, name: str, setup: Sequence[str]) -> str:
    figure.text(0.995, 0.004, setup[0], ha="right", va="bottom", fontsize=6, color=FAINT)
    figure.tight_layout(rect=(0, 0.02, 1, 1))
    path = folder / _NAME.format(name)
    figure.savefig(path, dpi=150, facecolor="white")
    plt.close(figure)
    return path.name


def drain(run: Line, folder: Path) -> str:
    found = measured(run["headlines"], "drain")
    figure, axes = plt.subplots(figsize=(8, 0.9 + 0.3 * len(found)))
    bars(axes, found, "Jobs drained a second by one worker at its best concurrency, results kept")
    return saved(figure, folder, "drain", run["setup"])


def enqueue(run: Line, folder: Path) -> str:
    panels = {title: measured(run["headlines"], column) for column, title in _ADDS.items()}
    heights = [max(1, len(found)) for found in panels.values()]
    figure, all_axes = plt.subplots(3, 1, figsize=(8, 2 + 0.27 * sum(heights)), height_ratios=heights)
    for axes, (title, found) in zip(all_axes, panels.items(), strict=True):
        bars(axes, found, title)
    return saved(figure, folder, "enqueue", run["setup"])


def pickup(run: Line, folder: Path) -> str:
    """On a logarithmic scale: pollers are a hundred times later than those who wait."""
    lates = {label(line): late for line, late, *_ in measured(run["headlines"], "pickup p99")}
    found = measured(run["headlines"], "pickup p50")[::-1]
    figure, axes = plt.subplots(figsize=(8, 1.1 + 0.3 * len(found)))
    for place, (line, p50, *_) in enumerate(found):
        p99, shade = lates[label(line)], OURS if line["system"] == "Bullpen" else FAINT
        axes.plot([p50, p99], [place, place], color=shade, linewidth=1.6, alpha=0.5)
        axes.plot(p50, place, "o", color=shade, markersize=6)
        axes.plot(p99, place, "o", color="white", markeredgecolor=shade, markersize=6)
        axes.text(p99 * 1.15, place, f"{number(p50)} / {number(p99)}", va="center", fontsize=8, color=INK)
    axes.set_yticks(range(len(found)), [label(line) for line, *_ in found])
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlim(right=axes.get_xlim()[1] * 2.2)
    axes.grid(axis="x", color=LIMIT, linewidth=0.8)
    bare(axes, "From add to handler, idle, in ms: p50 ● and p99 ○")
    return saved(figure, folder, "pickup", run["setup"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=Path)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    run = json.loads(args.figures.read_text())
    print(json.dumps({"drawn": [chart(run, args.folder) for chart in (drain, enqueue, pickup)]}))


if __name__ == "__main__":
    main()
