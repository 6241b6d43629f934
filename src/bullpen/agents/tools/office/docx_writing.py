"""Blocks as a Word document."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

from docx import Document
from docx.document import Document as OpenDocument
from docx.enum.style import WD_STYLE_TYPE
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Emu, Pt, RGBColor
from docx.table import _Cell
from docx.text.paragraph import Paragraph as Line
from docx.text.run import Run

from bullpen.agents.tools.office.blocks import Block, Code, Heading, Item, Paragraph, Picture, Rule, Span, Spans, Table

_FIXED = "Courier New"
_STEP = Pt(18)
_LINK = RGBColor(0x05, 0x63, 0xC1)
_DEEPEST = 3
"""Lists further in have no style of their own in Word's usual set."""


def write_docx(title: str, blocks: Sequence[Block], pictures: Mapping[str, bytes]) -> bytes:
    document = Document()
    document.core_properties.title = title
    document.core_properties.author = ""
    document.core_properties.comments = ""
    writer = _Writer(document, pictures)
    for block in blocks:
        writer.write(block)
    data = io.BytesIO()
    document.save(data)
    return data.getvalue()


class _Writer:
    def __init__(self, document: OpenDocument, pictures: Mapping[str, bytes]) -> None:
        self._document = document
        self._pictures = pictures
        self._numberings: dict[int, int] = {}
        code: Any = document.styles.add_style("Code", WD_STYLE_TYPE.PARAGRAPH)
        code.font.name, code.font.size = _FIXED, Pt(9)

    def write(self, block: Block) -> None:
        match block:
            case Heading():
                self._runs(self._document.add_heading("", level=block.level), block.spans)
            case Paragraph():
                line = self._document.add_paragraph(style="Quote" if block.is_quote else None)
                line.paragraph_format.left_indent = _STEP * block.depth if block.depth else None
                self._runs(line, block.spans)
            case Item():
                self._item(block)
            case Code():
                line = self._document.add_paragraph(block.text, style="Code")
                line.paragraph_format.left_indent = _STEP * block.depth if block.depth else None
            case Table():
                self._table(block)
            case Picture():
                self._picture(block)
            case Rule():
                self._rule()

    def _item(self, item: Item) -> None:
        depth = min(item.depth, _DEEPEST)
        name = "List Bullet" if item.number is None else "List Number"
        line = self._document.add_paragraph(style=name if depth == 1 else f"{name} {depth}")
        if item.number is not None:
            properties = line._p.get_or_add_pPr().get_or_add_numPr()  # noqa: SLF001 - there is no other way to a list of its own
            properties.get_or_add_numId().val = self._numbering(item, line)
            properties.get_or_add_ilvl().val = 0
        self._runs(line, item.spans)

    def _numbering(self, item: Item, line: Line) -> int:
        """Each list counts from its own start; the style alone would count on from the list before."""
        known = self._numberings.get(item.list_id)
        if known is not None:
            return known
        numbering: Any = self._document.part.numbering_part.element
        style: Any = line.style
        usual = numbering.num_having_numId(style.element.pPr.numPr.numId.val)
        own = numbering.add_num(usual.abstractNumId.val)
        own.add_lvlOverride(ilvl=0).add_startOverride(item.number)
        self._numberings[item.list_id] = own.numId
        return int(own.numId)

    def _table(self, table: Table) -> None:
        columns = len(table.head)
        grid = self._document.add_table(rows=1, cols=columns, style="Table Grid")
        for cell, spans in zip(grid.rows[0].cells, table.head, strict=True):
            self._cell(cell, spans, is_head=True)
        for row in table.rows:
            for cell, spans in zip(grid.add_row().cells, row, strict=False):
                self._cell(cell, spans, is_head=False)
        self._document.add_paragraph()

    def _cell(self, cell: _Cell, spans: Spans, *, is_head: bool) -> None:
        for run in self._runs(cell.paragraphs[0], spans):
            run.bold = is_head or run.bold

    def _picture(self, picture: Picture) -> None:
        drawn = self._document.add_picture(io.BytesIO(self._pictures[picture.artifact]))
        section = self._document.sections[0]
        room = (section.page_width or 0) - (section.left_margin or 0) - (section.right_margin or 0)
        if drawn.width > room > 0:
            drawn.height, drawn.width = Emu(int(drawn.height * room / drawn.width)), Emu(room)
        drawn._inline.docPr.set("descr", picture.alt)  # noqa: SLF001 - what is read aloud has no other way in

    def _rule(self) -> None:
        properties = self._document.add_paragraph()._p.get_or_add_pPr()  # noqa: SLF001
        borders, bottom = OxmlElement("w:pBdr"), OxmlElement("w:bottom")
        for name, value in (("val", "single"), ("sz", "6"), ("space", "1"), ("color", "auto")):
            bottom.set(qn(f"w:{name}"), value)
        borders.append(bottom)
        properties.append(borders)

    def _runs(self, line: Line, spans: Spans) -> list[Run]:
        return [self._run(line, span) for span in spans]

    def _run(self, line: Line, span: Span) -> Run:
        run = line.add_run(span.text)
        run.bold, run.italic = span.bold or None, span.italic or None
        run.font.strike = span.struck or None
        if span.code:
            run.font.name = _FIXED
        if span.link is not None:
            run.font.underline, run.font.color.rgb = True, _LINK
            holder = OxmlElement("w:hyperlink")
            holder.set(qn("r:id"), line.part.relate_to(span.link, RELATIONSHIP_TYPE.HYPERLINK, is_external=True))
            line._p.append(holder)  # noqa: SLF001
            holder.append(run._r)  # noqa: SLF001
        return run
