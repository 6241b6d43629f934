"""The four headline measures in one line for each system and store: the best of its settings."""

import dataclasses
from collections.abc import Sequence

from benchmarks.series import Figures, Series, Summary
from benchmarks.trials import STORES

COLUMNS = ("add one at a time", "add 200 at once", "add in bulk", "drain", "pickup p50", "pickup p99")
_ADDS = {"one at a time": COLUMNS[0], "200 at once": COLUMNS[1], "in bulk of 200": COLUMNS[2]}
_DURABILITIES = ("sync full", "sync normal", "AOF every second")


@dataclasses.dataclass(frozen=True, slots=True)
class Headline:
    system: str
    store: str
    """With its durability, where a system was measured with more than one."""
    found: dict[str, Summary]


def headlines(figures: Figures, series: Sequence[Series]) -> list[Headline]:
    """Those who drain fastest first."""
    lines: dict[tuple[str, str], dict[str, Summary]] = {}
    for one in series:
        column, summary = _column(one), figures.of(one)
        if column is None or summary is None:
            continue
        line = lines.setdefault((one.system, _store(one)), {})
        line[column] = _better(column, line.get(column, summary), summary)
    found = [Headline(system, store, line) for (system, store), line in lines.items()]
    return sorted(found, key=lambda line: -line.found["drain"].median if "drain" in line.found else 0.0)


def _column(series: Series) -> str | None:
    measure, _, store = series.measure.partition(", ")
    if store not in STORES:
        return None
    if measure == "enqueue":
        return _ADDS.get(series.setting.partition(",")[0])
    if "one process" in series.setting and measure.startswith("pickup"):
        return None  # everyone else has a producer and a worker in two
    return measure if measure in COLUMNS else None


def _store(series: Series) -> str:
    store = series.measure.partition(", ")[2]
    if series.measure.startswith("pickup") and store == "SQLite":
        return "SQLite, sync full"
    durability = next((name for name in _DURABILITIES if name in series.setting), "")
    if not durability and store == "SQLite":
        durability = "sync full"  # SQLite's default
    return f"{store}, {durability}" if durability else store


def _better(column: str, one: Summary, other: Summary) -> Summary:
    best = min if column.startswith("pickup") else max
    return best(one, other, key=lambda summary: summary.median)
