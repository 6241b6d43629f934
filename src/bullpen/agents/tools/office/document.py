"""`generate_document`: a text in Markdown as a Markdown, Word or PDF file."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from bullpen.agents.tools.office.files import Made, ReadFile, file_name, keep, needs, plain, read_picture
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext, tool
from bullpen.errors import ToolError

if TYPE_CHECKING:  # the reader of Markdown comes with an extra
    from bullpen.agents.tools.office.blocks import Block

_MIMES = {
    "md": "text/markdown",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pdf": "application/pdf",
}
_MAX_PICTURES = 50
_MAX_COLUMNS = 63
"""Of a table: Word opens no file with more."""
_LONG_S = 180.0
"""A PDF of the longest text takes half a minute and more."""

Title = Annotated[str, Meta(min_length=1, max_length=200, description="Of the document; its file is named after it.")]
Text = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200_000,
        description=(
            "In Markdown: headings, paragraphs, bold, italic, lists, tables, code, quotes, links. "
            "A picture that an earlier call made: ![What it shows](artifact:ID)."
        ),
    ),
]
Kind = Annotated[Literal["pdf", "docx", "md"], Meta(description="What kind of file.")]


def generate_document(*, read_file: ReadFile | None = None, fonts: Path | str | None = None) -> Tool:
    """A tool that writes documents. `fonts` is a folder that is looked into before those of the system."""

    @tool(name="generate_document", policy=Policy.IDEMPOTENT, timeout=_LONG_S)
    async def write(context: ToolContext, title: Title, text: Text, kind: Kind = "pdf") -> Made:
        """Write a document and keep it as a file."""
        name = file_name(title, kind)
        if kind == "md":
            return await keep(context, name, plain(text).encode(), _MIMES[kind])
        blocks, wanted = await asyncio.to_thread(_read, text)
        if len(wanted) > _MAX_PICTURES:
            raise ToolError(f"text: has {len(wanted)} pictures; {_MAX_PICTURES} is the most")
        pictures = {artifact: await read_picture(read_file, context, artifact, "text") for artifact in wanted}
        data, notes = await asyncio.to_thread(_written, kind, plain(title), blocks, pictures, fonts)
        return await keep(context, name, data, _MIMES[kind], notes)

    return write


def _read(text: str) -> "tuple[list[Block], list[str]]":
    """The text, and the artifacts of its pictures."""
    with needs("markdown-it-py"):
        from bullpen.agents.tools.office.blocks import Picture, Table, read_markdown
    blocks = read_markdown(text)
    widest = max((len(block.head) for block in blocks if isinstance(block, Table)), default=0)
    if widest > _MAX_COLUMNS:
        raise ToolError(f"text: a table has {widest} columns; {_MAX_COLUMNS} is the most")
    return blocks, list(dict.fromkeys(block.artifact for block in blocks if isinstance(block, Picture)))


def _written(
    kind: str, title: str, blocks: "Sequence[Block]", pictures: Mapping[str, bytes], fonts: Path | str | None
) -> tuple[bytes, tuple[str, ...]]:
    """The file, and what could not be drawn."""
    from bullpen.agents.tools.office.blocks import all_text

    if kind == "docx":
        with needs("python-docx"):
            from bullpen.agents.tools.office.docx_writing import write_docx
        return write_docx(title, blocks, pictures), ()
    with needs("fpdf2"):
        from bullpen.agents.tools.office.fonts import FONTS, choose, font_folders, letters
        from bullpen.agents.tools.office.pdf_writing import write_pdf
    drawing = choose((*all_text(blocks), "\N{BULLET}\N{WHITE SQUARE}"), font_folders(fonts))
    unreadable = letters(drawing.missing)
    if unreadable:
        raise ToolError(
            f"text: no font here has {unreadable[:20]!r}; take kind 'docx', or have a font put where {FONTS} says"
        )
    gone = "".join(sorted(drawing.missing - {"\N{BULLET}", "\N{WHITE SQUARE}"}))
    notes = (f"no font here has these, which are drawn as a box: {gone[:100]}",) if gone else ()
    return write_pdf(title, blocks, pictures, drawing), notes
