"""Documents, opened again by those who read such files."""

import io
import shutil
from pathlib import Path
from typing import Any

import docx
import pypdf
import pytest

from bullpen.agents.tools.office import KeptFile, generate_document
from bullpen.agents.tools.office.fonts import font_folders
from bullpen.agents.tools.policy import Policy
from bullpen.errors import BadData, ToolError
from tests.agents.tools.office.conftest import make_png
from tests.agents.tools.office.kept import Kept

TEXT = """# Report — Отчёт

Some **bold**, *italic*, ***both***, `code`, ~~gone~~ and [a link](https://example.com/x?a=1&b=2). Ελληνικά, ñ.

1. first
2. second
   - inner

   More of the second.

> Somebody said
> so.

| Name | Amount |
|------|-------:|
| Åsa  | **12** |
| <b>not html</b> | 7 |

```python
print("a < b")
```

---

### Deep below

7. seven
"""


def _docx(data: bytes) -> Any:
    return docx.Document(io.BytesIO(data))


def _pdf(data: bytes) -> Any:
    return pypdf.PdfReader(io.BytesIO(data))


def _pdf_text(data: bytes) -> str:
    return "\n".join(page.extract_text() for page in _pdf(data).pages)


def test_it_may_be_called_again_and_tells_its_bounds() -> None:
    tool = generate_document()
    assert (tool.name, tool.policy) == ("generate_document", Policy.IDEMPOTENT)
    assert tool.parameters["properties"]["kind"]["enum"] == ["docx", "md", "pdf"]
    assert tool.parameters["required"] == ["title", "text"]
    assert tool.parameters["properties"]["text"]["maxLength"] == 200_000


async def test_markdown_stays_as_it_is(kept: Kept) -> None:
    assert (await kept.made_by(generate_document(), title="Report", text=TEXT, kind="md")).decode() == TEXT
    assert [file.name for file in kept.files.values()] == ["Report.md"]


async def test_a_word_document_has_it_all(kept: Kept) -> None:
    document = _docx(await kept.made_by(generate_document(), title="Report", text=TEXT, kind="docx"))
    lines = {line.text: line for line in document.paragraphs}
    assert lines["Report — Отчёт"].style.name == "Heading 1"
    assert lines["Deep below"].style.name == "Heading 3"
    assert lines["first"].style.name == "List Number"
    assert lines["inner"].style.name == "List Bullet 2"
    assert lines["Somebody said so."].style.name == "Quote"
    assert lines['print("a < b")'].style.name == "Code"
    assert document.core_properties.title == "Report"

    some = next(line for text, line in lines.items() if text.startswith("Some "))
    runs = {run.text: run for run in some.runs}
    assert runs["bold"].bold
    assert not runs["bold"].italic
    assert runs["italic"].italic
    assert not runs["italic"].bold
    assert runs["both"].bold
    assert runs["both"].italic
    assert runs["gone"].font.strike
    assert runs["code"].font.name == "Courier New"
    assert [(link.text, link.url) for link in some.hyperlinks] == [("a link", "https://example.com/x?a=1&b=2")]

    (table,) = document.tables
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["Name", "Amount"], ["Åsa", "12"], ["<b>not html</b>", "7"]
    ]  # fmt: skip
    assert table.cell(0, 0).paragraphs[0].runs[0].bold
    assert not table.cell(1, 0).paragraphs[0].runs[0].bold


async def test_each_list_of_a_word_document_counts_from_its_own_start(kept: Kept) -> None:
    document = _docx(await kept.made_by(generate_document(), title="R", text=TEXT, kind="docx"))
    numbering: Any = document.part.numbering_part.element
    starts = {}
    for line in document.paragraphs:
        if line.style.name == "List Number":
            own = numbering.num_having_numId(line._p.pPr.numPr.numId.val)
            starts[line.text] = (own.numId, own.lvlOverride_lst[0].startOverride.val)
    assert starts["first"] == starts["second"]
    assert (starts["first"][1], starts["seven"][1]) == (1, 7)


