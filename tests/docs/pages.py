"""The pages of the documentation, and what can be read off them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_CELL_CODE = re.compile(r"^\| `([^`]+)` \|")


class Block(NamedTuple):
    info: str
    body: str


def all_pages() -> list[Path]:
    """Every page that is ours, apart from what tools installed or left behind."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]
    return sorted(pages)


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [Block(match["info"], match["body"]) for match in _FENCE.finditer(page.read_text())]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page.read_text())


def section(page: Path, heading: str) -> str:
    """What stands under a heading, up to the next one of the same or a higher level."""
    lines = page.read_text().splitlines()
    start = lines.index(heading) + 1
    level = len(heading) - len(heading.lstrip("#"))
    for n in range(start, len(lines)):
        marks = len(lines[n]) - len(lines[n].lstrip("#"))
        if 0 < marks <= level:
            return "\n".join(lines[start:n])
    return "\n".join(lines[start:])


def rows(text: str) -> Iterator[list[str]]:
    """The rows of the tables in a text whose first cell is a piece of code, without its marks."""
    for line in text.splitlines():
        if match := _CELL_CODE.match(line):
            cells = line.strip().removeprefix("|").removesuffix("|").split("|")
            yield [match[1], *(cell.strip() for cell in cells[1:])]
