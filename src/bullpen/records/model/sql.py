"""What the two databases say differently."""

import functools
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Integer,
    Select,
    String,
    Table,
    any_,
    bindparam,
    column,
    func,
    literal,
    literal_column,
    select,
    table,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite

from bullpen.records.database import Database
from bullpen.records.model.words import LONGEST_BEGINNING
from bullpen.records.tables.model import job

_NEWEST = 2_000
"""So many are looked through for a word that is longer than the beginnings of the index."""
_TEXTS = table("bullpen_job_text", column("rowid", Integer), column("words", String))
"""As SQLite has it."""


def insert_for(database: Database, into: Table) -> Any:
    """An insert that may say what to do on a conflict."""
    return postgresql.insert(into) if database.is_postgres else sqlite.insert(into)


def new_in(database: Database, into: Table) -> Any:
    """An insert of what is not there yet; made once for each table."""
    return _new_in(into, is_postgres=database.is_postgres)


@functools.cache
def _new_in(into: Table, *, is_postgres: bool) -> Any:
    return (postgresql if is_postgres else sqlite).insert(into).on_conflict_do_nothing()


def among(database: Database, field: Column[Any]) -> ColumnElement[bool]:
    """`field IN listed`, a list that is one parameter: to write a long IN out takes longer than to answer it."""
    if database.is_postgres:
        return field == any_(bindparam("listed", type_=postgresql.ARRAY(field.type)))
    return field.in_(select(func.json_each(bindparam("listed", type_=String)).table_valued("value").c.value))


def as_list(database: Database, values: Sequence[int] | Sequence[str]) -> Any:
    """The values of a `listed`."""
    return list(values) if database.is_postgres else json.dumps(list(values))


def put_words(database: Database) -> Any:
    """Keep the words of a job: `key` and `words`, with spaces between them."""
    if database.is_postgres:
        # As they are: the parser of PostgreSQL would split what we split already in another way.
        return text(
            "INSERT INTO bullpen_job_text (key, words)"
            " VALUES (:key, array_to_tsvector(array_remove(string_to_array(:words, ' '), '')))"
        )
    return text("INSERT INTO bullpen_job_text (rowid, words) VALUES (:key, :words)")


def drop_words(database: Database) -> Any:
    """Drop the words of the jobs whose keys are `listed`."""
    if database.is_postgres:
        return text("DELETE FROM bullpen_job_text WHERE key = ANY(:listed)")
    return text("DELETE FROM bullpen_job_text WHERE rowid IN (SELECT value FROM json_each(:listed))")


class Words(NamedTuple):
    """What a job's words are to have."""

    begun: tuple[str, ...]
    """Each of these, or a word that begins so."""
    whole: tuple[str, ...]
    """Each of these."""
    is_long: bool
    """Whether one is longer than what beginnings are indexed."""


def with_words(database: Database, query: Select[Any], words: Words) -> Select[Any]:
    """The query of jobs narrowed to those that have these words.

    On SQLite, ordered by `key_of`, the newest first, it ends as soon as it has found enough.
    """
    if database.is_postgres:
        texts = table("bullpen_job_text", column("key"), column("words"))
        each = [f"'{word}':*" for word in words.begun] + [f"'{word}'" for word in words.whole]
        all_of = func.to_tsquery("simple", " & ".join(each))
        return query.join(texts, texts.c.key == job.c.key).where(texts.c.words.op("@@")(all_of))
    # The sum keeps SQLite from asking for the words of each job, in place of the jobs of the words.
    return query.join(_TEXTS, job.c.key == _TEXTS.c.rowid + 0).where(_matches(words.begun, words.whole))


def key_of(database: Database) -> ColumnElement[int]:
    """The key of a job that has the words, as their index has it: in another order all would be found first."""
    return job.c.key if database.is_postgres else _TEXTS.c.rowid


def among_newest(query: Select[Any], words: Words, before_key: int | None) -> Select[Any]:
    """SQLite: the same among the newest jobs whose words begin alike, as far as beginnings are indexed.

    For a longer word the index would gather all that have it first, frequent or not.
    """
    newest = select(_TEXTS.c.rowid.label("key"), _TEXTS.c.words)
    newest = newest.where(_matches([word[:LONGEST_BEGINNING] for word in words.begun], words.whole))
    if before_key is not None:
        newest = newest.where(_TEXTS.c.rowid < before_key)
    among = newest.order_by(_TEXTS.c.rowid.desc()).limit(_NEWEST).subquery()
    query = query.join(among, job.c.key == among.c.key + 0)
    long = [word for word in words.begun if len(word) > LONGEST_BEGINNING]
    return query.where(*[_has(among.c.words, word) for word in long]).order_by(among.c.key.desc())


def among_few(query: Select[Any], words: Words, queues: Sequence[str], before_key: int | None) -> Select[Any]:
    """SQLite: the same by reading all jobs of the query in these queues."""
    query = query.join(_TEXTS, _TEXTS.c.rowid == job.c.key).where(job.c.queue.in_(queues))
    query = query.where(*[_has(_TEXTS.c.words, word) for word in words.begun])
    if before_key is not None:
        query = query.where(job.c.key + 0 < before_key)
    # The sums keep SQLite from going down all jobs by their keys.
    return query.order_by((job.c.key + 0).desc())


def _matches(begun: Sequence[str], whole: Sequence[str]) -> ColumnElement[bool]:
    each = [f'"{word}"*' for word in begun] + [f'"{word}"' for word in whole]
    return literal_column("bullpen_job_text", Boolean).op("MATCH", return_type=Boolean())(literal(" ".join(each)))


def _has(words: ColumnElement[str], begun: str) -> ColumnElement[bool]:
    return func.instr(literal(" ") + words, f" {begun}") > 0
