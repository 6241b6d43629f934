"""Tables as lines of text: aligned, and never wider than they may be."""

import unicodedata
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

Style = Literal["", "bold", "dim", "red", "green", "yellow", "cyan"]
Paint = Callable[[str, Style], str]

_GAP = "  "
_SMALLEST = 6
"""A column that may shrink keeps at least this."""


class Column(NamedTuple):
    title: str
    right: bool = False
    shrinks: bool = False
    """Gives up width when the table is too wide; its texts end in an ellipsis then."""


class Cell(NamedTuple):
    text: str
    style: Style = ""


Row = Sequence[Cell | str | int]


def plain(text: str, style: Style = "") -> str:  # noqa: ARG001 - a Paint without colours
    """The text as it is."""
    return text


def clean(text: str) -> str:
    """The text on one line, without what would steer a terminal: job data is not ours to trust."""
    return "".join(letter if letter.isprintable() else " " if letter in "\n\t\r" else "�" for letter in text)


def cells(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def _cells_of(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def clip(text: str, width: int) -> str:
    """The text, or its beginning and an ellipsis, in at most that many columns."""
    if cells(text) <= width:
        return text
    taken, used = "", 0
    for letter in text:
        used += _cells_of(letter)
        if used > width - 1:
            break
        taken += letter
    return taken.rstrip() + "…" if width > 0 else ""


def table_lines(columns: Sequence[Column], rows: Sequence[Row], width: int | None, paint: Paint) -> list[str]:
    """A heading and a line for each row; at most `width` columns wide, if given."""
    body = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(cells, (c.title, *(row[n].text for row in body)))) for n, c in enumerate(columns)]
    if width is not None:
        _shrink(widths, columns, width)
    lines = [_line(columns, [Cell(column.title, "bold") for column in columns], widths, paint)]
    return lines + [_line(columns, row, widths, paint) for row in body]


def _cell(value: Cell | str | int) -> Cell:
    if isinstance(value, Cell):
        return Cell(clean(value.text), value.style)
    return Cell(f"{value:,}" if isinstance(value, int) else clean(value))


def _shrink(widths: list[int], columns: Sequence[Column], limit: int) -> None:
    """Take from the widest that may shrink until all fit; then from the widest of all."""
    over = sum(widths) + len(_GAP) * (len(widths) - 1) - limit
    while over > 0:
        able = [n for n, column in enumerate(columns) if column.shrinks and widths[n] > _SMALLEST]
        able = able or [n for n, width in enumerate(widths) if width > 1]
        if not able:
            return
        widths[max(able, key=widths.__getitem__)] -= 1
        over -= 1


def _line(columns: Sequence[Column], row: Sequence[Cell], widths: Sequence[int], paint: Paint) -> str:
    parts = []
    for column, cell, width in zip(columns, row, widths, strict=True):
        text = clip(cell.text, width)
        room = " " * (width - cells(text))
        painted = paint(text, cell.style)
        parts.append(room + painted if column.right else painted + room)
    return _GAP.join(parts).rstrip()
