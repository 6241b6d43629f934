"""What is measured: a series is one figure of one system, taken once a round."""

import dataclasses
import statistics
from collections import defaultdict
from collections.abc import Collection


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    system: str
    measure: str
    setting: str
    unit: str = "/s"


@dataclasses.dataclass(frozen=True, slots=True)
class Ratio:
    name: str
    over: Series
    under: Series
    target: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    median: float
    low: float
    high: float


class Figures:
    """All that a run has found."""

    def __init__(self) -> None:
        self._found: defaultdict[Series, dict[int, float]] = defaultdict(dict)
        self.missing: dict[Series, str] = {}
        """Why a series has no figures."""

    def note(self, series: Series, round_number: int, value: float) -> None:
        self._found[series][round_number] = value

    def of(self, series: Series) -> Summary | None:
        return _summary(self._found[series].values())

    def ratio(self, ratio: Ratio) -> Summary | None:
        """The quotient of the medians; its spread is that of the rounds, each compared within itself."""
        over, under = self._found[ratio.over], self._found[ratio.under]
        each = _summary([over[n] / under[n] for n in over.keys() & under.keys()])
        if each is None:
            return None
        return Summary(statistics.median(over.values()) / statistics.median(under.values()), each.low, each.high)


def _summary(values: Collection[float]) -> Summary | None:
    return Summary(statistics.median(values), min(values), max(values)) if values else None
