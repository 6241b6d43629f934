"""Blocks as a PDF, A4, with an outline of its headings."""

import io
from collections.abc import Collection, Mapping, Sequence

from fpdf import FPDF, FontFace
from fpdf.enums import WrapMode
from fpdf.errors import FPDFException
from fpdf.fonts import TTFFont

from bullpen.agents.tools.office.blocks import (
    Block,
    Code,
    Heading,
    Item,
    Paragraph,
    Picture,
    Rule,
    Span,
    Spans,
    Table,
    text_of,
)
from bullpen.agents.tools.office.fonts import Drawing, Family
from bullpen.agents.tools.office.pictures import size_of
from bullpen.errors import ToolError

_SIZE = 11
_LINE = 5.5
"""Of text, in millimetres."""
_HEADINGS = (20, 16, 14, 12, 11, 11)
_STEP = 6.0
_INSTEAD = "\N{WHITE SQUARE}"


def write_pdf(title: str, blocks: Sequence[Block], pictures: Mapping[str, bytes], drawing: Drawing) -> bytes:
    pdf = _Pages(format="A4")
    try:
        writer = _Writer(pdf, pictures, drawing, has_code=any(map(_has_code, blocks)))
        pdf.set_title(title)
        pdf.set_margin(20)
        pdf.set_auto_page_break(auto=True, margin=20)
        pdf.add_page()
        for block in blocks:
            writer.write(block)
        return bytes(pdf.output())
    finally:
        for font in pdf.fonts.values():
            if isinstance(font, TTFFont):
                font.ttfont.close()  # it reads on demand, and would hold the file until it is collected


class _Pages(FPDF):
    """With a number under each page."""

    text_family = "Helvetica"

    def footer(self) -> None:
        self.set_y(-14)
        self.set_font(self.text_family, size=9)
        self.cell(0, 8, str(self.page_no()), align="C")


