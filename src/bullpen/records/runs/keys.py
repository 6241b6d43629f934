"""The keys under which runs were asked for: written with the run, so that neither is there without the other.

A key is its asker's own, within a tenant, and stands for its run as long as that is kept.
"""

import msgspec
from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.errors import BadOption, IdempotencyConflict
from bullpen.records.database import Database
from bullpen.records.tables.runs import run_key
from bullpen.records.tables.runs import task as task_table

_MAX_KEY = 200


class RunKey(msgspec.Struct, frozen=True, kw_only=True):
    tenant: str
    created_by: str
    key: str
    request: str
    """A digest of what is asked for."""

    def __post_init__(self) -> None:
        if not 0 < len(self.key) <= _MAX_KEY or "\0" in self.key:
            raise BadOption(f"idempotency_key: a text of 1 to {_MAX_KEY} characters")


class Keyed(msgspec.Struct, frozen=True, kw_only=True):
    """The run that a key stands for."""

    run: str
    task: str
    """Its first."""
    state: str


async def keep(connection: AsyncConnection, key: RunKey, run_id: str) -> None:
    """IntegrityError if the key stands for another run, also for one that is committed only now."""
    await connection.execute(insert(run_key), msgspec.structs.asdict(key) | {"run": run_id})


async def find(database: Database, key: RunKey) -> Keyed | None:
    """IdempotencyConflict if something else was asked for under this key."""
    this = [run_key.c[name] == getattr(key, name) for name in ("tenant", "created_by", "key")]
    first = (task_table.c.run == run_key.c.run) & task_table.c.parent.is_(None)
    columns = (run_key.c.run, run_key.c.request, task_table.c.id, task_table.c.state)
    query = select(*columns).join(task_table, first).where(*this)
    async with database.reading(brief=True) as connection:
        row = (await connection.execute(query)).one_or_none()
    if row is None:
        return None
    if row.request != key.request:
        raise IdempotencyConflict("this idempotency key was used for another request")
    return Keyed(run=row.run, task=row.id, state=row.state)
