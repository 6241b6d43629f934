"""Drawings that nobody vouches for: what is harmless stays, and nothing else."""

import base64
import io
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

from bullpen.agents.tools.office import generate_image
from bullpen.agents.tools.office.svg_cleaning import clean_svg, svg_text
from bullpen.errors import ToolError
from tests.agents.tools.office.conftest import make_png
from tests.agents.tools.office.kept import Kept

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 100 50">'


def _cleaned(inner: str) -> tuple[str, tuple[str, ...]]:
    root, removed = clean_svg(f"{HEAD}{inner}</svg>")
    return svg_text(root), removed


async def test_a_drawing_is_drawn(kept: Kept) -> None:
    inner = (
        '<defs><linearGradient id="g"><stop offset="0" stop-color="#ff0000"/></linearGradient>'
        '<rect id="r" width="10" height="10"/></defs><style>.blue { fill: #0000ff }</style>'
        '<rect width="50" height="50" fill="url(#g)"/><rect x="50" width="50" height="50" class="blue"/>'
        '<use href="#r" x="20" y="20"/>'
    )
    data = await kept.made_by(generate_image(), name="d", svg=f"{HEAD}{inner}</svg>", width=200)
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    assert picture.size == (200, 100)
    assert picture.getpixel((5, 5)) == (255, 0, 0)
    assert picture.getpixel((150, 50)) == (0, 0, 255)
    assert picture.getpixel((50, 50)) == (0, 0, 0), "what is used is drawn where it is used"
    again = ET.fromstring(await kept.made_by(generate_image(), name="d", svg=f"{HEAD}{inner}</svg>", kind="svg"))
    assert len(again) == 5


PNG = base64.b64encode(make_png(1, 1)).decode()


@pytest.mark.parametrize(
    "harmless",
    [
        '<g transform="rotate(3)"><path d="M0 0L1 1" stroke="red" style="stroke-width: 2"/></g>',
        '<text x="1" font-family="Noto Sans">a &lt; b &amp; ünï</text>',
        f'<image href="data:image/png;base64,{PNG}" width="1" height="1"/>',
        '<rect fill="url(\'#a\')" clip-path="url( #b )"/>',
        "<title>https://example.com is only text</title>",
    ],
)
def test_what_is_harmless_stays(harmless: str) -> None:
    text, removed = _cleaned(harmless)
    assert removed == ()
    assert ET.canonicalize(text) == ET.canonicalize(
        f"{HEAD}{harmless}</svg>".replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")
    )


def test_other_names_of_namespaces_change_nothing() -> None:
    """Any library of the process may have given SVG a prefix of its own."""
    ET.register_namespace("drawing", "http://www.w3.org/2000/svg")
    text, removed = _cleaned('<rect id="a"/><use xlink:href="#a"/>')
    assert removed == ()
    assert text == (
        '<svg viewBox="0 0 100 50" xmlns="http://www.w3.org/2000/svg"><rect id="a" /><use href="#a" /></svg>'
    )


