"""What the two databases say differently."""

from typing import Any

from sqlalchemy import Table, bindparam, text
from sqlalchemy.dialects import postgresql, sqlite

from bullpen.records.database import Database


def insert_for(database: Database, table: Table) -> Any:
    """An insert that may say what to do on a conflict."""
    return postgresql.insert(table) if database.is_postgres else sqlite.insert(table)


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
    """Drop the words of the jobs with these `keys`."""
    if database.is_postgres:
        dropping = text("DELETE FROM bullpen_job_text WHERE key IN :keys")
    else:
        dropping = text("DELETE FROM bullpen_job_text WHERE rowid IN :keys")
    return dropping.bindparams(bindparam("keys", expanding=True))


def keys_with_words(database: Database, words: list[str]) -> Any:
    """The keys of the jobs that have all these words, each also as the beginning of a longer one."""
    if database.is_postgres:
        query = " & ".join(f"'{word}':*" for word in words)
        matching = text("SELECT key FROM bullpen_job_text WHERE words @@ to_tsquery('simple', :query)")
    else:
        query = " ".join(f'"{word}"*' for word in words)
        matching = text("SELECT rowid AS key FROM bullpen_job_text WHERE bullpen_job_text MATCH :query")
    return matching.bindparams(query=query)
