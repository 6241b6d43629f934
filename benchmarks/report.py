"""What a run found, as Markdown for people and as JSON for programs."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.headlines import COLUMNS, Headline, headlines
from benchmarks.series import Figures, Ratio, Series, Summary
from benchmarks.trials import MEASURES


def in_order(series: Iterable[Series], measures: Sequence[str] = MEASURES) -> list[Series]:
    """By measure, and within it by system; measures that are not listed come last, in the order they are met."""
    met = list(dict.fromkeys(series))
    places = {measure: place for place, measure in enumerate(dict.fromkeys([*measures, *(one.measure for one in met)]))}
    return sorted(met, key=lambda one: (places[one.measure], one.system))


def as_json(figures: Figures, series: Sequence[Series], ratios: Sequence[Ratio], setup: Sequence[str]) -> str:
    compared = {ratio.name: figures.ratio(ratio) for ratio in ratios}
    content = {
        "setup": list(setup),
        "headlines": [_headline(line) for line in headlines(figures, series)],
        "rows": [_row(figures, one) for one in series],
        "ratios": {name: round(found.median, 3) if found else None for name, found in compared.items()},
        "ratio_spreads": {name: _spread(found, 3) for name, found in compared.items()},
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _row(figures: Figures, series: Series) -> dict[str, Any]:
    found = figures.of(series)
    row: dict[str, Any] = {
        "system": series.system,
        "measure": series.measure,
        "setting": series.setting,
        "median": round(found.median, 3) if found else None,
        "spread": _spread(found, 3),
        "unit": series.unit,
    }
    return row if found else row | {"note": _why_missing(figures, series)}


def _headline(line: Headline) -> dict[str, Any]:
    found = {
        column: {"median": round(summary.median, 3), "spread": _spread(summary, 3)}
        for column, summary in line.found.items()
    }
    return {"system": line.system, "store": line.store, "found": found}


def _spread(found: Summary | None, digits: int) -> list[float] | None:
    return [round(found.low, digits), round(found.high, digits)] if found else None


def as_markdown(figures: Figures, series: Sequence[Series], ratios: Sequence[Ratio], setup: Sequence[str]) -> str:
    return "\n".join(
        [
            *[f"{line}  " for line in setup],
            *("", *_ratio_table(figures, ratios)),
            *("", *_headline_table(headlines(figures, series))),
            *("", *_all_rows(figures, series)),
            "",
        ]
    )


def _ratio_table(figures: Figures, ratios: Sequence[Ratio]) -> list[str]:
    lines = ["| ratio of medians | value | spread of the rounds | target |", "|---|---:|---:|---:|"]
    for ratio in ratios:
        compared = figures.ratio(ratio)
        cells = (_number(compared.median), _range(compared)) if compared else ("not measured", "")
        lines.append(f"| `{ratio.name}` | {cells[0]} | {cells[1]} | {ratio.target} |")
    return lines


def _headline_table(lines: Sequence[Headline]) -> list[str]:
    table = ["| system | store | " + " | ".join(COLUMNS) + " |", "|---|---|" + "---:|" * len(COLUMNS)]
    for line in lines:
        cells = [_number(line.found[column].median) if column in line.found else "–" for column in COLUMNS]
        table.append(f"| {line.system} | {line.store} | {' | '.join(cells)} |")
    return table


def _all_rows(figures: Figures, series: Sequence[Series]) -> list[str]:
    lines = ["| measure | system | setting | median | spread (min–max) | unit |", "|---|---|---|---:|---:|---|"]
    for one in series:
        found = figures.of(one)
        if not found and one not in figures.missing:
            continue  # a run that was ended before its time has not come to it
        if one.measure.startswith("growth, "):
            continue  # thousands, of which the ratios name the largest; they are in the JSON
        cells = (_number(found.median), _range(found)) if found else (_why_missing(figures, one), "")
        lines.append(f"| {one.measure} | {one.system} | {one.setting} | {cells[0]} | {cells[1]} | {one.unit} |")
    return lines


def _why_missing(figures: Figures, series: Series) -> str:
    why = figures.missing.get(series)
    return f"not measured: {why}" if why else "not measured"


def _range(found: Summary) -> str:
    return f"{_number(found.low)}–{_number(found.high)}"


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def write_between_markers(page: Path, text: str, place: str = "results") -> None:
    """Put the tables where the page has its place for them."""
    start, end = f"<!-- {place} -->", f"<!-- /{place} -->"
    before, _, rest = page.read_text().partition(start)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{page.name} has no place for results: {start} … {end}")
    page.write_text(f"{before}{start}\n\n{text}\n{end}{after}")
