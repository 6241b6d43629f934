"""The words of rows, and how each database finds the rows that have some, the newest first.

A row is known here by its key, a number that is larger the newer it is. On SQLite the words are in an FTS5 table whose
rowid is the key; on PostgreSQL in a table with `key` and a vector. The migrations say how they are made.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Integer,
    Row,
    Select,
    String,
    TextClause,
    cast,
    column,
    func,
    literal,
    literal_column,
    select,
    table,
    text,
)
from sqlalchemy.dialects.postgresql import TSQUERY
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.records.database import Database
from bullpen.records.model.words import LONGEST_BEGINNING
from bullpen.records.tables.model import job

_NEWEST = 2_000
"""So many are looked through for a word that is longer than the beginnings of the index."""
_NEWEST_VECTORS = 20_000
"""So many are looked through, in 4 ms, before all rows that have the words are collected."""
AS_VECTOR = "array_to_tsvector(array_remove(string_to_array(:words, ' '), ''))"
"""PostgreSQL: words as they are. Its parser would split what we split already in another way."""


class Words(NamedTuple):
    """What a row's words are to have."""

    begun: tuple[str, ...]
    """Each of these, or a word that begins so."""
    whole: tuple[str, ...]
    """Each of these."""

    @property
    def is_long(self) -> bool:
        """Whether one is longer than what beginnings are indexed."""
        return any(len(word) > LONGEST_BEGINNING for word in self.begun)


