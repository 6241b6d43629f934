"""Slides, opened again."""

import io
from typing import Any

import pptx
import pytest
from pptx.presentation import Presentation

from bullpen.agents.tools.office import KeptFile, generate_slides
from bullpen.agents.tools.policy import Policy
from bullpen.errors import BadData, ToolError
from tests.agents.tools.office.conftest import make_png
from tests.agents.tools.office.kept import Kept


def _deck(data: bytes) -> Presentation:
    return pptx.Presentation(io.BytesIO(data))


def _shapes(slide: Any, kind: str) -> list[Any]:
    return [shape for shape in slide.shapes if getattr(shape, kind, None)]


async def test_a_deck_has_what_was_asked_for(kept: Kept) -> None:
    kept.files["p1"] = KeptFile("p.png", make_png(400, 100), "image/png")
    tool = generate_slides(read_file=kept.read)
    assert (tool.name, tool.policy) == ("generate_slides", Policy.IDEMPOTENT)
    slides = [
        {"title": "Why — Почему", "bullets": ["one", {"text": "inner", "level": 1}], "notes": "Say hello"},
        {"title": "A picture", "bullets": ["beside"], "image": "p1"},
        {"title": "Numbers", "table": {"head": ["a", "b"], "rows": [["1", "2"], ["3", "4"]]}},
    ]
    deck = _deck(await kept.made_by(tool, title="Plan 2026", subtitle="for all", slides=slides))
    first, why, picture, numbers = deck.slides

    assert deck.core_properties.title == "Plan 2026"
    assert first.shapes.title.text == "Plan 2026"
    assert first.placeholders[1].text == "for all"

    assert why.shapes.title.text == "Why — Почему"
    lines = why.placeholders[1].text_frame.paragraphs
    assert [(line.text, line.level) for line in lines] == [("one", 0), ("inner", 1)]
    assert why.notes_slide.notes_text_frame.text == "Say hello"
    assert not picture.has_notes_slide

    (drawn,) = _shapes(picture, "image")
    assert drawn.width / drawn.height == pytest.approx(4, rel=0.01)
    text = picture.placeholders[1]
    assert text.left + text.width <= drawn.left, "the text is not under the picture"

    (grid,) = _shapes(numbers, "has_table")
    assert [[cell.text for cell in row.cells] for row in grid.table.rows] == [["a", "b"], ["1", "2"], ["3", "4"]]
    assert len(list(numbers.placeholders)) == 1, "no empty box asks to be filled"


async def test_everything_is_on_the_slide(kept: Kept) -> None:
    """Wide, as screens are, and with nothing beyond its edges."""
    kept.files["p1"] = KeptFile("p.png", make_png(50, 3_000), "image/png")
    head = [str(n) for n in range(10)]
    slides = [
        {"title": "t", "image": "p1"},
        {"title": "t", "bullets": ["x" * 400] * 15, "table": {"head": head, "rows": [head] * 20}},
    ]
    deck = _deck(await kept.made_by(generate_slides(read_file=kept.read), title="T", slides=slides))
    assert deck.slide_width / deck.slide_height == pytest.approx(16 / 9, rel=0.01)
    for slide in deck.slides:
        for shape in slide.shapes:
            assert shape.left >= 0
            assert shape.left + shape.width <= deck.slide_width
            assert shape.top >= 0
            assert shape.top + shape.height <= deck.slide_height


async def test_a_template_gives_the_looks(kept: Kept, tmp_path: Any) -> None:
    mine: Any = pptx.Presentation()
    mine.slide_width = 9_000_000
    mine.save(str(tmp_path / "mine.pptx"))
    tool = generate_slides(template=tmp_path / "mine.pptx")
    assert _deck(await kept.made_by(tool, title="T", slides=[])).slide_width == 9_000_000


@pytest.mark.parametrize(
    "slide, told",
    [
        ({"title": "t", "image": "p1", "table": {"head": ["a"], "rows": []}}, r"slides\[0\]: has room for an image or"),
        ({"title": "t", "table": {"head": ["a"], "rows": [["1"], ["1", "2"]]}}, r"slides\[0\].table.rows\[1\]: has 2"),
        ({"title": "t", "image": "none"}, r"slides\[0\].image: there is no artifact 'none'"),
    ],
)
async def test_what_does_not_fit_together_names_the_field(kept: Kept, slide: dict[str, Any], told: str) -> None:
    with pytest.raises(ToolError, match=told):
        await generate_slides(read_file=kept.read).call(kept.context(), {"title": "T", "slides": [slide]})
    assert not kept.files


@pytest.mark.parametrize(
    "slides, field",
    [
        ([{"title": ""}], r"\$\.slides\[0\]\.title"),
        ([{"title": "t", "bullets": ["x"] * 16}], r"\$\.slides\[0\]\.bullets"),
        ([{"title": "t"}] * 101, r"\$\.slides"),
        ([{"title": "t", "color": "red"}], "color"),
    ],
)
def test_arguments_that_do_not_fit_name_the_field(slides: list[Any], field: str) -> None:
    with pytest.raises(BadData, match=field):
        generate_slides().check({"title": "T", "slides": slides})


@pytest.mark.usefixtures("nothing_blocks")
async def test_writing_does_not_hold_up_the_loop(kept: Kept) -> None:
    await kept.made_by(generate_slides(), title="T\x00", slides=[{"title": "a\x0bb", "bullets": ["c"], "notes": "d"}])
