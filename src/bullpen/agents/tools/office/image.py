"""`generate_image`: charts from data, and drawings from SVG, as PNG or SVG."""

import asyncio
import re
from pathlib import Path
from typing import Annotated, Literal
from xml.etree import ElementTree as ET

from msgspec import Meta

from bullpen.agents.tools.office.chart import Chart
from bullpen.agents.tools.office.chart_drawing import draw_chart
from bullpen.agents.tools.office.files import Made, file_name, keep, needs
from bullpen.agents.tools.office.svg_cleaning import SVG, clean_svg, svg_text
from bullpen.agents.tools.office.xml_reading import MAX_TEXT
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext, tool
from bullpen.errors import ToolError

_MIMES = {"png": "image/png", "svg": "image/svg+xml"}
_LEAST, _MOST = 50, 4_000
_USUAL = (960, 540)
_LENGTH = re.compile(r"\s*([0-9]*\.?[0-9]+)(px)?\s*\Z")

Name = Annotated[str, Meta(min_length=1, max_length=200, description="Of the file.")]
Drawing = Annotated[
    str,
    Meta(max_length=MAX_TEXT, description="A whole <svg> with a viewBox; no scripts, nothing fetched from elsewhere."),
]
Data = Annotated[Chart | None, Meta(description="Give this or svg.")]
Kind = Annotated[Literal["png", "svg"], Meta(description="What kind of file.")]
Side = Annotated[int, Meta(ge=_LEAST, le=_MOST, description="In pixels.")]


def generate_image(*, fonts: Path | str | None = None) -> Tool:
    """A tool that draws. `fonts` is a folder that is looked into before those of the system."""

    @tool(name="generate_image", policy=Policy.IDEMPOTENT)
    async def draw(
        context: ToolContext,
        name: Name,
        chart: Data = None,
        svg: Drawing | None = None,
        kind: Kind = "png",
        width: Side | None = None,
        height: Side | None = None,
    ) -> Made:
        """Draw a chart from data, or a picture from SVG, and keep it as a file."""
        root, removed = await asyncio.to_thread(_drawn, chart, svg, width, height)
        data = svg_text(root).encode() if kind == "svg" else await asyncio.to_thread(_png, root, width, height, fonts)
        notes = (f"taken out, for nothing here may run or be fetched: {', '.join(removed)[:300]}",) if removed else ()
        return await keep(context, file_name(name, kind), data, _MIMES[kind], notes)

    return draw


def _drawn(
    chart: Chart | None, svg: str | None, width: int | None, height: int | None
) -> tuple[ET.Element, tuple[str, ...]]:
    if (chart is None) == (svg is None):
        raise ToolError("chart: give either a chart or an svg")
    if chart is not None:
        chart.check("chart")
        return draw_chart(chart, max(width or _USUAL[0], 200), max(height or _USUAL[1], 150)), ()
    assert svg is not None
    return clean_svg(svg)


def _png(root: ET.Element, width: int | None, height: int | None, fonts: Path | str | None) -> bytes:
    with needs("resvg-py and fonttools"):
        import resvg_py

        from bullpen.agents.tools.office.fonts import FONTS, font_files, font_folders
    folders = font_folders(fonts)
    if not font_files(tuple(folders)) and next(root.iter(f"{{{SVG}}}text"), None) is not None:
        raise ToolError(f"kind: no font is installed here to draw text with; take 'svg', or see {FONTS}")
    wide, high = _size(root, width, height)
    try:
        return resvg_py.svg_to_bytes(
            svg_string=svg_text(root),
            width=wide,
            height=high,
            skip_system_fonts=True,
            font_dirs=[str(folder) for folder in folders],
            sans_serif_family=_sans(font_files(tuple(folders))),
        )
    except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception; this is a thread of our own
        raise ToolError(f"svg: cannot be drawn: {str(error)[:200]}") from None


def _size(root: ET.Element, width: int | None, height: int | None) -> tuple[int, int]:
    """In pixels: as asked for, in the drawing's own proportions where only one side is."""
    own = [_pixels(root.get(side, "")) for side in ("width", "height")]
    box = (root.get("viewBox") or "").replace(",", " ").split()
    if len(box) == 4:
        own = [found or _pixels(side) for found, side in zip(own, box[2:], strict=True)]
    own_width, own_height = own
    if not own_width or not own_height:
        raise ToolError("svg: needs a viewBox, or a width and a height in pixels")
    scale = (
        (width / own_width if width else height / own_height if height else 1.0)
        if not (width and height)
        else min(width / own_width, height / own_height)
    )
    found = (max(round(own_width * scale), 1), max(round(own_height * scale), 1))
    if max(found) > _MOST:
        raise ToolError(f"svg: would have {found[0]} × {found[1]} pixels; {_MOST} on a side is the most: give a width")
    return found


def _pixels(text: str) -> float | None:
    found = _LENGTH.match(text)
    return float(found[1]) if found is not None else None


def _sans(files: dict[str, Path]) -> str | None:
    """What is taken where a drawing names a family that is not here."""
    names = {"DejaVuSans": "DejaVu Sans", "NotoSans-Regular": "Noto Sans", "LiberationSans-Regular": "Liberation Sans"}
    return next((family for stem, family in names.items() if stem in files), None)
