"""Measures of Bullpen itself, on both stores: `python -m benchmarks.own`."""

from collections.abc import Mapping
from typing import Protocol

from benchmarks.own import growth, latency, speeds, standing
from benchmarks.series import Ratio
from benchmarks.trials import Trial


class Section(Protocol):
    """The trials of one kind; told whether they are to be short."""

    def __call__(self, *, quick: bool) -> list[Trial]: ...


SECTIONS: Mapping[str, Section] = {
    "enqueue": speeds.enqueue,
    "drain": speeds.drain,
    "processes": speeds.processes,
    "verdicts": speeds.verdicts,
    "latency": latency.trials,
    "bytes": standing.at_rest,
    "idle": standing.idle,
    "memory": standing.memory,
    "flow": standing.flow,
    "steps": standing.steps,
    "growth": growth.trials,
}
"""In the order of the report."""


def trials(*, quick: bool) -> list[Trial]:
    """All of them."""
    return [trial for section in SECTIONS.values() for trial in section(quick=quick)]


def ratios() -> list[Ratio]:
    """What of it has a target."""
    return [*growth.ratios(), *speeds.ratios()]
