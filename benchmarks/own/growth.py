"""Growth: what each operation costs in a small and in a large queue, and whether that is the same.

The work must be equal: steps of SQLite's machine, commands on Redis. Pages that SQLite reads with an empty cache
grow with the depth of its trees and with nothing else, so they stand beside it, as facts, and so do depth and time.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.own.gauges import COMMANDS, REDIS_UNITS, SQLITE_UNITS, STEPS
from benchmarks.own.growing import DEPTH, DIMENSIONS, TIME, WRITER, Dimension, measure
from benchmarks.own.operations import MEETS_MANY, names_of
from benchmarks.own.places import NORMAL, REDIS, Place
from benchmarks.series import Best, Figures, Ratio, Series
from benchmarks.trials import Measured, Trial

SYSTEM = "Bullpen"
_EQUAL = 1.05
"""Work that differs by less is the same: an event more or less, a page that was split."""
_SLOWER = 1.5
_PLACES = (NORMAL, REDIS)
WORK = "work"
_UNITS = {**REDIS_UNITS, **SQLITE_UNITS, TIME: "µs", WRITER: "µs", DEPTH: "levels"}


def _series(place: Place, dimension: Dimension, size: int, operation: str, what: str) -> Series:
    setting = f"{place.name}, {size:,} {dimension.things}: {operation}"
    return Series(SYSTEM, f"growth, {what}", setting, _UNITS[what])


def trials(*, quick: bool, only: Iterable[str] = DIMENSIONS) -> list[Trial]:
    return [_growing(place, DIMENSIONS[name], quick=quick) for name in only for place in _PLACES]


def ratios() -> list[Ratio]:
    """What grew most, of all operations along all dimensions on both stores."""
    found = [(place, dimension) for dimension in DIMENSIONS.values() for place in _PLACES]
    return [
        Ratio("growth_work_max", Best(tuple(_most(WORK, *one) for one in found)), None, f"≤ {_EQUAL}"),
        Ratio("growth_time_max", Best(tuple(_most(TIME, *one) for one in found)), None, f"≤ {_SLOWER}"),
    ]


def _most(what: str, place: Place, dimension: Dimension) -> Series:
    """Of the operation whose cost grew most from the smallest to the largest size."""
    return Series(SYSTEM, f"what grew most, {what}", f"{place.name}, {dimension.things}", "×")


def _sizes(dimension: Dimension, *, quick: bool) -> Sequence[int]:
    return dimension.quick_sizes if quick else dimension.sizes


def _growing(place: Place, dimension: Dimension, *, quick: bool) -> Trial:
    sizes = _sizes(dimension, quick=quick)
    measured = [TIME, *REDIS_UNITS] if place.is_redis else [TIME, WRITER, *SQLITE_UNITS]
    series = [
        _series(place, dimension, size, name, what)
        for size in sizes
        for name in names_of(dimension.name)
        for what in measured
    ]

    async def measure_it(folder: Path) -> Measured:
        found = await measure(place, folder, dimension, sizes)
        costs = {
            _series(place, dimension, size, name, what): cost
            for size, costs in found.items()
            for (name, what), cost in costs.items()
        }
        grown = _of_all(place, dimension, _figures_of(costs), quick=quick)
        return costs | {
            most[WORK]: max(one.work_ratio for one in grown),
            most[TIME]: max(one.time_ratio for one in grown),
        }

    most = {what: _most(what, place, dimension) for what in (WORK, TIME)}
    return Trial([*most.values(), *series], measure_it, once=True)


def _figures_of(costs: Measured) -> Figures:
    figures = Figures()
    for series, cost in costs.items():
        figures.note(series, 1, cost)
    return figures


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """One operation along one dimension on one store, from a small size to the largest."""

    place: str
    dimension: str
    operation: str
    sizes: tuple[int, int]
    counted: str
    work: tuple[float, float]
    time_us: tuple[float, float]
    facts: Mapping[str, tuple[float, float]]

    @property
    def work_is_equal(self) -> bool:
        return self.work_ratio <= _EQUAL

    @property
    def work_ratio(self) -> float:
        small, large = self.work
        return large / small if small else 1 + large

    @property
    def time_ratio(self) -> float:
        small, large = self.time_us
        return large / small

    @property
    def words(self) -> str:
        work = "equal" if self.work_is_equal else "GROWS"
        return work if self.time_ratio <= _SLOWER else f"{work}, slower"


def verdicts(figures: Figures, *, quick: bool, only: Iterable[str] = DIMENSIONS) -> list[Verdict]:
    """Of all that was measured at both ends."""
    return [
        verdict
        for name in only
        for place in _PLACES
        for verdict in _of_all(place, DIMENSIONS[name], figures, quick=quick)
    ]


def _of_all(place: Place, dimension: Dimension, figures: Figures, *, quick: bool) -> list[Verdict]:
    found = [_verdict(figures, place, dimension, operation, quick=quick) for operation in names_of(dimension.name)]
    return [one for one in found if one is not None]


def _verdict(figures: Figures, place: Place, dimension: Dimension, operation: str, *, quick: bool) -> Verdict | None:
    sizes = _sizes(dimension, quick=quick)
    # A batch meets as many tenants as it has jobs: with one tenant alone it meets only that one.
    first = sizes[1] if len(sizes) > 2 and operation in MEETS_MANY else sizes[0]

    def ends(what: str, operation: str = operation) -> tuple[float, float] | None:
        both = [figures.of(_series(place, dimension, size, operation, what)) for size in (first, sizes[-1])]
        return None if both[0] is None or both[1] is None else (both[0].median, both[1].median)

    counted = COMMANDS if place.is_redis else STEPS
    work, time_us = ends(counted), ends(TIME)
    if work is None or time_us is None:
        return None
    facts = {what: both for what in _UNITS if what not in (counted, TIME) and (both := ends(what)) is not None}
    if (depth := ends(DEPTH, "any")) is not None:
        facts[DEPTH] = depth
    return Verdict(place.name, dimension.name, operation, (first, sizes[-1]), counted, work, time_us, facts)


def as_table(found: Sequence[Verdict]) -> list[str]:
    lines = [
        "| store | growth | operation | work | time, µs | time × | beside it | verdict |",
        "|---|---|---|---|---|---:|---|---|",
    ]
    for one in found:
        small, large = one.sizes
        facts = "; ".join(f"{what} {_pair(both)}" for what, both in one.facts.items())
        cells = [
            one.place, f"{small:,} → {large:,} {one.dimension}", one.operation, f"{_pair(one.work)} {one.counted}",
            _pair(one.time_us), f"{one.time_ratio:.2f}", facts, one.words,
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _pair(both: tuple[float, float]) -> str:
    return f"{both[0]:,.0f}" if both[0] == both[1] else f"{both[0]:,.0f} → {both[1]:,.0f}"
