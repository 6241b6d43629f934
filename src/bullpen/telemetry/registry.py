"""Counters, gauges and histograms, and the text in which Prometheus reads them.

A metric never has more series than its bound: a label value that would be one too many is counted
as `other`, so that no stream of job names or tenants can fill the memory of a worker, or of Prometheus.
"""

import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TypeVar

Labels = tuple[str, ...]
M = TypeVar("M", bound="Metric")

OTHER = "other"
MAX_SERIES = 1_000
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Metric:
    """A name, its labels, and a value for each set of them. Safe from any thread."""

    kind = "untyped"

    def __init__(self, name: str, help_: str, labels: Sequence[str] = (), *, max_series: int = MAX_SERIES) -> None:
        self.name = name
        self.help = help_
        self.labels = tuple(labels)
        self._max_series = max_series
        self._values: dict[Labels, float] = {}
        self._lock = threading.Lock()

    def samples(self) -> Iterator[tuple[str, str, float]]:
        """The suffix of the name, the labels as text, and the value of each line."""
        with self._lock:
            values = sorted(self._values.items())
        for labels, value in values:
            yield "", label_text(self.labels, labels), value

    def _bounded(self, labels: Labels) -> Labels:
        """These labels, or those of all that are too many."""
        if labels in self._values or len(self._values) < self._max_series:
            return labels
        return tuple(OTHER for _ in labels)


class Counter(Metric):
    kind = "counter"

    def inc(self, *labels: str, by: float = 1) -> None:
        with self._lock:
            labels = self._bounded(labels)
            self._values[labels] = self._values.get(labels, 0) + by

    def value(self, *labels: str) -> float:
        return self._values.get(labels, 0)


class Gauge(Metric):
    kind = "gauge"

    def set(self, value: float, *labels: str) -> None:
        with self._lock:
            self._values[self._bounded(labels)] = value

    def clear(self) -> None:
        """Forget all series: what is not set again is no longer there."""
        with self._lock:
            self._values.clear()


class Histogram(Metric):
    kind = "histogram"

    def __init__(
        self,
        name: str,
        help_: str,
        labels: Sequence[str] = (),
        *,
        buckets: Sequence[float],
        max_series: int = MAX_SERIES,
    ) -> None:
        super().__init__(name, help_, labels, max_series=max_series)
        self.buckets = tuple(buckets)
        self._counts: dict[Labels, list[int]] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Count the value; `_values` keeps the sums."""
        place = bisect_left(self.buckets, value)
        with self._lock:
            labels = self._bounded(labels)
            self._values[labels] = self._values.get(labels, 0) + value
            counts = self._counts.get(labels)
            if counts is None:
                counts = self._counts[labels] = [0] * (len(self.buckets) + 1)
            counts[place] += 1

    def samples(self) -> Iterator[tuple[str, str, float]]:
        with self._lock:
            told = [(labels, tuple(self._counts[labels]), total) for labels, total in sorted(self._values.items())]
        for labels, counts, total in told:
            below = 0
            for bound, count in zip((*self.buckets, float("inf")), counts, strict=True):
                below += count
                yield "_bucket", label_text((*self.labels, "le"), (*labels, number(bound))), below
            yield "_sum", label_text(self.labels, labels), total
            yield "_count", label_text(self.labels, labels), below


class Registry:
    """The metrics of one process, in the order in which they were made."""

    def __init__(self) -> None:
        self.metrics: list[Metric] = []

    def counter(self, name: str, help_: str, labels: Sequence[str] = ()) -> Counter:
        return self._keep(Counter(name, help_, labels))

    def gauge(self, name: str, help_: str, labels: Sequence[str] = ()) -> Gauge:
        return self._keep(Gauge(name, help_, labels))

    def histogram(self, name: str, help_: str, labels: Sequence[str] = (), *, buckets: Sequence[float]) -> Histogram:
        return self._keep(Histogram(name, help_, labels, buckets=buckets))

    def text(self) -> str:
        """All metrics that have a value, as Prometheus reads them."""
        return "".join(_block(metric) for metric in self.metrics)

    def _keep(self, metric: M) -> M:
        self.metrics.append(metric)
        return metric


class Bounded:
    """The first so many values by name; all others are one."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._known: set[str] = set()

    def of(self, value: str) -> str:
        if value in self._known:
            return value
        if len(self._known) >= self.limit:
            return OTHER
        self._known.add(value)
        return value


def _block(metric: Metric) -> str:
    lines = [f"{metric.name}{suffix}{labels} {number(value)}\n" for suffix, labels, value in metric.samples()]
    if not lines:
        return ""
    return f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n" + "".join(lines)


def label_text(names: Sequence[str], values: Sequence[str]) -> str:
    pairs = [f'{name}="{value.translate(_ESCAPES)}"' for name, value in zip(names, values, strict=True)]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def number(value: float) -> str:
    """As short as it is exact: `5`, `0.25`, `+Inf`."""
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)