async def test_a_pdf_has_it_all(kept: Kept) -> None:
    data = await kept.made_by(generate_document(), title="Report", text=TEXT)
    text = _pdf_text(data)
    for words in (
        "Report — Отчёт",
        "Some bold, italic, both, code, gone and a link. Ελληνικά, ñ.",
        "2. second\n• inner\nMore of the second.",
        "Somebody said so.",
        "Name Amount\nÅsa 12\n<b>not html</b> 7",
        'print("a < b")',
        "7. seven",
    ):
        assert words in text
    reader = _pdf(data)
    assert reader.metadata is not None
    assert reader.metadata.title == "Report"
    top, below = reader.outline
    assert isinstance(top, dict)
    assert top["/Title"] == "Report — Отчёт"
    assert isinstance(below, list)
    assert isinstance(below[0], dict)
    assert below[0]["/Title"] == "Deep below"
    links = [note.get_object()["/A"]["/URI"] for note in reader.pages[0]["/Annots"]]
    assert links == ["https://example.com/x?a=1&b=2"]


async def test_the_styles_of_a_pdf_are_fonts(kept: Kept) -> None:
    data = await kept.made_by(generate_document(), title="R", text="plain **bold** `fixed`")
    seen: dict[str, str] = {}

    def note(text: str, cm: Any, tm: Any, font: Any, size: Any) -> None:
        if text.strip():
            seen[text.strip()] = font["/BaseFont"]

    _pdf(data).pages[0].extract_text(visitor_text=note)
    assert len({seen["plain"], seen["bold"], seen["fixed"]}) == 3


async def test_a_long_text_goes_over_pages_with_numbers(kept: Kept) -> None:
    text = "\n\n".join(f"Paragraph {n} " + "with many words " * 30 for n in range(40))
    reader = pypdf.PdfReader(io.BytesIO(await kept.made_by(generate_document(), title="Long", text=text)))
    assert len(reader.pages) > 3
    assert reader.pages[2].extract_text().rstrip().endswith("3")
    assert "Paragraph 39" in reader.pages[-1].extract_text()


async def test_items_keep_their_numbers(kept: Kept) -> None:
    """Also after an item without words, and from nought."""
    text = _pdf_text(await kept.made_by(generate_document(), title="T", text="0. a\n1.\n2. c\n\n- x\n  1. y\n- z\n"))
    assert "0. a\n2. c\n• x\n1. y\n• z" in text


@pytest.mark.parametrize(
    "columns, cell, kind, told",
    [
        (64, "a", "docx", "text: a table has 64 columns; 63 is the most"),
        (60, "abcd", "pdf", "text: the table that begins with 'abcd' does not fit on a page"),
        (2, "word " * 700, "pdf", r"text: the table that begins with 'word .* does not fit on a page"),
    ],
    ids=["more than Word opens", "too narrow", "too high"],
)
async def test_a_table_that_no_page_holds_is_refused(kept: Kept, columns: int, cell: str, kind: str, told: str) -> None:
    lines = ["|" + f"{one}|" * columns for one in (cell, "-", cell)]
    with pytest.raises(ToolError, match=told):
        await generate_document().call(kept.context(), {"title": "T", "text": "\n".join(lines), "kind": kind})


async def test_a_sign_that_no_font_has_is_told(kept: Kept) -> None:
    told = await generate_document().call(kept.context(), {"title": "T", "text": "Go \U000f0000 now"})
    assert "\U000f0000" in told["notes"][0]
    assert "Go □ now" in _pdf_text(kept.files[told["artifact"]].data)


