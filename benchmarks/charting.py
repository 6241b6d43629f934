"""Child: draws the headline measures of a run, one bar a system; it runs where matplotlib is.

python -m benchmarks.charting benchmarks/out/latest.json FOLDER
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

Row = dict[str, Any]

OURS, THEIRS, LIMIT, INK, FAINT = "#2f6fdb", "#b8c0cc", "#e6e9ee", "#22272e", "#8b949e"
_NAME = "performance-{}.png"


def label(row: Row) -> str:
    return f"{row['system']} · {row['measure'].partition(', ')[2]}"


def best_of_each(rows: Sequence[Row], measure: str, chosen: Callable[[Row], bool] = lambda _: True) -> list[Row]:
    """The best row of each system on each store, the fastest first."""
    best: dict[str, Row] = {}
    for row in rows:
        if row["measure"].partition(", ")[0] == measure and row["median"] is not None and chosen(row):
            found = best.get(label(row))
            if found is None or row["median"] > found["median"]:
                best[label(row)] = row
    return sorted(best.values(), key=lambda row: -float(row["median"]))


def colour(row: Row) -> str:
    return {"Bullpen": OURS, "the limit": LIMIT}.get(row["system"], THEIRS)


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def panel(axes: Any, rows: Sequence[Row], title: str) -> None:
    """Horizontal bars with their spread, each with its figure written out."""
    places = range(len(rows))
    medians = [row["median"] for row in rows]
    around = [
        [row["median"] - row["spread"][0] for row in rows],
        [row["spread"][1] - row["median"] for row in rows],
    ]
    axes.barh(places, medians, xerr=around, color=[colour(row) for row in rows], ecolor=FAINT, height=0.72)
    widest = max((row["spread"][1] for row in rows), default=1.0)
    for place, row in enumerate(rows):
        axes.text(row["spread"][1] + widest * 0.012, place, number(row["median"]), va="center", fontsize=8, color=INK)
    axes.set_yticks(list(places), [label(row) for row in rows], fontsize=8.5, color=INK)
    axes.invert_yaxis()
    axes.set_xlim(0, widest * 1.14)
    axes.set_title(title, loc="left", fontsize=10, color=INK, pad=8)
    axes.tick_params(length=0)
    axes.xaxis.set_visible(False)
    for side in axes.spines.values():
        side.set_visible(False)


def saved(figure: Any, folder: Path, name: str, setup: Sequence[str]) -> str:
    figure.text(0.995, 0.005, setup[0], ha="right", va="bottom", fontsize=6, color=FAINT)
    figure.tight_layout(rect=(0, 0.02, 1, 1))
    path = folder / _NAME.format(name)
    figure.savefig(path, dpi=150, facecolor="white")
    plt.close(figure)
    return path.name


def drain(found: dict[str, Any], folder: Path) -> str:
    rows = best_of_each(found["rows"], "drain")
    figure, axes = plt.subplots(figsize=(8, 0.9 + 0.3 * len(rows)))
    panel(axes, rows, "Jobs drained a second by one worker at its best concurrency, results kept")
    return saved(figure, folder, "drain", found["setup"])


def enqueue(found: dict[str, Any], folder: Path) -> str:
    ways = {
        "one at a time": "Added one at a time, a second",
        "200 at once": "Added as single adds, 200 at once",
        "in bulk of 200": "Added in bulk of 200",
    }
    panels = {
        title: best_of_each(found["rows"], "enqueue", lambda row, way=way: row["setting"].startswith(way))  # type: ignore[misc]
        for way, title in ways.items()
    }
    heights = [max(1, len(rows)) for rows in panels.values()]
    figure, all_axes = plt.subplots(3, 1, figsize=(8, 2 + 0.27 * sum(heights)), height_ratios=heights)
    for axes, (title, rows) in zip(all_axes, panels.items(), strict=True):
        panel(axes, rows, title)
    return saved(figure, folder, "enqueue", found["setup"])


def pickup(found: dict[str, Any], folder: Path) -> str:
    """Dots on a logarithmic scale: pollers are a hundred times later than those who wait."""
    halves = {(label(row), row["setting"]): row for row in found["rows"] if row["measure"].startswith("pickup p50")}
    lates = {(label(row), row["setting"]): row for row in found["rows"] if row["measure"].startswith("pickup p99")}
    keys = [key for key, row in halves.items() if row["median"] is not None and lates[key]["median"] is not None]
    keys = [key for key in keys if "one process" not in key[1]]  # the others all have two
    keys.sort(key=lambda key: float(halves[key]["median"]))
    figure, axes = plt.subplots(figsize=(8, 1.1 + 0.3 * len(keys)))
    for place, key in enumerate(keys):
        p50, p99 = halves[key]["median"], lates[key]["median"]
        shade = OURS if halves[key]["system"] == "Bullpen" else FAINT
        axes.plot([p50, p99], [place, place], color=shade, linewidth=1.6, alpha=0.5)
        axes.plot(p50, place, "o", color=shade, markersize=6)
        axes.plot(p99, place, "o", color="white", markeredgecolor=shade, markersize=6)
        axes.text(p99 * 1.12, place, f"{number(p50)} / {number(p99)}", va="center", fontsize=8, color=INK)
    axes.set_yticks(range(len(keys)), [key[0] for key in keys], fontsize=8.5, color=INK)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(right=axes.get_xlim()[1] * 2.2)
    axes.set_title("From add to handler, idle, ms: p50 ● and p99 ○", loc="left", fontsize=10, color=INK, pad=8)
    axes.grid(axis="x", color=LIMIT, linewidth=0.8)
    axes.tick_params(length=0, labelsize=8.5, which="both")
    for side in axes.spines.values():
        side.set_visible(False)
    return saved(figure, folder, "pickup", found["setup"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=Path)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    found = json.loads(args.figures.read_text())
    print(json.dumps({"drawn": [chart(found, args.folder) for chart in (drain, enqueue, pickup)]}))


if __name__ == "__main__":
    main()