class Texts:
    """The words of the rows of one table."""

    def __init__(self, name: str, key: Column[int]) -> None:
        self.name = name
        self._key = key
        self._texts = table(name, column("rowid", Integer), column("words", String))
        """As SQLite has it."""
        self._vectors = table(name, column("key", BigInteger), column("words"))
        """As PostgreSQL has it."""

    def put(self, database: Database) -> TextClause:
        """Keep the words of a row: `key` and `words`, with spaces between them."""
        if database.is_postgres:
            return text(f"INSERT INTO {self.name} (key, words) VALUES (:key, {AS_VECTOR})")  # noqa: S608 - our own names
        return text(f"INSERT INTO {self.name} (rowid, words) VALUES (:key, :words)")  # noqa: S608 - our own names

    def drop(self, database: Database) -> TextClause:
        """Drop the words of the rows whose keys are `listed`."""
        if database.is_postgres:
            return text(f"DELETE FROM {self.name} WHERE key = ANY(:listed)")  # noqa: S608 - our own names
        return text(f"DELETE FROM {self.name} WHERE rowid IN (SELECT value FROM json_each(:listed))")  # noqa: S608

    # ── SQLite ───────────────────────────────────────────────────────────────────────────

    async def walk(
        self, connection: AsyncConnection, query: Select[Any], words: Words, limit: int, before_key: int | None
    ) -> Sequence[Row[Any]]:
        """SQLite: as many rows of the query as have these words, the newest first.

        A long word is looked for among the newest that begin like it, and down the index where they are too few.
        """
        query = query.limit(limit)
        if words.is_long:
            found = await rows_of(connection, self._among_newest(query, words, before_key))
            if len(found) == limit:
                return found
        return await rows_of(connection, self._down(query, words, before_key))

    def among_few(self, query: Select[Any], words: Words, before_key: int | None) -> Select[Any]:
        """SQLite: the same by reading all rows of the query."""
        query = query.join(self._texts, self._texts.c.rowid == self._key)
        query = query.where(*[_has(self._texts.c.words, word) for word in words.begun])
        if before_key is not None:
            query = query.where(self._key + 0 < before_key)
        # The sums keep SQLite from going down all rows by their keys.
        return query.order_by((self._key + 0).desc())

    def _down(self, query: Select[Any], words: Words, before_key: int | None) -> Select[Any]:
        """Down the index of words: ends as soon as it has found enough; in another order all would be found first."""
        # The sum keeps SQLite from asking for the words of each row, in place of the rows of the words.
        query = query.join(self._texts, self._key == self._texts.c.rowid + 0)
        query = query.where(self._matches(words.begun, words.whole))
        if before_key is not None:
            query = query.where(self._texts.c.rowid < before_key)
        return query.order_by(self._texts.c.rowid.desc())

    def _among_newest(self, query: Select[Any], words: Words, before_key: int | None) -> Select[Any]:
        """The same among the newest rows whose words begin alike, as far as beginnings are indexed.

        For a longer word the index would gather all that have it first, frequent or not.
        """
        newest = select(self._texts.c.rowid.label("key"), self._texts.c.words)
        newest = newest.where(self._matches([word[:LONGEST_BEGINNING] for word in words.begun], words.whole))
        if before_key is not None:
            newest = newest.where(self._texts.c.rowid < before_key)
        among = newest.order_by(self._texts.c.rowid.desc()).limit(_NEWEST).subquery()
        query = query.join(among, self._key == among.c.key + 0)
        long = [word for word in words.begun if len(word) > LONGEST_BEGINNING]
        return query.where(*[_has(among.c.words, word) for word in long]).order_by(among.c.key.desc())

    def _matches(self, begun: Sequence[str], whole: Sequence[str]) -> ColumnElement[bool]:
        each = [f'"{word}"*' for word in begun] + [f'"{word}"' for word in whole]
        return literal_column(self.name, Boolean).op("MATCH", return_type=Boolean())(literal(" ".join(each)))

    # ── PostgreSQL ───────────────────────────────────────────────────────────────────────

    async def keys(
        self, connection: AsyncConnection, words: Words, limit: int, before_key: int | None
    ) -> Sequence[int]:
        """PostgreSQL: as many keys of rows that have these words, the newest first.

        Frequent words fill a page among the newest rows; else all that have the words are collected.
        """
        rows = await rows_of(connection, self._newest_keys(words, before_key).limit(limit))
        if len(rows) < limit:
            rows = await rows_of(connection, self._all_keys(words, before_key).limit(limit))
        return [row.key for row in rows]

    def with_vectors(self, query: Select[Any], words: Words) -> Select[Any]:
        """PostgreSQL: the query narrowed to rows that have these words."""
        return query.join(self._vectors, self._vectors.c.key == self._key).where(_fits(self._vectors.c.words, words))

    def _newest_keys(self, words: Words, before_key: int | None) -> Select[Any]:
        newest = self._below(select(self._vectors), before_key).order_by(self._vectors.c.key.desc())
        among = newest.limit(_NEWEST_VECTORS).subquery()
        return select(among.c.key).where(_fits(among.c.words, words)).order_by(among.c.key.desc())

    def _all_keys(self, words: Words, before_key: int | None) -> Select[Any]:
        """First they are all collected.

        Asked for in their order, its planner may go down all rows for a word that none of them has.
        """
        query = self._below(select(self._vectors.c.key), before_key).where(_fits(self._vectors.c.words, words))
        found = query.cte("found").prefix_with("MATERIALIZED")
        return select(found.c.key).order_by(found.c.key.desc())

    def _below(self, query: Select[Any], key: int | None) -> Select[Any]:
        return query if key is None else query.where(self._vectors.c.key < key)


JOB_TEXTS = Texts("bullpen_job_text", job.c.key)


async def rows_of(connection: AsyncConnection, query: Select[Any]) -> Sequence[Row[Any]]:
    rows: Sequence[Row[Any]] = (await connection.execute(query)).all()
    return rows


def _fits(vector: ColumnElement[Any], words: Words) -> ColumnElement[bool]:
    each = [f"'{word}':*" for word in words.begun] + [f"'{word}'" for word in words.whole]
    # As they are, here too: `to_tsquery` takes "4e4a81" for a number and a word.
    return vector.op("@@", return_type=Boolean())(cast(literal(" & ".join(each)), TSQUERY))


def _has(words: ColumnElement[str], begun: str) -> ColumnElement[bool]:
    return func.instr(literal(" ") + words, f" {begun}") > 0
