"""Measures of Bullpen itself, on both stores: `python -m benchmarks.own`."""

from collections.abc import Callable, Mapping

from benchmarks.own import growth
from benchmarks.trials import Trial

Section = Callable[[bool], list[Trial]]
"""The trials of one kind; told whether they are to be short."""

SECTIONS: Mapping[str, Section] = {
    "growth": lambda quick: growth.trials(quick=quick),
}
"""In the order of the report."""


def trials(*, quick: bool) -> list[Trial]:
    """All of them."""
    return [trial for section in SECTIONS.values() for trial in section(quick)]