async def test_letters_that_no_font_has_are_refused_by_name(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of boxes helps nobody; and Western letters need no font at all."""
    monkeypatch.setattr("bullpen.agents.tools.office.fonts._USUAL", ())
    with pytest.raises(ToolError, match=r"text: no font here has 'ж'; take kind 'docx'.*BULLPEN_FONTS"):
        await generate_document().call(kept.context(), {"title": "T", "text": "a ж"})
    data = await kept.made_by(generate_document(), title="T", text="- Grüße\n- `x`")
    assert "- Grüße" in _pdf_text(data)


async def test_fonts_of_a_folder_come_first(kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [path for folder in font_folders() for path in folder.rglob("LiberationSans-*.ttf")]
    if not files:
        pytest.skip("this machine has no Liberation fonts")
    for path in files:
        shutil.copy(path, tmp_path)
    monkeypatch.setattr("bullpen.agents.tools.office.fonts._USUAL", ())
    monkeypatch.setenv("BULLPEN_FONTS", str(tmp_path))
    data = await kept.made_by(generate_document(), title="T", text="Жук")
    page = _pdf(data).pages[0]
    assert "Жук" in page.extract_text()
    assert any("Liberation" in font.get_object()["/BaseFont"] for font in page["/Resources"]["/Font"].values())


@pytest.mark.parametrize("kind", ["pdf", "docx"])
async def test_a_picture_of_the_run_stands_in_the_document(kept: Kept, kind: str) -> None:
    kept.files["p1"] = KeptFile("big.png", make_png(3_000, 10), "image/png")
    tool = generate_document(read_file=kept.read)
    data = await kept.made_by(tool, title="T", text="See ![a line](artifact:p1) here", kind=kind)
    if kind == "pdf":
        (image,) = _pdf(data).pages[0].images
        assert image.image is not None
        assert image.image.size == (3_000, 10)
    else:
        document = _docx(data)
        (shape,) = document.inline_shapes
        section = document.sections[0]
        assert shape.width <= section.page_width - section.left_margin - section.right_margin
        assert "See  here" in [line.text for line in document.paragraphs]


@pytest.mark.parametrize(
    "data, told",
    [
        (None, "text: there is no artifact 'p1' here"),
        (b"%PDF-1.7", "text: 'p1' is no PNG or JPEG picture"),
        (b"\x89PNG\r\n\x1a\n broken", "text: the picture cannot be read"),
        (make_png(1, 1, claims=(60_000, 60_000)), "text: the picture cannot be read: DecompressionBombError"),
        (make_png(1, 1, claims=(10_000, 9_000)), "text: .p1. has 10000 × 9000 pixels; 40,000,000 is the most"),
    ],
)
async def test_a_picture_that_is_none_is_refused(kept: Kept, data: bytes | None, told: str) -> None:
    """A small file that unpacks to gigabytes is not unpacked."""
    if data is not None:
        kept.files["p1"] = KeptFile("p", data)
    tool = generate_document(read_file=kept.read)
    with pytest.raises(ToolError, match=told):
        await tool.call(kept.context(), {"title": "T", "text": "![x](artifact:p1)", "kind": "docx"})
    assert [file.name for file in kept.files.values() if file.name.endswith("docx")] == []


async def test_pictures_from_elsewhere_are_words(kept: Kept) -> None:
    """Nothing is fetched."""
    data = await kept.made_by(generate_document(), title="T", text="![a cat](http://127.0.0.1:1/cat.png)", kind="docx")
    assert [line.text for line in _docx(data).paragraphs] == ["a cat"]


async def test_what_no_document_can_carry_is_left_out(kept: Kept) -> None:
    text = "a\x00b\x0bc [x](javascript:alert(1)) [y](file:///etc/passwd)"
    for kind in ("docx", "pdf"):
        data = await kept.made_by(generate_document(), title="T\x01", text=text, kind=kind)
        found = _docx(data).paragraphs[0].text if kind == "docx" else _pdf_text(data)
        assert "abc" in found.replace("\ufffd", "")
    document = _docx(kept.files["r1/1/T.docx"].data)
    assert document.paragraphs[0].hyperlinks == []


@pytest.mark.parametrize("title", ["../../etc/passwd", "a/b\\c", "...", 'x"*?<>|', "x" * 200])
async def test_a_title_is_never_a_path(kept: Kept, title: str) -> None:
    await kept.made_by(generate_document(), title=title, text="t", kind="md")
    (file,) = kept.files.values()
    assert Path(file.name).name == file.name
    assert file.name.endswith(".md")
    assert not file.name.startswith(".")
    assert len(file.name) <= 103


@pytest.mark.parametrize(
    "arguments, field",
    [
        ({"title": "", "text": "t"}, "title"),
        ({"title": "t", "text": "x" * 200_001}, "text"),
        ({"title": "t", "text": "t", "kind": "odt"}, "kind"),
    ],
)
def test_arguments_that_do_not_fit_name_the_field(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(BadData, match=rf"at `\$\.{field}`"):
        generate_document().check(arguments)


async def test_a_run_that_keeps_no_files_says_so(kept: Kept) -> None:
    from bullpen.agents.tools.tool import ToolContext

    with pytest.raises(ToolError, match="this run keeps no files"):
        await generate_document().call(ToolContext(task_id="r", key="k"), {"title": "T", "text": "t", "kind": "md"})


@pytest.mark.usefixtures("nothing_blocks")
@pytest.mark.parametrize("kind", ["pdf", "docx"])
async def test_writing_does_not_hold_up_the_loop(kept: Kept, kind: str) -> None:
    await kept.made_by(generate_document(), title="T", text=TEXT, kind=kind)