class _Writer:
    def __init__(self, pdf: _Pages, pictures: Mapping[str, bytes], drawing: Drawing, *, has_code: bool) -> None:
        self._pdf = pdf
        self._pictures = pictures
        self._missing = str.maketrans(dict.fromkeys(drawing.missing, _INSTEAD if drawing.text else "?"))
        self._fixed = "Courier"
        self._level = -1
        if drawing.text is not None:
            pdf.text_family = _add(pdf, "text", drawing.text, ("", "B", "I", "BI"))
            self._fixed = pdf.text_family
        if drawing.fixed is not None and has_code:
            self._fixed = _add(pdf, "fixed", drawing.fixed, ("",))
        others = []
        for n, path in enumerate(drawing.others):
            pdf.add_font(f"other{n}", fname=path)
            others.append(f"other{n}")
        if self._fixed not in {"Courier", pdf.text_family}:
            others.append(pdf.text_family)  # what is written in fixed width may need letters of the text's font
        if others:
            pdf.set_fallback_fonts(others, exact_match=False)

    def write(self, block: Block) -> None:
        match block:
            case Heading():
                self._heading(block)
            case Paragraph():
                self._paragraph(block)
            case Item():
                self._item(block)
            case Code():
                self._code(block)
            case Table():
                self._table(block)
            case Picture():
                self._picture(block)
            case Rule():
                y = self._pdf.get_y() + 2
                self._pdf.line(self._pdf.l_margin, y, self._pdf.w - self._pdf.r_margin, y)
                self._pdf.set_y(y + 4)

    def _heading(self, heading: Heading) -> None:
        size = _HEADINGS[heading.level - 1]
        room = size * 0.5
        if self._pdf.will_page_break(room + 3 * _LINE):  # a heading stands with what it is about
            self._pdf.add_page()
        self._pdf.ln(room / 2)
        self._pdf.set_font(self._pdf.text_family, "B", size)
        self._outline(heading)
        for span in heading.spans:
            self._span(span, size=size, line=room, bold=True)
        self._pdf.ln(room + 1)

    def _outline(self, heading: Heading) -> None:
        """Readers of PDF drop what skips a level."""
        self._level = min(heading.level - 1, self._level + 1)
        self._pdf.start_section(self._seen(text_of(heading.spans)), self._level)

    def _paragraph(self, paragraph: Paragraph) -> None:
        with _Indent(self._pdf, paragraph.depth + paragraph.is_quote):
            for span in paragraph.spans:
                self._span(span, italic=paragraph.is_quote)
            self._pdf.ln(_LINE + 2)

    def _item(self, item: Item) -> None:
        with _Indent(self._pdf, item.depth - 1):
            self._pdf.set_font(self._pdf.text_family, size=_SIZE)
            mark = "\N{BULLET}" if item.number is None else f"{item.number}."
            if self._pdf.text_family == "Helvetica" and item.number is None:
                mark = "-"
            self._pdf.cell(_STEP, _LINE, mark)
            with _Indent(self._pdf, 1, moves=False):
                for span in item.spans:
                    self._span(span)
                self._pdf.ln(_LINE + 0.8)

    def _code(self, code: Code) -> None:
        with _Indent(self._pdf, code.depth):
            self._pdf.set_font(self._fixed, size=9)
            self._pdf.set_fill_color(244)
            text = self._seen(code.text).replace("\t", "    ")
            self._pdf.multi_cell(0, 4.5, text, fill=True, align="L", wrapmode=WrapMode.CHAR, new_x="LMARGIN", padding=2)
            self._pdf.ln(2)

    def _table(self, table: Table) -> None:
        self._pdf.set_font(self._pdf.text_family, size=_SIZE - 1)
        try:
            with self._pdf.table(text_align="LEFT", line_height=_LINE, padding=1) as grid:
                for cells in (table.head, *table.rows):
                    row = grid.row()
                    for spans in cells:
                        row.cell(self._seen(text_of(spans)), style=_face(spans))
        except (FPDFException, ValueError) as error:  # no room for a letter, or a row longer than a page
            raise ToolError(
                f"text: the table that begins with {text_of(table.head[0])[:50]!r} does not fit on a page ({error}); "
                "take fewer columns, shorter cells, or kind 'docx'"
            ) from None
        self._pdf.ln(3)

    def _picture(self, picture: Picture) -> None:
        page, data = self._pdf, self._pictures[picture.artifact]
        # 96 dots to the inch, smaller where the page ends.
        width, height = (side * 25.4 / 96 for side in size_of(data, "text"))
        scale = min(1.0, page.epw / width, page.eph / height)
        if page.will_page_break(height * scale):
            page.add_page()
        page.image(
            io.BytesIO(data), x=page.l_margin, w=width * scale, h=height * scale, alt_text=self._seen(picture.alt)
        )
        page.ln(3)

    def _span(
        self, span: Span, *, size: int = _SIZE, line: float = _LINE, bold: bool = False, italic: bool = False
    ) -> None:
        # Fixed letters are code: they have one weight, wherever they stand.
        style = "" if span.code else "B" * (bold or span.bold) + "I" * (italic or span.italic)
        style += "U" * (span.link is not None) + "S" * span.struck
        self._pdf.set_font(self._fixed if span.code else self._pdf.text_family, style, size)
        if span.link is not None:
            self._pdf.set_text_color(5, 99, 193)
        self._pdf.write(line, self._seen(span.text), link=span.link or "")
        self._pdf.set_text_color(0)

    def _seen(self, text: str) -> str:
        return text.translate(self._missing)


class _Indent:
    """The left margin further in, and back at the end."""

    def __init__(self, pdf: FPDF, steps: int, *, moves: bool = True) -> None:
        self._pdf, self._moves = pdf, moves
        self._by = min(steps, 8) * _STEP
        self._was = pdf.l_margin

    def __enter__(self) -> None:
        x = self._pdf.get_x()
        self._pdf.set_left_margin(self._was + self._by)
        self._pdf.set_x(self._was + self._by if self._moves else x)

    def __exit__(self, *ended: object) -> None:
        self._pdf.set_left_margin(self._was)
        self._pdf.set_x(self._was)


def _add(pdf: FPDF, name: str, family: Family, styles: Collection[str]) -> str:
    """Only those that are used: each takes a while to read."""
    for style, path in (("", family.regular), ("B", family.bold), ("I", family.italic), ("BI", family.bold_italic)):
        if style in styles:
            pdf.add_font(name, style, path)
    return name


def _has_code(block: Block) -> bool:
    match block:
        case Code():
            return True
        case Heading() | Paragraph() | Item():
            return any(span.code for span in block.spans)
        case _:
            return False


def _face(spans: Spans) -> FontFace | None:
    """A cell has one style: that which all of it has."""
    style = ("B" if all(span.bold for span in spans) else "") + ("I" if all(span.italic for span in spans) else "")
    return FontFace(emphasis=style) if spans and style else None
