"""Drawings (SVG) from somebody whom nobody vouches for, made harmless by keeping only what is known to be so.

No script, no animation, nothing that is fetched from elsewhere; and no drawing whose parts refer to each other so that
a few lines become millions of strokes.
"""

import base64
import binascii
import copy
import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from bullpen.agents.tools.office.xml_reading import parse_xml
from bullpen.errors import ToolError

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
_MAX_REFERENCES = 200
"""Deep: an element that refers to one that refers to one."""
_MAX_COST = 50_000
"""Elements that are drawn in the end, each as often as it is referred to."""
_MAX_FILTERS = 20
_ELEMENTS = frozenset(
    (
        *("svg", "g", "defs", "symbol", "use", "title", "desc", "style", "image"),
        *("path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan", "textPath"),
        *("linearGradient", "radialGradient", "stop", "clipPath", "mask", "pattern", "marker"),
        *("filter", "feGaussianBlur", "feOffset", "feBlend", "feFlood", "feColorMatrix", "feComposite"),
        *("feMerge", "feMergeNode", "feDropShadow"),
    )
)
_FOREIGN = re.compile(
    r"\\|@|//|/\*|<|image|src\(|element\(|cross-fade|paint\(|expression|javascript:|data:", re.IGNORECASE
)
"""In a style: ways to name what is elsewhere, or to write it so that it is not seen."""
_URL = re.compile(r"url\(\s*(['\"]?)(.*?)\1\s*\)", re.IGNORECASE | re.DOTALL)
_OWN = re.compile(r"#[\w.:-]+\Z")
_DATA = re.compile(r"data:image/(png|jpe?g);base64,", re.IGNORECASE)
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")


def clean_svg(text: str, field: str = "svg") -> tuple[ET.Element, tuple[str, ...]]:
    """The drawing, and the names of what was taken out of it. ToolError names the field for what is no drawing."""
    root = parse_xml(text, field)
    if root.tag != f"{{{SVG}}}svg":
        raise ToolError(f'{field}: begins with <svg xmlns="{SVG}">, not with <{root.tag.rpartition("}")[2]}>')
    removed: dict[str, None] = {}
    _clean(root, removed)
    _check_cost(root, field)
    return root, tuple(removed)


def svg_text(root: ET.Element) -> str:
    """Without prefixes, whatever names other libraries have given to namespaces in this process."""
    bare = copy.deepcopy(root)
    for element in bare.iter():
        element.tag = element.tag.rpartition("}")[2]
        target = element.attrib.pop(f"{{{XLINK}}}href", None)
        if target is not None:
            element.attrib.setdefault("href", target)
    bare.set("xmlns", SVG)
    return ET.tostring(bare, encoding="unicode")


def _clean(element: ET.Element, removed: dict[str, None]) -> None:
    for child in list(element):
        space, _, name = str(child.tag).rpartition("}")
        if space != "{" + SVG or name not in _ELEMENTS or (name == "style" and not _is_own_style(child.text or "")):
            removed[f"<{name}>"] = None
            element.remove(child)
        else:
            _clean(child, removed)
    for name, value in list(element.attrib.items()):
        if not _is_harmless(element, name, value):
            removed[name.rpartition("}")[2]] = None
            del element.attrib[name]


def _is_harmless(element: ET.Element, name: str, value: str) -> bool:
    space, _, bare = name.rpartition("}")
    if bare.lower() == "href" and space in {"", "{" + XLINK}:
        is_image = element.tag == f"{{{SVG}}}image"
        return _is_picture(value) if is_image else _OWN.match(value) is not None
    if space or bare.lower().startswith("on") or bare.lower() in {"src", "base"}:
        return False
    if bare == "style":
        return _is_own_style(value)
    return all(_OWN.match(target) for _, target in _URL.findall(value)) and (
        value.lower().count("url(") == len(_URL.findall(value)) and "\\" not in value
    )


def _is_own_style(text: str) -> bool:
    urls = _URL.findall(text)
    if text.lower().count("url(") != len(urls) or not all(_OWN.match(target) for _, target in urls):
        return False
    return _FOREIGN.search(text) is None


def _is_picture(value: str) -> bool:
    found = _DATA.match(value)
    if found is None:
        return False
    try:
        return base64.b64decode(value[found.end() :], validate=True).startswith(_PICTURES)
    except binascii.Error:
        return False


def _check_cost(root: ET.Element, field: str) -> None:
    """A drawing that refers to its parts again and again is counted as it would be drawn."""
    by_id = {element.get("id", ""): element for element in root.iter() if element.get("id")}
    if sum(element.tag == f"{{{SVG}}}filter" for element in root.iter()) > _MAX_FILTERS:
        raise ToolError(f"{field}: has more than {_MAX_FILTERS} filters")
    costs: dict[int, int] = {}
    open_ids: set[int] = set()

    def cost(element: ET.Element) -> int:
        known = costs.get(id(element))
        if known is not None:
            return known
        if id(element) in open_ids:
            raise ToolError(f"{field}: an element refers to itself: {element.get('id') or element.tag}")
        if len(open_ids) > _MAX_REFERENCES:
            raise ToolError(f"{field}: too many references to references")
        open_ids.add(id(element))
        parts = [*element, *(by_id[target] for target in _targets(element) if target in by_id)]
        costs[id(element)] = 1 + sum(cost(part) for part in parts)
        open_ids.discard(id(element))
        return costs[id(element)]

    if cost(root) > _MAX_COST:
        raise ToolError(f"{field}: draws more than {_MAX_COST:,} elements")


def _targets(element: ET.Element) -> Iterator[str]:
    for name, value in element.attrib.items():
        if name.rpartition("}")[2] == "href" and value.startswith("#"):
            yield value[1:]
        for _, target in _URL.findall(value):
            yield target.removeprefix("#")
