"""Slides as a .pptx file, 16:9."""

import io
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from pptx import Presentation
from pptx.util import Emu, Inches, Pt

from bullpen.agents.tools.office.files import plain
from bullpen.agents.tools.office.slides import Point, Slide, SlideTable

_WIDTH, _HEIGHT = Inches(13.333), Inches(7.5)
_MARGIN = Inches(0.7)
_TOP = Inches(1.6)
_TITLE_LAYOUT, _BODY_LAYOUT, _BARE_LAYOUT = 0, 1, 5
_SIZES = ((250, 28), (500, 24), (900, 20), (1_500, 16))
"""Up to how many characters a slide's lines are written in which size."""

Box = tuple[int, int, int, int]
"""Left, top, width, height."""


def write_pptx(
    title: str,
    subtitle: str,
    slides: Sequence[Slide],
    pictures: Mapping[str, bytes],
    template: PurePath | str | None = None,
) -> bytes:
    deck = Presentation(str(template) if template is not None else None)
    if template is None:
        deck.slide_width, deck.slide_height = _WIDTH, _HEIGHT
    deck.core_properties.title = plain(title)
    deck.core_properties.author = ""
    writer = _Writer(deck, pictures)
    writer.first(title, subtitle)
    for slide in slides:
        writer.add(slide)
    data = io.BytesIO()
    deck.save(data)
    return data.getvalue()


class _Writer:
    def __init__(self, deck: Any, pictures: Mapping[str, bytes]) -> None:
        self._deck = deck
        self._pictures = pictures
        self._inside = deck.slide_width - 2 * _MARGIN

    def first(self, title: str, subtitle: str) -> None:
        slide = self._deck.slides.add_slide(self._deck.slide_layouts[_TITLE_LAYOUT])
        slide.shapes.title.text = plain(title)
        _place(slide.shapes.title, (_MARGIN, Inches(2.2), self._inside, Inches(1.6)))
        below = slide.placeholders[1]
        if subtitle:
            below.text = plain(subtitle)
            _place(below, (_MARGIN, Inches(4), self._inside, Inches(1.2)))
        else:
            below.element.getparent().remove(below.element)  # an empty one would ask to be filled

    def add(self, slide: Slide) -> None:
        has_text = bool(slide.bullets)
        layout = self._deck.slide_layouts[_BODY_LAYOUT if has_text else _BARE_LAYOUT]
        drawn = self._deck.slides.add_slide(layout)
        drawn.shapes.title.text = plain(slide.title)
        _place(drawn.shapes.title, (_MARGIN, Inches(0.4), self._inside, Inches(1.0)))
        text_box, other_box = self._boxes(shares=has_text and (slide.image is not None or slide.table is not None))
        if has_text:
            _place(drawn.placeholders[1], text_box)
            _write_points(drawn.placeholders[1].text_frame, slide.bullets)
        if slide.image is not None:
            _add_picture(drawn, self._pictures[slide.image], other_box)
        if slide.table is not None:
            _add_table(drawn, slide.table, other_box)
        if slide.notes:
            drawn.notes_slide.notes_text_frame.text = plain(slide.notes)

    def _boxes(self, *, shares: bool) -> tuple[Box, Box]:
        """For the text, and for what stands beside it; the whole slide for either alone."""
        height = self._deck.slide_height - _TOP - Inches(0.5)
        whole = (_MARGIN, _TOP, self._inside, height)
        if not shares:
            return whole, whole
        half = (self._inside - Inches(0.4)) // 2
        return (_MARGIN, _TOP, half, height), (_MARGIN + half + Inches(0.4), _TOP, half, height)


def _place(shape: Any, box: Box) -> None:
    shape.left, shape.top, shape.width, shape.height = box


def _write_points(frame: Any, points: Sequence[str | Point]) -> None:
    lines = [point if isinstance(point, Point) else Point(point) for point in points]
    length = sum(len(line.text) + 40 for line in lines)
    size = next((size for most, size in _SIZES if length <= most), 13)
    for n, line in enumerate(lines):
        paragraph = frame.paragraphs[0] if n == 0 else frame.add_paragraph()
        paragraph.text, paragraph.level = plain(line.text), line.level
        paragraph.font.size = Pt(max(size - 2 * line.level, 11))


def _add_picture(slide: Any, data: bytes, box: Box) -> None:
    """As large as its place allows, in the middle of it."""
    left, top, width, height = box
    picture = slide.shapes.add_picture(io.BytesIO(data), left, top)
    scale = min(width / picture.width, height / picture.height)
    picture.width, picture.height = Emu(int(picture.width * scale)), Emu(int(picture.height * scale))
    picture.left = Emu(left + (width - picture.width) // 2)
    picture.top = Emu(top + (height - picture.height) // 2)


def _add_table(slide: Any, table: SlideTable, box: Box) -> None:
    left, top, width, height = box
    rows = [table.head, *table.rows]
    line = min(Inches(0.5), height // len(rows))
    grid = slide.shapes.add_table(len(rows), len(table.head), left, top, width, line * len(rows)).table
    for r, row in enumerate(rows):
        for c, text in enumerate(row):
            cell = grid.cell(r, c)
            cell.text = plain(text)
            for paragraph in cell.text_frame.paragraphs:
                paragraph.font.size = Pt(14 if len(rows) <= 10 else 11)
