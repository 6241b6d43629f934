"""All that the command line says, to people and to programs: the only place that writes."""

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from bullpen.cli.tables import Column, Row, Style, clean, plain, table_lines

_CODES: dict[Style, str] = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_BAR = 24
_PROGRAM = "bullpen"


class Show:
    """Where a verb's answer goes. Colour and width limits are for terminals only."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None, *, as_json: bool = False) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self.as_json = as_json
        """Whether a program reads the answer."""
        self.is_terminal = self._out.isatty()
        wants_colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.has_colour = self.is_terminal and wants_colour

    @property
    def width(self) -> int | None:
        """Of the terminal, now; None where lines may be of any length."""
        return shutil.get_terminal_size().columns if self.is_terminal else None

    @property
    def height(self) -> int:
        return shutil.get_terminal_size().lines

    def paint(self, text: str, style: Style) -> str:
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.has_colour and style and text else plain(text)

    # ── for people ───────────────────────────────────────────────────────────────────────

    def line(self, text: str = "", style: Style = "") -> None:
        """One line; what it says of jobs cannot steer the terminal."""
        self.raw(self.paint(clean(text), style) + "\n")

    def block(self, text: str, style: Style = "", indent: str = "  ") -> None:
        """Several lines, indented."""
        for line in text.splitlines():
            self.raw(indent + self.paint(clean(line), style) + "\n")

    def table(self, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        self.raw("".join(f"{line}\n" for line in table_lines(columns, rows, self.width, self.paint)))

    def raw(self, text: str) -> None:
        """As it is: lines that were painted already, and what moves the cursor."""
        self._out.write(text)
        self._out.flush()

    # ── for both ─────────────────────────────────────────────────────────────────────────

    def answer(self, value: Any, line: str) -> None:
        """The whole answer: a JSON document for programs, a line for people."""
        if self.as_json:
            self.document(value)
        else:
            self.line(line)

    # ── for programs ─────────────────────────────────────────────────────────────────────

    def document(self, value: Any) -> None:
        """The whole answer as one JSON document."""
        self.raw(json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def item(self, value: Any) -> None:
        """One line of JSON, of several."""
        self.raw(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")

    # ── beside the answer ────────────────────────────────────────────────────────────────

    def error(self, message: str, code: str) -> None:
        self._err.write(f"{_PROGRAM}: {clean(message)} [{code}]\n")
        self._err.flush()

    def note(self, text: str) -> None:
        """A word to a person at the terminal, beside the answer; a program does not see it."""
        if not self.as_json and self._err.isatty():
            self._err.write(f"{clean(text)}\n")

    @contextlib.contextmanager
    def progress(self, label: str, total: int, *, hidden: bool = False) -> Iterator["Progress"]:
        """A bar on the terminal while something long goes on; it is gone afterwards."""
        bar = Progress(self._err if self._err.isatty() and not hidden else None, label, total)
        try:
            bar.advance(0)
            yield bar
        finally:
            bar.clear()


class Progress:
    def __init__(self, out: TextIO | None, label: str, total: int) -> None:
        self._out = out
        self._label = label
        self._total = total
        self.done = 0

    def advance(self, by: int) -> None:
        self.done += by
        if self._out is None:
            return
        share = min(1.0, self.done / self._total) if self._total else 0.0
        full = round(share * _BAR)
        numbers = f"{self.done:,} of {self._total:,}" if self._total else f"{self.done:,}"
        self._out.write(f"\r\x1b[K{self._label} {'█' * full}{'░' * (_BAR - full)} {share:4.0%}  {numbers}")
        self._out.flush()

    def clear(self) -> None:
        if self._out is not None:
            self._out.write("\r\x1b[K")
            self._out.flush()
