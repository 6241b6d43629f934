"""Markdown as a flat row of blocks, which writers of documents go through one by one.

What is nested (a list in a list, a table in a quote) keeps its depth as a number: a page is a row of lines anyhow.
"""

from collections.abc import Iterator, Sequence

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

from bullpen.agents.tools.office.files import plain

ARTIFACT = "artifact:"
"""An address of a picture that this run keeps: `![A chart](artifact:ID)`."""
_LINKS = ("http://", "https://", "mailto:")
_READER = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable(["table", "strikethrough"])


class Span(msgspec.Struct, frozen=True):
    """Text in one style; a line end in it stays one."""

    text: str
    bold: bool = False
    italic: bool = False
    code: bool = False
    struck: bool = False
    link: str | None = None


Spans = tuple[Span, ...]


class Heading(msgspec.Struct, frozen=True):
    level: int
    spans: Spans


class Paragraph(msgspec.Struct, frozen=True):
    spans: Spans
    depth: int = 0
    """Under how many lists it stands."""
    is_quote: bool = False


class Item(msgspec.Struct, frozen=True):
    """The first line of a list's item."""

    spans: Spans
    depth: int
    """1 for a list that is in no other."""
    number: int | None
    """None for a dot."""
    list_id: int
    """The same for all items of one list."""


class Code(msgspec.Struct, frozen=True):
    text: str
    depth: int = 0


class Table(msgspec.Struct, frozen=True):
    head: tuple[Spans, ...]
    rows: tuple[tuple[Spans, ...], ...]


class Picture(msgspec.Struct, frozen=True):
    artifact: str
    alt: str


class Rule(msgspec.Struct, frozen=True):
    """A line across the page."""


Block = Heading | Paragraph | Item | Code | Table | Picture | Rule


def read_markdown(text: str) -> list[Block]:
    return list(_Walk(_READER.parse(plain(text))).blocks())


def text_of(spans: Spans) -> str:
    return "".join(span.text for span in spans)


def all_text(blocks: Sequence[Block]) -> Iterator[str]:
    """All that has to be drawn."""
    for block in blocks:
        match block:
            case Heading() | Paragraph() | Item():
                yield text_of(block.spans)
            case Code():
                yield block.text
            case Table():
                for row in (block.head, *block.rows):
                    yield from map(text_of, row)
            case Picture():
                yield block.alt
            case Rule():
                pass


class _Walk:
    """Once through the tokens, with what they stand in."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = iter(tokens)
        self._lists: list[int] = []
        """Ids of those that are open."""
        self._number: int | None = None
        """Of the item that begins."""
        self._quotes = 0
        self._count = 0
        self._begins_item = False

    def blocks(self) -> Iterator[Block]:
        for token in self._tokens:
            match token.type:
                case "heading_open":
                    yield Heading(int(token.tag[1:]), _spans(next(self._tokens)))
                case "paragraph_open":
                    yield from self._paragraph(next(self._tokens))
                case "fence" | "code_block":
                    yield Code(token.content.rstrip("\n"), len(self._lists))
                case "table_open":
                    yield self._table()
                case "hr":
                    yield Rule()
                case "blockquote_open":
                    self._quotes += 1
                case "blockquote_close":
                    self._quotes -= 1
                case _:
                    self._enter_or_leave_list(token)

    def _enter_or_leave_list(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                self._count += 1
                self._lists.append(self._count)
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                self._begins_item, self._number = True, int(token.info) if token.info else None
            case "list_item_close":
                self._begins_item = False

    def _paragraph(self, inline: Token) -> Iterator[Block]:
        pictures = [child for child in inline.children or () if child.type == "image"]
        spans = _spans(inline)
        if self._begins_item:
            self._begins_item = False
            yield Item(spans, len(self._lists), self._number, self._lists[-1])
        elif text_of(spans).strip():
            yield Paragraph(spans, len(self._lists), self._quotes > 0)
        for picture in pictures:
            source = str(picture.attrGet("src") or "")
            if source.startswith(ARTIFACT):
                yield Picture(source.removeprefix(ARTIFACT), picture.content)

    def _table(self) -> Table:
        rows: list[tuple[Spans, ...]] = []
        cells: list[Spans] = []
        for token in self._tokens:
            match token.type:
                case "tr_open":
                    cells = []
                case "inline":
                    cells.append(_spans(token))
                case "tr_close":
                    rows.append(tuple(cells))
                case "table_close":
                    break
        return Table(rows[0], tuple(rows[1:]))


def _spans(inline: Token) -> Spans:
    spans: list[Span] = []
    bold = italic = struck = 0
    link: str | None = None
    for token in inline.children or ():
        text, code = "", False
        match token.type:
            case "strong_open" | "strong_close":
                bold += token.nesting
            case "em_open" | "em_close":
                italic += token.nesting
            case "s_open" | "s_close":
                struck += token.nesting
            case "link_open":
                address = str(token.attrGet("href") or "")
                link = address if address.startswith(_LINKS) else None
            case "link_close":
                link = None
            case "code_inline":
                text, code = token.content, True
            case "softbreak":
                text = " "
            case "hardbreak":
                text = "\n"
            case "image":
                # One of ours is drawn as a block of its own; of another there is only what it shows, in words.
                text = "" if str(token.attrGet("src") or "").startswith(ARTIFACT) else token.content
            case _:
                text = token.content
        if text:
            spans.append(Span(text, bold > 0, italic > 0, code, struck > 0, link))
    return tuple(spans)
