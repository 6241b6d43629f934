"""Charts and drawings, as PNG and as SVG."""

import io
import itertools
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from bullpen.agents.tools.office import generate_image
from bullpen.agents.tools.office.chart_drawing import COLORS, nice_ticks, number
from bullpen.agents.tools.policy import Policy
from bullpen.errors import BadData, ToolError
from tests.agents.tools.office.kept import Kept

SVG = "{http://www.w3.org/2000/svg}"
BARS = {
    "kind": "bar",
    "title": "Sales — Продажи",
    "x_title": "Quarter",
    "y_title": "Million",
    "labels": ["Q1", "Q2", "Q3"],
    "series": [{"name": "2025", "values": [1, -2, None]}, {"name": "2026", "values": [4, 5, 6]}],
}


def _picture(data: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(data))
    assert picture.format == "PNG"
    return picture.convert("RGB")


def _rgb(color: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(color[1:]))


async def _drawn(kept: Kept, chart: dict[str, Any], **more: Any) -> ET.Element:
    return ET.fromstring(await kept.made_by(generate_image(), name="c", chart=chart, kind="svg", **more))


def _texts(root: ET.Element) -> list[str]:
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def test_it_may_be_called_again() -> None:
    tool = generate_image()
    assert (tool.name, tool.policy) == ("generate_image", Policy.IDEMPOTENT)
    assert tool.parameters["$defs"]["Chart"]["properties"]["kind"]["enum"] == ["bar", "line", "pie", "scatter"]


async def test_a_chart_as_a_picture_has_its_colors_and_its_size(kept: Kept) -> None:
    picture = _picture(await kept.made_by(generate_image(), name="sales", chart=BARS, width=640, height=400))
    assert picture.size == (640, 400)
    seen = {color for _, color in picture.getcolors(maxcolors=1_000_000) or []}
    assert {_rgb(COLORS[0]), _rgb(COLORS[1])} <= seen
    assert _rgb(COLORS[2]) not in seen
    title = picture.crop((100, 10, 540, 40))
    assert len(title.getcolors(maxcolors=100_000) or []) > 1, "the title is drawn"


async def test_bars_are_as_long_as_their_values(kept: Kept) -> None:
    root = await _drawn(kept, BARS)
    bars = [
        rect for rect in root.iter(f"{SVG}rect") if rect.get("fill") in COLORS and float(rect.get("height", 0)) != 12
    ]
    heights: dict[str | None, list[float]] = {bar.get("fill"): [] for bar in bars}
    for bar in bars:
        heights[bar.get("fill")].append(float(bar.get("height", 0)))
    one, two = heights[COLORS[0]]
    assert two == pytest.approx(2 * one, rel=0.01), "a bar below nothing is as long as one above"
    assert heights[COLORS[1]] == pytest.approx([4 * one, 5 * one, 6 * one], rel=0.01)
    assert {"Sales — Продажи", "Quarter", "Million", "Q1", "Q2", "Q3", "2025", "2026", "0"} <= set(_texts(root))


async def test_a_line_has_a_gap_where_nothing_is_known(kept: Kept) -> None:
    root = await _drawn(kept, {"kind": "line", "series": [{"values": [1, 2, None, 3, 4]}]})
    lines = [line.get("points", "").split() for line in root.iter(f"{SVG}polyline")]
    assert [len(points) for points in lines] == [2, 2]
    downs = [float(point.partition(",")[2]) for point in itertools.chain(*lines)]
    assert downs == sorted(downs, reverse=True), "more is further up"


async def test_a_pie_tells_shares(kept: Kept) -> None:
    chart = {"kind": "pie", "labels": ["a", "b", "c"], "series": [{"values": [1, 3, 0]}]}
    root = await _drawn(kept, chart)
    assert _texts(root) == ["a (25.0%)", "b (75.0%)", "c (0.0%)"]
    assert len(list(root.iter(f"{SVG}path"))) == 2
    picture = _picture(await kept.made_by(generate_image(), name="p", chart=chart, width=400, height=400))
    count = {color: n for n, color in picture.getcolors(maxcolors=1_000_000) or []}
    assert count[_rgb(COLORS[1])] / count[_rgb(COLORS[0])] == pytest.approx(3, rel=0.05)


async def test_a_pie_of_one_piece_is_round(kept: Kept) -> None:
    root = await _drawn(kept, {"kind": "pie", "series": [{"values": [5, 0]}]})
    assert len(list(root.iter(f"{SVG}circle"))) == 1


async def test_points_of_a_scatter_chart_stand_where_they_belong(kept: Kept) -> None:
    root = await _drawn(kept, {"kind": "scatter", "series": [{"values": [0, 10], "x": [0, 100]}]})
    low, high = ((float(dot.get("cx", 0)), float(dot.get("cy", 0))) for dot in root.iter(f"{SVG}circle"))
    assert low[0] < high[0]
    assert low[1] > high[1]