@pytest.mark.parametrize(
    "bad, gone",
    [
        ("<script>alert(1)</script>", "<script>"),
        ('<g onclick="alert(1)"/>', "onclick"),
        ('<g OnLoad="alert(1)"/>', "OnLoad"),
        ('<foreignObject><b xmlns="http://www.w3.org/1999/xhtml">x</b></foreignObject>', "<foreignObject>"),
        ('<iframe xmlns="http://www.w3.org/1999/xhtml" src="http://evil.example"/>', "<iframe>"),
        ('<a href="javascript:alert(1)"><text>x</text></a>', "<a>"),
        ('<animate attributeName="href" to="javascript:alert(1)"/>', "<animate>"),
        ('<set attributeName="onload" to="alert(1)"/>', "<set>"),
        ('<image href="http://evil.example/a.png"/>', "href"),
        ('<image xlink:href="file:///etc/passwd"/>', "href"),
        ('<image href="/etc/passwd"/>', "href"),
        ('<image href="data:image/svg+xml;base64,PHN2Zy8+"/>', "href"),
        (f'<image href="data:image/png;base64,{base64.b64encode(b"<svg/>").decode()}"/>', "href"),
        ('<use href="http://evil.example/a.svg#x"/>', "href"),
        ('<use xlink:href="data:image/svg+xml,x"/>', "href"),
        ('<rect fill="url(http://evil.example/#g)"/>', "fill"),
        ('<rect fill="url(//evil.example/#g)"/>', "fill"),
        ('<rect fill="URL(evil.svg#g)"/>', "fill"),
        ('<rect fill="u\\72l(evil.svg#g)"/>', "fill"),
        ('<rect style="fill: url(http://evil.example/)"/>', "style"),
        ("<rect style=\"background: image-set('evil.png' 1x)\"/>", "style"),
        ('<rect style="f\\69ll: red"/>', "style"),
        ("<style>@import 'http://evil.example/a.css';</style>", "<style>"),
        ("<style>rect { fill: url(evil.svg) }</style>", "<style>"),
        ("<style>@font-face { src: url(x) }</style>", "<style>"),
        ('<g xml:base="http://evil.example/"/>', "base"),
        ("<metadata>x</metadata>", "<metadata>"),
    ],
)
def test_what_runs_or_is_fetched_is_taken_out(bad: str, gone: str) -> None:
    text, removed = _cleaned(f'<rect width="5"/>{bad}')
    assert removed == (gone,)
    assert "evil" not in text
    assert "alert" not in text
    assert "passwd" not in text
    assert 'width="5"' in text


async def test_a_model_is_told_what_was_taken_out(kept: Kept) -> None:
    told = await generate_image().call(kept.context(), {"name": "d", "svg": f"{HEAD}<script/></svg>", "kind": "svg"})
    assert told["notes"] == ("taken out, for nothing here may run or be fetched: <script>",)


BOMB = "".join(f'<g id="l{n}">' + f'<use href="#l{n - 1}"/>' * 10 + "</g>" for n in range(1, 10))


@pytest.mark.parametrize(
    "text, told",
    [
        ("", "svg: is no XML"),
        ("<svg", "svg: is no XML"),
        ("<svg/>", "svg: begins with <svg xmlns"),
        ("<html xmlns='http://www.w3.org/1999/xhtml'/>", "not with <html>"),
        ('<!DOCTYPE svg [<!ENTITY a "b">]>' + HEAD + "&a;</svg>", "svg: without a <!DOCTYPE>"),
        (HEAD + "<g>" * 100 + "</g>" * 100 + "</svg>", "svg: elements stand in each other"),
        (HEAD + "<g>" * 50_000 + "</g>" * 50_000 + "</svg>", "svg: elements stand in each other"),
        (HEAD + f'<rect id="l0"/>{BOMB}</svg>', "svg: draws more than 50,000 elements"),
        (HEAD + '<g id="a"><use href="#a"/></g></svg>', "svg: an element refers to itself: a"),
        (HEAD + '<pattern id="a"><rect fill="url(#a)"/></pattern></svg>', "svg: an element refers to itself: a"),
        (HEAD + "<filter/>" * 21 + "</svg>", "svg: has more than 20 filters"),
        (HEAD + "".join(f'<g id="c{n}"><use href="#c{n + 1}"/></g>' for n in range(2_000)) + "</svg>", "references"),
    ],
)
def test_what_is_no_drawing_is_refused(text: str, told: str) -> None:
    with pytest.raises(ToolError, match=told):
        clean_svg(text)


@pytest.mark.parametrize(
    "head, more, told",
    [
        ("<svg xmlns='http://www.w3.org/2000/svg'>", {}, "svg: needs a viewBox"),
        ("<svg xmlns='http://www.w3.org/2000/svg' width='100%' height='5'>", {}, "svg: needs a viewBox"),
        ("<svg xmlns='http://www.w3.org/2000/svg' width='9000' height='5'>", {}, "9000 × 5 pixels"),
        ("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 100'>", {"width": 500}, "500 × 50000 pixels"),
    ],
)
async def test_a_picture_has_a_size_that_can_be_drawn(kept: Kept, head: str, more: Any, told: str) -> None:
    with pytest.raises(ToolError, match=told):
        await generate_image().call(kept.context(), {"name": "d", "svg": f"{head}</svg>", **more})
