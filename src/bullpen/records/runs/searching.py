"""Finding runs by words, the newest first, without reading all that match.

Tenant, workspace and the ends without an answer are words too. Runs that are not over are few among all:
they are read by their state where it is asked for. PostgreSQL knows by itself how many they are.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, exists, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.records.database import Database
from bullpen.records.model.leading import apart
from bullpen.records.model.texts import Words, rows_of
from bullpen.records.model.words import state_word, tenant_word, words_of, workspace_word
from bullpen.records.runs.wording import RUN_TEXTS, WORDED
from bullpen.records.runs.words import FINAL, Run, TaskState
from bullpen.records.tables.runs import run, task

_FEW = 2_000
"""So many runs are read rather than the index of words, in which they may be far down."""
_EVERYWHERE = frozenset({"run", "task"})
"""Words of all ids: beside others they narrow nothing, and would be looked up with all runs that have them."""
_FOUND = [*(run.c[name] for name in Run.__struct_fields__), run.c.number]
_LEADS = ("tenant", "workspace", "state")
ASKS = task.c.question.is_not(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Runs for which all of this is true; what is not given is not asked."""

    tenant: str | None = None
    workspace: str | None = None
    state: TaskState | None = None
    is_asking: bool = False
    """Those only in which a person is to answer; they are suspended."""

    @property
    def states(self) -> set[TaskState]:
        """All of these: of two there is none."""
        asked = {self.state} if self.state is not None else set()
        return asked | {TaskState.SUSPENDED} if self.is_asking else asked

    def narrow(self, query: Select[Any], leads: Collection[str] = _LEADS) -> Select[Any]:
        """The query of runs within this. By the columns that lead, an index may be used; on PostgreSQL all do."""
        asked = [("tenant", self.tenant), ("workspace", self.workspace)]
        for name, value in asked + [("state", state) for state in sorted(self.states)]:
            if value is not None:
                query = query.where((run.c[name] if name in leads else apart(run.c[name])) == value)
        return query.where(exists().where(task.c.run == run.c.id, ASKS)) if self.is_asking else query


async def find(
    database: Database, connection: AsyncConnection, wanted: RunFilter, text: str, limit: int, *, before: int | None
) -> Sequence[Row[Any]]:
    """Those that have all these words, or words that begin so, from a number downwards."""
    words = _words(wanted, text)
    if words is None:
        return ()
    if database.is_postgres:
        return await _find_in_postgres(connection, wanted, words, limit, before)
    if await _are_few(connection, wanted):
        few = wanted.narrow(select(*_FOUND), leads=("tenant", "state")).limit(limit)
        return await rows_of(connection, RUN_TEXTS.among_few(few, words, before))
    return await RUN_TEXTS.walk(connection, wanted.narrow(select(*_FOUND), leads=()), words, limit, before)


async def _find_in_postgres(
    connection: AsyncConnection, wanted: RunFilter, words: Words, limit: int, before: int | None
) -> Sequence[Row[Any]]:
    query = wanted.narrow(select(*_FOUND))
    if wanted.states <= WORDED:
        keys = await RUN_TEXTS.keys(connection, words, limit, before)
        return await rows_of(connection, query.where(run.c.number.in_(keys)).order_by(run.c.number.desc()))
    # The sum keeps it from going down all runs for the few that are not over.
    place: ColumnElement[int] = run.c.number + 0 if wanted.states - FINAL else run.c.number
    query = RUN_TEXTS.with_vectors(query, words).order_by(place.desc()).limit(limit)
    return await rows_of(connection, query if before is None else query.where(place < before))


async def _are_few(connection: AsyncConnection, wanted: RunFilter) -> bool:
    """Whether few runs are in a state that is not final; counted down its index."""
    if not wanted.states - FINAL:
        return False
    within = RunFilter(tenant=wanted.tenant, state=min(wanted.states - FINAL))
    some = within.narrow(select(run.c.id)).limit(_FEW + 1).subquery()
    return (await connection.execute(select(func.count()).select_from(some))).scalar_one() <= _FEW


def _words(wanted: RunFilter, text: str) -> Words | None:
    """What to search for; None for what has no word in it, and is found nowhere."""
    asked = words_of([text])
    if not asked:
        return None
    begun = [word for word in asked if word not in _EVERYWHERE] or asked
    whole = [state_word(state) for state in sorted(wanted.states & WORDED)]
    if wanted.tenant is not None:
        whole.append(tenant_word(wanted.tenant))
    if wanted.workspace is not None:
        whole.append(workspace_word(wanted.workspace))
    return Words(tuple(begun), tuple(whole))