@pytest.mark.parametrize("kind", ["bar", "line", "scatter"])
@pytest.mark.parametrize("value", [0, 1e-12, -5, 1e15])
async def test_a_lone_value_is_drawn(kept: Kept, kind: str, value: float) -> None:
    series = {"values": [value], **({"x": [value]} if kind == "scatter" else {})}
    assert _picture(await kept.made_by(generate_image(), name="c", chart={"kind": kind, "series": [series]}))


async def test_many_labels_are_thinned_out(kept: Kept) -> None:
    labels = [f"2026-01-{n:02}" for n in range(1, 201)]
    root = await _drawn(kept, {"kind": "line", "labels": labels, "series": [{"values": list(range(200))}]})
    shown = [text for text in _texts(root) if text.startswith("2026")]
    assert 3 <= len(shown) <= 15


async def test_words_in_a_chart_are_words(kept: Kept) -> None:
    root = await _drawn(kept, {**BARS, "title": "</text><script>x</script>\x00"})
    assert "</text><script>x</script>" in _texts(root)
    assert next(root.iter(f"{SVG}script"), None) is None


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12))
def test_ticks_are_around_all_values_and_not_many(one: float, other: float) -> None:
    low, high = sorted((one, other))
    if 0 < high - low < 1e-6:
        return
    ticks = nice_ticks(low, high)
    room = (high - low) * 1e-6 + 1e-9
    assert ticks[0] <= low + room
    assert ticks[-1] >= high - room
    assert 2 <= len(ticks) <= 9


@pytest.mark.parametrize(
    "value, shown", [(0.25, "0.25"), (1500, "1500"), (12_000, "12k"), (-2.5e6, "-2.5M"), (3e9, "3G")]
)
def test_numbers_are_short(value: float, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    "chart, told",
    [
        (
            {"kind": "bar", "labels": ["a"], "series": [{"values": [1, 2]}]},
            r"chart.series\[0\].values: has 2 numbers for 1",
        ),
        ({"kind": "scatter", "series": [{"values": [1, 2], "x": [1]}]}, r"chart.series\[0\].x: has 1 numbers for 2"),
        ({"kind": "line", "series": [{"values": [1], "x": [1]}]}, r"chart.series\[0\].x: is for a scatter chart"),
        ({"kind": "pie", "series": [{"values": [1, -1]}]}, r"chart.series\[0\].values: a pie"),
        ({"kind": "pie", "series": [{"values": [0]}]}, r"chart.series\[0\].values: a pie"),
        ({"kind": "pie", "series": [{"values": [1]}] * 2}, "chart.series: a pie has one"),
        ({"kind": "bar", "series": [{"values": [None]}]}, "chart.series: there is nothing to draw"),
        ({"kind": "bar", "series": [{"values": [float("inf")]}]}, r"chart.series\[0\]: has a number without an end"),
        ({"kind": "bar", "series": [{"values": [1] * 2_000}] * 3}, "chart.series: 5,000 values"),
    ],
)
async def test_a_chart_that_does_not_fit_together_names_the_field(kept: Kept, chart: dict[str, Any], told: str) -> None:
    with pytest.raises(ToolError, match=told):
        await generate_image().call(kept.context(), {"name": "c", "chart": chart})


@pytest.mark.parametrize("arguments", [{}, {"chart": BARS, "svg": "<svg/>"}])
async def test_it_is_a_chart_or_a_drawing(kept: Kept, arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match="chart: give either a chart or an svg"):
        await generate_image().call(kept.context(), {"name": "c", **arguments})


@pytest.mark.parametrize("field, value", [("width", 4_001), ("height", 1), ("kind", "gif"), ("svg", "x" * 1_000_001)])
def test_arguments_out_of_bounds_name_the_field(field: str, value: Any) -> None:
    with pytest.raises(BadData, match=rf"\$\.{field}"):
        generate_image().check({"name": "c", field: value})


async def test_without_a_font_there_is_no_text_to_lose(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bullpen.agents.tools.office.fonts._USUAL", ())
    with pytest.raises(ToolError, match=r"kind: no font is installed here.*BULLPEN_FONTS"):
        await generate_image().call(kept.context(), {"name": "c", "chart": BARS})
    assert await kept.made_by(generate_image(), name="c", chart=BARS, kind="svg")


@pytest.mark.usefixtures("nothing_blocks")
async def test_drawing_does_not_hold_up_the_loop(kept: Kept) -> None:
    await kept.made_by(generate_image(), name="c", chart=BARS)
