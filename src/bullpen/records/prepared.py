"""Statements that are run many times a second: made once, and given to the driver as they are.

What SQLAlchemy does around each run of a statement takes longer than SQLite, or PostgreSQL with its round trip, needs
to answer a small one. So it puts the statement together, and is passed by when it is run.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from sqlalchemy import (
    CTE,
    BindParameter,
    ColumnElement,
    FromClause,
    Table,
    bindparam,
    column,
    exists,
    func,
    literal_column,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.records import postgres
from bullpen.records.database import Database
from bullpen.records.model.sql import insert_for

_NONE: Mapping[str, str] = MappingProxyType({})
NEW = "new_"
"""Before the name of a parameter, not of its value: SQLAlchemy keeps the columns' own names in an update for itself."""


class Prepared:
    """One statement. Its values are named as its parameters are; they come and go as they are stored."""

    def __init__(
        self,
        database: Database,
        statement: Any,
        *,
        columns: Sequence[str] | None = None,
        names: Mapping[str, str] = _NONE,
    ) -> None:
        """`columns` are those that an insert is given, if it is not all; `names` what values call its parameters."""
        compiled = statement.compile(dialect=database.engine.dialect, column_keys=columns)
        self._text = str(compiled)
        self._names = [names.get(name, name.removeprefix(NEW)) for name in compiled.positiontup]

    async def fetch(self, connection: AsyncConnection, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        """The rows that it gives, each with its columns in order; none of a statement that gives none."""
        given = self._given(values)
        if (driver := _ready(connection)) is not None:
            return await driver.fetch(self._text, *given)  # type: ignore[no-any-return]
        found = await connection.exec_driver_sql(self._text, given)
        return found.all() if found.returns_rows else ()

    async def run(self, connection: AsyncConnection, rows: Iterable[Mapping[str, Any]]) -> None:
        """With each of these rows; without any it is not run."""
        given = [self._given(row) for row in rows]
        if not given:
            return
        if (driver := _ready(connection)) is not None:
            await driver.executemany(self._text, given)
        else:
            await connection.exec_driver_sql(self._text, given)

    def _given(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple([values[name] for name in self._names])


class Making(Protocol):
    """Puts a statement together: with these parameters, and run only where these conditions hold too.

    It gives one row or none; the first column of a row is never null.
    """

    def __call__(self, parameter: "Parameters", *only_if: ColumnElement[bool]) -> Any: ...


class Parameters:
    """The parameters of a statement, which may be one of several in one: others may have the same names."""

    def __init__(self, place: int = 0) -> None:
        self._place = place
        self.names: dict[str, str] = {}
        """Those that a statement is given one by one, as the database and as their values call them."""
        self.lists: dict[str, str] = {}
        """Those that are a column of its rows."""

    def __call__(self, name: str, type_: Any = None) -> BindParameter[Any]:
        self.names[full := f"s{self._place}_{name}"] = name
        return bindparam(full, type_=type_)

    def all_of(self, name: str, type_: Any) -> BindParameter[Any]:
        self.lists[full := f"s{self._place}_all_{name}"] = name
        return bindparam(full, type_=ARRAY(type_))


class Followed:
    """A statement that gives a row, and rows that are put down with it: on PostgreSQL in one round trip.

    `counted` names columns of these rows whose values count from one of the row that is given.
    """

    def __init__(
        self,
        database: Database,
        first: Making,
        rows: Table | None = None,
        *,
        counted: Mapping[str, str] = _NONE,
        replaced: Sequence[str] = (),
    ) -> None:
        """`replaced`: what changes in a row that is there already. Without any there must be none."""
        self._making = first
        self._table = rows
        self._counted = counted
        self._columns = [] if rows is None else [one.name for one in rows.c if one is not rows.autoincrement_column]
        self._new = None if rows is None else insert_for(database, rows).inline()
        if self._new is not None and rows is not None and replaced:
            changed = {name: self._new.excluded[name] for name in replaced}
            self._new = self._new.on_conflict_do_update(index_elements=[*rows.primary_key], set_=changed)
        # SQLite changes nothing within a WITH, and has no round trips to save.
        self._joined = Joined(database, [self]) if database.is_postgres else None
        parameters = Parameters()
        made = first(parameters)
        self._first = Prepared(database, made, names=parameters.names)
        self._found = [one.name for one in made.exported_columns]
        self._rows = None if self._new is None else Prepared(database, self._new, columns=self._columns)

    async def fetch(
        self, connection: AsyncConnection, values: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] = ()
    ) -> Sequence[Any] | None:
        """The row that is given; None if there is none, and then nothing is put down."""
        if self._joined is not None:
            return (await self._joined.fetch(connection, [(values, rows)]))[0]
        if not (found := await self._first.fetch(connection, values)):
            return None
        if self._rows is not None:
            base = dict(zip(self._found, found[0], strict=True))
            sums = self._counted.items()
            counted = [{**row, **{name: row[name] + base[of] for name, of in sums}} for row in rows]
            await self._rows.run(connection, counted)
        return found[0]

    def ctes(self, parameters: Parameters, place: int, *only_if: ColumnElement[bool]) -> list[CTE]:
        """The row that is given, and what follows from it, as parts of a larger statement."""
        given = self._making(parameters, *only_if).cte(f"given{place}")
        if self._new is None or self._table is None:
            return [given]
        # Without a length: to cast to one cuts what is longer, where a column refuses it.
        types = {name: type(self._table.c[name].type)() for name in self._columns}
        lists = [parameters.all_of(name, kind) for name, kind in types.items()]
        columns = [column(name, kind) for name, kind in types.items()]
        row = func.unnest(*lists).table_valued(*columns, with_ordinality="nth").render_derived(name=f"row{place}")
        values = [
            row.c[name] + given.c[self._counted[name]] if name in self._counted else row.c[name]
            for name in self._columns
        ]
        each = select(*values).select_from(given.join(row, true())).order_by(row.c.nth)
        return [given, self._new.from_select(self._columns, each).cte(f"followed{place}")]


class Joined:
    """Several of them as one statement of PostgreSQL: each is run only if all before it gave a row.

    `whole`: where one gives none, the statement undoes itself by an error, `postgres.undone`.
    """

    def __init__(self, database: Database, all_of_them: Sequence[Followed], *, whole: bool = False) -> None:
        self._parameters = [Parameters(place) for place in range(len(all_of_them))]
        given: list[CTE] = []
        followed: list[CTE] = []
        for place, (one, parameters) in enumerate(zip(all_of_them, self._parameters, strict=True)):
            # The one before has the same condition in turn: so they also come, and lock, one after the other.
            only_if = [exists(select(literal_column("1")).select_from(before)) for before in given[-1:]]
            mine, *rest = one.ctes(parameters, place, *only_if)
            given.append(mine)
            followed += rest
        # All of their rows side by side, in a row that is there even if none of them is.
        beside: FromClause = select(literal_column("1").label("one")).subquery("one")
        for mine in given:
            beside = beside.outerjoin(mine, true())
        answer = select(*(each for mine in given for each in mine.c)).select_from(beside)
        if whole:
            rows_of_last = select(func.count()).select_from(given[-1]).scalar_subquery()
            answer = answer.add_columns(literal_column("1") // rows_of_last)
        self._widths = [len(mine.c) for mine in given]
        self._prepared = Prepared(database, answer.add_cte(*followed))

    async def fetch(
        self, connection: AsyncConnection, given: Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]]
    ) -> list[Sequence[Any] | None]:
        """The row of each, for the values and rows of each; None from the first on that gave none."""
        values: dict[str, Any] = {}
        for parameters, (mine, rows) in zip(self._parameters, given, strict=True):
            values |= {full: mine[name] for full, name in parameters.names.items()}
            values |= {full: [row[name] for row in rows] for full, name in parameters.lists.items()}
        (found,) = await self._prepared.fetch(connection, values)
        answers: list[Sequence[Any] | None] = []
        start = 0
        for width in self._widths:
            answers.append(None if found[start] is None else found[start : start + width])
            start += width
        return answers


def _ready(connection: AsyncConnection) -> Any:
    """The driver's own connection, if it takes statements: SQLAlchemy begins a transaction only with the first one."""
    assert connection.sync_connection is not None
    driver = connection.sync_connection.connection.driver_connection
    assert driver is not None
    return driver if driver.is_in_transaction() or postgres.waits(connection) else None
