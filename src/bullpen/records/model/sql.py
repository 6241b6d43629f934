"""What the two databases say differently."""

import functools
import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, String, Table, any_, bindparam, func, select
from sqlalchemy.dialects import postgresql, sqlite

from bullpen.records.database import Database


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
