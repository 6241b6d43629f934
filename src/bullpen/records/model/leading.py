"""SQLite: which of the things that a list is narrowed to leads to its jobs.

one that few jobs have ─▶ its index, and the others are looked at in each of them
a tag ─▶ its index, which alone has the order of the list
anything else ─▶ as SQLite chooses, which takes the longest index and knows nothing of how many jobs it has
"""

from collections.abc import Mapping

from sqlalchemy import Column, ColumnElement, func, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.elements import UnaryExpression
from sqlalchemy.sql.operators import custom_op

from bullpen.records.tables.model import job, job_tag

_TAG = "tag"
LEADS: Mapping[str, Column[str]] = {_TAG: job_tag.c.tag} | {
    name: job.c[name] for name in ("fingerprint", "workspace", "name")
}
"""What has an index of its own, and none together with another."""
_FEW = 10_000
"""So many jobs are looked at rather than those of a queue, a tenant or a state, of which there may be any number."""


async def lead_of(connection: AsyncConnection, given: Mapping[str, str]) -> str | None:
    """Which of these leads; `given` has one or more of LEADS."""
    for name, value in given.items():
        few = select(LEADS[name]).where(LEADS[name] == value).limit(_FEW + 1).subquery()
        if (await connection.execute(select(func.count()).select_from(few))).scalar_one() <= _FEW:
            return name
    return _TAG if _TAG in given else None


def apart(column: Column[str]) -> ColumnElement[str]:
    """The column as no index has it."""
    return UnaryExpression(column, operator=custom_op("+"), type_=column.type)
