"""Charts as SVG. Text is measured by a rule of thumb: it has no font yet."""

import math
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from bullpen.agents.tools.office.chart import Chart
from bullpen.agents.tools.office.files import plain
from bullpen.agents.tools.office.svg_cleaning import SVG

COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7a00", "#444444")
"""Told apart also by those who see few colours."""
_FONT = "DejaVu Sans, Noto Sans, Liberation Sans, Arial, sans-serif"
_INK, _FAINT = "#222222", "#d9d9d9"
_SMALL, _LARGE = 12, 18
_TICKS = 6


def draw_chart(chart: Chart, width: int, height: int) -> ET.Element:
    canvas = _Canvas(width, height)
    top = 16.0
    if chart.title:
        canvas.text(width / 2, top + _LARGE, chart.title, size=_LARGE, anchor="middle", bold=True, room=width - 20)
        top += _LARGE + 16
    if chart.kind == "pie":
        _draw_pie(canvas, chart, top)
    else:
        top = _draw_legend(canvas, [series.name for series in chart.series], top)
        _Plot(canvas, chart, top).draw()
    return canvas.root


def nice_ticks(low: float, high: float) -> list[float]:
    """Round numbers from at or below the lowest to at or above the highest."""
    if low == high:
        low, high = (low - abs(low) / 2, high + abs(high) / 2) if low else (0.0, 1.0)
    rough = (high - low) / (_TICKS - 1)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = unit * next((factor for factor in (1, 2, 2.5, 5) if factor * unit >= rough * 0.999), 10)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [n * step for n in range(first, last + 1)]


def number(value: float) -> str:
    """Short: 1 200 000 as 1.2M."""
    for limit, sign in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / {'T': 1e12, 'G': 1e9, 'M': 1e6, 'k': 1e3}[sign]:.4g}{sign}"
    return f"{value:.4g}"


class _Canvas:
    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.root = ET.Element(
            f"{{{SVG}}}svg", {"width": str(width), "height": str(height), "viewBox": f"0 0 {width} {height}"}
        )
        self.add("rect", x=0, y=0, width=width, height=height, fill="#ffffff")

    def add(self, name: str, **attributes: object) -> ET.Element:
        drawn = ET.SubElement(self.root, f"{{{SVG}}}{name}")
        for key, value in attributes.items():
            drawn.set(key.rstrip("_").replace("_", "-"), f"{value:.2f}" if isinstance(value, float) else str(value))
        return drawn

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: int = _SMALL,
        anchor: str = "start",
        bold: bool = False,
        turned: bool = False,
        room: float = math.inf,
    ) -> None:
        drawn = self.add("text", x=x, y=y, fill=_INK, font_size=size, font_family=_FONT, text_anchor=anchor)
        if bold:
            drawn.set("font-weight", "bold")
        if turned:
            drawn.set("transform", f"rotate(-90 {x:.2f} {y:.2f})")
        drawn.text = _cut(plain(words), room, size)


def _draw_legend(canvas: _Canvas, names: Sequence[str], top: float) -> float:
    """One row or more; where what comes next begins. A lone series without a name needs none."""
    if not any(names):
        return top
    x = 16.0
    for n, name in enumerate(names):
        shown = name or f"{n + 1}"
        wide = min(_wide(shown, _SMALL) + 32, canvas.width - 32)
        if x > 16 and x + wide > canvas.width - 16:
            x, top = 16.0, top + 20
        canvas.add("rect", x=x, y=top, width=12, height=12, fill=COLORS[n % len(COLORS)])
        canvas.text(x + 17, top + 11, shown, room=wide - 17)
        x += wide
    return top + 26


