"""Several statements of a transaction in one round trip, where a step would wait for each.

A chain is given parts, which are verbs of the journal, the ledger and the log: links that are run in order, each only
if the one before gave a row, and what to do if one does not. On PostgreSQL the links of many parts are one statement;
on SQLite, which has no round trips to save, they are run in turn. The outcome is the same: up to a link that gives
nothing all has been done, from it on nothing has.

A chain that is all of its transaction needs no other round trip on PostgreSQL, to begin or to commit: its statement is
a transaction of its own, and undoes itself if a link gives nothing. Then all is done again, in a transaction that
has begun.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.records import postgres
from bullpen.records.database import Database
from bullpen.records.prepared import Followed, Joined

T = TypeVar("T")


class Link(NamedTuple):
    """A statement with its values."""

    statement: Followed
    changes: str
    """The row that it is about."""
    values: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """A verb: all of its links, or what is done otherwise."""

    links: Sequence[Link]
    otherwise: Callable[[int], Awaitable[T]]
    """Ends the verb when this link, by its number, gave nothing: those before it are done. Or raises."""
    then: Callable[[], Awaitable[object]] | None = None
    """Ends the verb when all of them are done, with statements of its own: those see what the links have waited for."""


class _Statements:
    """Those of the shapes that chains had so far."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[tuple[bool, tuple[Followed, ...]], Joined] = {}
        self.undone = postgres.undone(database.engine.sync_engine)

    def of(self, links: Sequence[Link], *, whole: bool = False) -> Joined:
        shape = tuple([link.statement for link in links])
        if (found := self._known.get((whole, shape))) is None:
            found = self._known[whole, shape] = Joined(self._database, shape, whole=whole)
        return found


class Chain:
    """Parts on one transaction, which are done when it is run."""

    def __init__(self, connection: AsyncConnection, database: Database) -> None:
        self._connection = connection
        self._statements = database.own(_Statements) if database.is_postgres else None
        self._parts: list[Part[Any]] = []

    def add(self, part: Part[Any]) -> None:
        self._parts.append(part)

    async def run(self) -> None:
        """All that was added, in order; what a part raises otherwise."""
        if self._statements is None:
            while self._parts:
                await self._run_first()
            return
        await postgres.begin(self._connection)
        while self._parts:
            await self._run_together(self._statements)

    async def run_last(self) -> bool:
        """The same where nothing comes after it in its transaction. Whether nothing had to be done twice for that."""
        if self._statements is None or not postgres.waits(self._connection) or not self._is_one():
            await self.run()
            return True
        if await self._run_at_once(self._statements):
            return True
        await self.run()
        return False

    async def _run_first(self) -> None:
        part = self._parts.pop(0)
        for n, link in enumerate(part.links):
            if await link.statement.fetch(self._connection, link.values, link.rows) is None:
                await part.otherwise(n)
                return
        if part.then is not None:
            await part.then()

    async def _run_together(self, statements: _Statements) -> None:
        """As many as one statement may have, or up to the first that is done otherwise."""
        parts = self._together()
        links = [link for part in parts for link in part.links]
        found = await statements.of(links).fetch(self._connection, [(link.values, link.rows) for link in links])
        for done, part in enumerate(parts, 1):
            mine, found = found[: len(part.links)], found[len(part.links) :]
            if None in mine:
                del self._parts[:done]
                await part.otherwise(mine.index(None))
                return
        del self._parts[: len(parts)]
        if parts[-1].then is not None:
            await parts[-1].then()

    def _is_one(self) -> bool:
        """Whether one statement may have all of it, and nothing comes after."""
        return len(self._together()) == len(self._parts) > 0 and self._parts[-1].then is None

    async def _run_at_once(self, statements: _Statements) -> bool:
        """As a transaction of its own; whether that came to be."""
        links = [link for part in self._parts for link in part.links]
        whole = statements.of(links, whole=True)
        try:
            await whole.fetch(self._connection, [(link.values, link.rows) for link in links])
        except statements.undone:
            return False
        self._parts.clear()
        return True

    def _together(self) -> list[Part[Any]]:
        """Up to one with something to do after it, and those that change no row twice.

        Of two changes of a row in one statement PostgreSQL makes only one.
        """
        changed: set[str] = set()
        parts: list[Part[Any]] = []
        for part in self._parts:
            changes = {link.changes for link in part.links}
            if changed & changes:
                break
            changed |= changes
            parts.append(part)
            if part.then is not None:
                break
        return parts


async def run_alone(connection: AsyncConnection, database: Database, part: Part[T]) -> T | None:
    """A verb that nothing else is done with; what came of it otherwise, if it did."""
    found: list[T] = []

    async def otherwise(n: int) -> None:
        found.append(await part.otherwise(n))

    chain = Chain(connection, database)
    chain.add(Part(part.links, otherwise, part.then))
    await chain.run()
    return found[0] if found else None
