"""`generate_slides`: slides for PowerPoint and its kin, from what stands on each."""

import asyncio
from pathlib import PurePath
from typing import Annotated

from msgspec import Meta, Struct

from bullpen.agents.tools.office.files import Made, ReadFile, file_name, keep, needs, read_picture
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext, tool
from bullpen.errors import ToolError

_MIME = "application/vnd.openxmlformats-officedocument.presentationml.presentation"

Line = Annotated[str, Meta(max_length=400)]
Heading = Annotated[str, Meta(min_length=1, max_length=200)]
Cell = Annotated[str, Meta(max_length=200)]


class Point(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a slide, further in than others."""

    text: Line
    level: Annotated[int, Meta(ge=0, le=4, description="0 is the outermost.")] = 0


class SlideTable(Struct, frozen=True, forbid_unknown_fields=True):
    head: Annotated[list[Cell], Meta(min_length=1, max_length=10)]
    rows: Annotated[list[list[Cell]], Meta(max_length=20)]


class Slide(Struct, frozen=True, forbid_unknown_fields=True):
    title: Heading
    bullets: Annotated[list[Line | Point], Meta(max_length=15)] = []
    notes: Annotated[str, Meta(max_length=10_000, description="What the speaker says; not on the slide.")] = ""
    image: Annotated[str | None, Meta(description="The id of an artifact: a PNG or JPEG picture.")] = None
    table: SlideTable | None = None


Title = Annotated[
    str, Meta(min_length=1, max_length=200, description="On the first slide; the file is named after it.")
]
Subtitle = Annotated[str, Meta(max_length=300)]
Slides = Annotated[
    list[Slide], Meta(max_length=100, description="Those after the first, which has title and subtitle.")
]


def generate_slides(*, read_file: ReadFile | None = None, template: PurePath | str | None = None) -> Tool:
    """A tool that makes slides. A `template` is a .pptx file of yours, with the usual eleven layouts, for its looks."""

    @tool(name="generate_slides", policy=Policy.IDEMPOTENT)
    async def make(context: ToolContext, title: Title, slides: Slides, subtitle: Subtitle = "") -> Made:
        """Make a slide deck (.pptx) and keep it as a file. A slide has bullets, and beside them an image or a table."""
        _check(slides)
        pictures = {
            slide.image: await read_picture(read_file, context, slide.image, f"slides[{n}].image")
            for n, slide in enumerate(slides)
            if slide.image is not None
        }
        data = await asyncio.to_thread(_written, title, subtitle, slides, pictures, template)
        return await keep(context, file_name(title, "pptx"), data, _MIME)

    return make


def _written(
    title: str, subtitle: str, slides: list[Slide], pictures: dict[str, bytes], template: PurePath | str | None
) -> bytes:
    with needs("python-pptx"):
        from bullpen.agents.tools.office.pptx_writing import write_pptx
    return write_pptx(title, subtitle, slides, pictures, template)


def _check(slides: list[Slide]) -> None:
    for n, slide in enumerate(slides):
        if slide.image is not None and slide.table is not None:
            raise ToolError(f"slides[{n}]: has room for an image or for a table, not for both")
        for r, row in enumerate(slide.table.rows if slide.table is not None else ()):
            if slide.table is not None and len(row) != len(slide.table.head):
                raise ToolError(
                    f"slides[{n}].table.rows[{r}]: has {len(row)} cells where the head has {len(slide.table.head)}"
                )
