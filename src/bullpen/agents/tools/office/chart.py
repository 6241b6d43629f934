"""What a chart shows, as a model says it."""

import math
from typing import Annotated, Literal

from msgspec import Meta, Struct

from bullpen.errors import ToolError

_MAX_POINTS = 5_000

Words = Annotated[str, Meta(max_length=200)]


class Series(Struct, frozen=True, forbid_unknown_fields=True):
    values: Annotated[list[float | None], Meta(min_length=1, max_length=2_000, description="null is a gap.")]
    name: Words = ""
    x: Annotated[list[float], Meta(max_length=2_000, description="Of a scatter chart: one for each value.")] = []


class Chart(Struct, frozen=True, forbid_unknown_fields=True):
    kind: Literal["bar", "line", "pie", "scatter"]
    series: Annotated[list[Series], Meta(min_length=1, max_length=12, description="A pie has one.")]
    labels: Annotated[
        list[Words], Meta(max_length=2_000, description="One for each value; not of a scatter chart.")
    ] = []
    title: Words = ""
    x_title: Words = ""
    y_title: Words = ""

    def check(self, field: str) -> None:
        """ToolError names what does not fit together."""
        if sum(len(series.values) for series in self.series) > _MAX_POINTS:
            raise ToolError(f"{field}.series: {_MAX_POINTS:,} values in all are the most")
        for n, series in enumerate(self.series):
            here = f"{field}.series[{n}]"
            if not all(math.isfinite(value) for value in (*series.x, *(v for v in series.values if v is not None))):
                raise ToolError(f"{here}: has a number without an end")
            self._check_lengths(series, here, field)
        if not any(value is not None for series in self.series for value in series.values):
            raise ToolError(f"{field}.series: there is nothing to draw but gaps")
        if self.kind == "pie":
            self._check_pie(field)

    def _check_lengths(self, series: Series, here: str, field: str) -> None:
        if self.kind == "scatter":
            if len(series.x) != len(series.values):
                raise ToolError(f"{here}.x: has {len(series.x)} numbers for {len(series.values)} values")
        elif series.x:
            raise ToolError(f"{here}.x: is for a scatter chart; use labels")
        elif self.labels and len(self.labels) != len(series.values):
            raise ToolError(f"{here}.values: has {len(series.values)} numbers for {len(self.labels)} {field}.labels")

    def _check_pie(self, field: str) -> None:
        if len(self.series) != 1:
            raise ToolError(f"{field}.series: a pie has one, not {len(self.series)}")
        values = self.series[0].values
        if any(value is None or value < 0 for value in values) or not any(values):
            raise ToolError(f"{field}.series[0].values: a pie has numbers of 0 and more, not all of them 0")
        if len(values) > 30:
            raise ToolError(f"{field}.series[0].values: a pie has at most 30 pieces, not {len(values)}")
