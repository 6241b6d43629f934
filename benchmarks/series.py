"""What is measured: a series is one figure of one system, taken once a round."""

import dataclasses
import statistics
from collections import defaultdict
from collections.abc import Collection, Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    system: str
    measure: str
    setting: str
    unit: str = "/s"


@dataclasses.dataclass(frozen=True, slots=True)
class Best:
    """Whichever of these has the best median in this run."""

    of: tuple[Series, ...]
    lowest: bool = False
    """Less is better, as with a latency."""


def parts(of: Series | Best | None) -> tuple[Series, ...]:
    return of.of if isinstance(of, Best) else (of,) if of else ()


@dataclasses.dataclass(frozen=True, slots=True)
class Ratio:
    name: str
    over: Series | Best
    under: Series | Best | None
    """None: the figure itself is the answer."""
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

    def chosen(self, of: Series | Best) -> Series | None:
        """The one that a ratio takes; None if nothing of it was measured."""
        measured = [one for one in parts(of) if self._found[one]]
        best = min if isinstance(of, Best) and of.lowest else max
        return best(measured, key=lambda one: statistics.median(self._found[one].values()), default=None)

    def ratio(self, ratio: Ratio) -> Summary | None:
        """The quotient of the medians; its spread is that of the rounds, each compared within itself."""
        over = self._rounds(ratio.over)
        if ratio.under is None:
            return _summary(over.values())
        under = self._rounds(ratio.under)
        each = _summary([over[n] / under[n] for n in over.keys() & under.keys()])
        if each is None:
            return None
        return Summary(statistics.median(over.values()) / statistics.median(under.values()), each.low, each.high)

    def _rounds(self, of: Series | Best) -> Mapping[int, float]:
        chosen = self.chosen(of)
        return {} if chosen is None else self._found[chosen]


def _summary(values: Collection[float]) -> Summary | None:
    return Summary(statistics.median(values), min(values), max(values)) if values else None