class _Plot:
    """Axes, and what is drawn between them."""

    def __init__(self, canvas: _Canvas, chart: Chart, top: float) -> None:
        self._canvas, self._chart, self._top = canvas, chart, top
        values = [value for series in chart.series for value in series.values if value is not None]
        if chart.kind == "bar":
            values.append(0.0)  # a bar begins at nothing, or its length would lie
        self._y = nice_ticks(min(values), max(values))
        xs = [x for series in chart.series for x in series.x]
        self._x = nice_ticks(min(xs), max(xs)) if chart.kind == "scatter" else []
        self._count = max(len(series.values) for series in chart.series)
        self._left = 16 + max(_wide(number(tick), _SMALL) for tick in self._y) + (20 if chart.y_title else 0)
        self._right = canvas.width - 20.0
        self._bottom = canvas.height - 32.0 - (20 if chart.x_title else 0)

    def draw(self) -> None:
        self._draw_axes()
        match self._chart.kind:
            case "bar":
                self._draw_bars()
            case "line":
                self._draw_lines()
            case _:
                self._draw_points()

    def _draw_axes(self) -> None:
        canvas, chart = self._canvas, self._chart
        for tick in self._y:
            y = self._down(tick)
            canvas.add("line", x1=self._left, y1=y, x2=self._right, y2=y, stroke=_FAINT if tick else _INK)
            canvas.text(self._left - 6, y + 4, number(tick), anchor="end")
        if chart.kind == "scatter":
            for tick in self._x:
                x = self._along(tick)
                canvas.add("line", x1=x, y1=self._top, x2=x, y2=self._bottom, stroke=_FAINT)
                canvas.text(x, self._bottom + 18, number(tick), anchor="middle")
        else:
            self._draw_labels()
        if chart.x_title:
            middle = (self._left + self._right) / 2
            canvas.text(middle, canvas.height - 12, chart.x_title, anchor="middle", room=self._right - self._left)
        if chart.y_title:
            middle = (self._top + self._bottom) / 2
            canvas.text(18, middle, chart.y_title, anchor="middle", turned=True, room=self._bottom - self._top)

    def _draw_labels(self) -> None:
        """As many as have room."""
        labels = self._chart.labels
        slot = (self._right - self._left) / self._count
        widest = max((_wide(label, _SMALL) for label in labels), default=0) + 8
        every = max(1, math.ceil(min(widest, 120) / slot))
        for n in range(0, len(labels), every):
            self._canvas.text(
                self._middle(n), self._bottom + 18, labels[n], anchor="middle", room=max(slot * every - 4, 20)
            )

    def _draw_bars(self) -> None:
        slot = (self._right - self._left) / self._count
        wide = slot * 0.8 / len(self._chart.series)
        for s, series in enumerate(self._chart.series):
            for n, value in enumerate(series.values):
                if value is None:
                    continue
                x = self._left + slot * n + slot * 0.1 + wide * s
                top, bottom = sorted((self._down(value), self._down(0)))
                self._canvas.add("rect", x=x, y=top, width=wide * 0.94, height=bottom - top, fill=_color(s))

    def _draw_lines(self) -> None:
        for s, series in enumerate(self._chart.series):
            parts: list[list[str]] = [[]]
            for n, value in enumerate(series.values):
                if value is None:
                    parts.append([])
                else:
                    parts[-1].append(f"{self._middle(n):.2f},{self._down(value):.2f}")
            for points in filter(None, parts):
                if len(points) == 1:  # a line of one point would not be seen
                    x, _, y = points[0].partition(",")
                    self._canvas.add("circle", cx=x, cy=y, r=3, fill=_color(s))
                line = " ".join(points)
                self._canvas.add("polyline", points=line, fill="none", stroke=_color(s), stroke_width=2)

    def _draw_points(self) -> None:
        for s, series in enumerate(self._chart.series):
            for x, value in zip(series.x, series.values, strict=True):
                if value is not None:
                    self._canvas.add(
                        "circle", cx=self._along(x), cy=self._down(value), r=4, fill=_color(s), fill_opacity=0.75
                    )

    def _middle(self, n: int) -> float:
        return self._left + (self._right - self._left) * (n + 0.5) / self._count

    def _along(self, x: float) -> float:
        return self._left + (x - self._x[0]) / (self._x[-1] - self._x[0]) * (self._right - self._left)

    def _down(self, value: float) -> float:
        return self._bottom - (value - self._y[0]) / (self._y[-1] - self._y[0]) * (self._bottom - self._top)


def _draw_pie(canvas: _Canvas, chart: Chart, top: float) -> None:
    values = [value or 0.0 for value in chart.series[0].values]
    labels = chart.labels or [str(n + 1) for n in range(len(values))]
    whole = sum(values)
    shares = [f"{label} ({value / whole:.1%})" for label, value in zip(labels, values, strict=True)]
    top = _draw_legend(canvas, shares, top)
    radius = max(min(canvas.width, canvas.height - top) / 2 - 16, 10)
    x, y = canvas.width / 2, (top + canvas.height) / 2
    angle = -math.pi / 2
    for n, value in enumerate(values):
        if value == whole:
            canvas.add("circle", cx=x, cy=y, r=radius, fill=_color(n))
        elif value:
            end = angle + 2 * math.pi * value / whole
            canvas.add("path", d=_slice(x, y, radius, angle, end), fill=_color(n), stroke="#ffffff")
            angle = end


def _slice(x: float, y: float, radius: float, start: float, end: float) -> str:
    first = f"{x + radius * math.cos(start):.2f} {y + radius * math.sin(start):.2f}"
    last = f"{x + radius * math.cos(end):.2f} {y + radius * math.sin(end):.2f}"
    return f"M {x:.2f} {y:.2f} L {first} A {radius:.2f} {radius:.2f} 0 {int(end - start > math.pi)} 1 {last} Z"


def _color(n: int) -> str:
    return COLORS[n % len(COLORS)]


def _wide(words: str, size: int) -> float:
    return len(words) * size * 0.6


def _cut(words: str, room: float, size: int) -> str:
    most = max(int(room / (size * 0.6)), 1) if room != math.inf else len(words)
    return words if len(words) <= most else words[: max(most - 1, 0)] + "…"
