"""Search in the files of a folder, without a network: text, Markdown and HTML, by SQLite's full-text index.

The index is in memory, or in a file that is given. Before a search the folder is looked through, and what has changed
since is read again.
"""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from bullpen.agents.tools.page_text import text_of_html, title_of_markdown
from bullpen.agents.tools.searching import Found
from bullpen.errors import BadOption, ToolError

_KINDS = {".txt": "text", ".text": "text", ".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html"}
_MOST_BYTES = 2_000_000
_MOST_FILES = 50_000
_SNIPPET_WORDS = 40
_NO_QUOTES = {ord('"'): " ", 0: " "}
"""What would end a quoted word of a query."""

_TABLES = """
CREATE TABLE IF NOT EXISTS files (id INTEGER PRIMARY KEY, path TEXT UNIQUE NOT NULL, stamp TEXT NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS pages USING fts5(title, body, tokenize = 'porter unicode61 remove_diacritics 2');
"""
_SEARCH = """
SELECT pages.title, files.path, snippet(pages, 1, '', '', ' … ', ?)
FROM pages JOIN files ON files.id = pages.rowid WHERE pages MATCH ? ORDER BY bm25(pages, 5.0, 1.0), files.path LIMIT ?
"""


class FolderSearch:
    """A `SearchBackend`. Hidden files, links and files above 2 MB are passed over.

    `base_url` is put before a file's path in the folder, to make it an address.
    """

    def __init__(self, folder: str | Path, *, index: str | Path = ":memory:", base_url: str = "") -> None:
        self._folder = Path(folder)
        if not self._folder.is_dir():
            raise BadOption(f"folder: {os.fspath(folder)!r} is no folder")
        self._index = os.fspath(index)
        self._base_url = base_url
        self._database: sqlite3.Connection | None = None
        self._turn = threading.Lock()

    async def search(self, query: str, *, limit: int) -> Sequence[Found]:
        return await asyncio.to_thread(self._search, query, limit)

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._turn:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _search(self, query: str, limit: int) -> list[Found]:
        words = [f'"{word}"' for word in query.translate(_NO_QUOTES).split()]
        if not words:
            return []
        with self._turn:
            try:
                database = self._opened()
                self._look_through(database)
                # All of the words, or as many as there are.
                rows = self._rows(database, " ".join(words), limit) or self._rows(database, " OR ".join(words), limit)
            except (sqlite3.Error, OSError) as error:
                raise ToolError(f"the folder cannot be searched: {error}") from error
        return [Found(title=title, url=self._base_url + path, snippet=snippet) for title, path, snippet in rows]

    def _opened(self) -> sqlite3.Connection:
        if self._database is None:
            # The lock is what keeps threads apart.
            self._database = sqlite3.connect(self._index, check_same_thread=False)
            self._database.executescript(_TABLES)
        return self._database

    @staticmethod
    def _rows(database: sqlite3.Connection, match: str, limit: int) -> list[tuple[str, str, str]]:
        return database.execute(_SEARCH, (_SNIPPET_WORDS, match, limit)).fetchall()

    def _look_through(self, database: sqlite3.Connection) -> None:
        known = {path: (number, stamp) for number, path, stamp in database.execute("SELECT id, path, stamp FROM files")}
        with database:
            for path, stamp in self._files():
                number, before = known.pop(path, (None, ""))
                if stamp != before:
                    _forget(database, number)
                    self._read(database, path, stamp)
            for number, _ in known.values():
                _forget(database, number)

    def _files(self) -> Iterator[tuple[str, str]]:
        """Those that are searched, by their path in the folder, each with what changes when it does."""
        count = 0
        for place, folders, names in os.walk(self._folder):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                file = Path(place, name)
                if name.startswith(".") or file.suffix.lower() not in _KINDS or file.is_symlink():
                    continue
                try:
                    about = file.stat()
                except FileNotFoundError:
                    continue  # gone since it was listed
                if about.st_size <= _MOST_BYTES:
                    yield file.relative_to(self._folder).as_posix(), f"{about.st_mtime_ns} {about.st_size}"
                    count += 1
                if count == _MOST_FILES:
                    return

    def _read(self, database: sqlite3.Connection, path: str, stamp: str) -> None:
        file = self._folder / path
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return
        title = ""
        match _KINDS[file.suffix.lower()]:
            case "html":
                title, text = text_of_html(text)
            case "markdown":
                title = title_of_markdown(text)
        row = database.execute("INSERT INTO files (path, stamp) VALUES (?, ?)", (path, stamp))
        database.execute(
            "INSERT INTO pages (rowid, title, body) VALUES (?, ?, ?)", (row.lastrowid, title or file.stem, text)
        )


def _forget(database: sqlite3.Connection, number: int | None) -> None:
    database.execute("DELETE FROM pages WHERE rowid = ?", (number,))
    database.execute("DELETE FROM files WHERE id = ?", (number,))
