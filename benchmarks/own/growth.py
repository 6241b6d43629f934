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
from benchmarks.series import Figures, Series
from benchmarks.trials import Measured, Trial

SYSTEM = "Bullpen"
_EQUAL = 1.05
"""Work that differs by less is the same: an event more or less, a page that was split."""
_SLOWER = 1.5
_UNITS = {**REDIS_UNITS, **SQLITE_UNITS, TIME: "µs", WRITER: "µs", DEPTH: "levels"}


def _series(place: Place, dimension: Dimension, size: int, operation: str, what: str) -> Series:
    setting = f"{place.name}, {size:,} {dimension.things}: {operation}"
    return Series(SYSTEM, f"growth, {what}", setting, _UNITS[what])


def trials(*, quick: bool, only: Iterable[str] = DIMENSIONS) -> list[Trial]:
    return [
        _growing(place, DIMENSIONS[name], _sizes(DIMENSIONS[name], quick=quick))
        for name in only
        for place in (NORMAL, REDIS)
    ]


def _sizes(dimension: Dimension, *, quick: bool) -> Sequence[int]:
    return dimension.quick_sizes if quick else dimension.sizes


def _growing(place: Place, dimension: Dimension, sizes: Sequence[int]) -> Trial:
    measured = [TIME, *REDIS_UNITS] if place.is_redis else [TIME, WRITER, *SQLITE_UNITS]
    series = [
        _series(place, dimension, size, name, what)
        for size in sizes
        for name in names_of(dimension.name)
        for what in measured
    ]

    async def measure_it(folder: Path) -> Measured:
        found = await measure(place, folder, dimension, sizes)
        return {
            _series(place, dimension, size, name, what): cost
            for size, costs in found.items()
            for (name, what), cost in costs.items()
        }

    return Trial(series, measure_it, once=True)


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
        small, large = self.work
        return large <= small * _EQUAL

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
    found = []
    for name in only:
        for place in (NORMAL, REDIS):
            for operation in names_of(name):
                one = _verdict(figures, place, DIMENSIONS[name], operation, quick=quick)
                found += [] if one is None else [one]
    return found


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
