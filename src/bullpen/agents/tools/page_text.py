"""What a reader would read of a page."""

import re
from html.parser import HTMLParser

_UNSEEN = frozenset({"script", "style", "template", "noscript"})
_BLOCKS = frozenset({"p", "div", "li", "br", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "pre"})
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)


def text_of_html(source: str) -> tuple[str, str]:
    """Its title, which may be empty, and its text."""
    reader = _Reader()
    reader.feed(source)
    reader.close()
    return " ".join("".join(reader.title).split()), _tidy("".join(reader.text))


def title_of_markdown(source: str) -> str:
    """Its first heading; empty if it has none."""
    found = _HEADING.search(source)
    return found[1] if found else ""


def _tidy(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.title: list[str] = []
        self.text: list[str] = []
        self._unseen = 0
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._in_title = self._in_title or tag == "title"
        self._unseen += tag in _UNSEEN
        if tag in _BLOCKS:
            self.text.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        if tag in _UNSEEN and self._unseen:
            self._unseen -= 1

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._unseen:
            self.text.append(data)
