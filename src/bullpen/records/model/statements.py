"""The statements of the read model that are run with many rows, or many times a second.

Each is made once, and takes its values as they are stored: what SQLAlchemy would do for each row of it takes longer
than the database does.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Executable, Text, bindparam, cast, delete, insert, literal_column, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.records.database import Database
from bullpen.records.model.rows import Values
from bullpen.records.model.sql import among, as_list, insert_for
from bullpen.records.model.texts import JOB_TEXTS
from bullpen.records.prepared import NEW, Prepared
from bullpen.records.tables.model import job, job_tag, minute, reason, tally

OWN = ("name", "tenant", "workspace", "tags", "fields", "added_ms")
"""What seldom changes in a job's life. A change that does not name it leaves the indexes alone that begin with it."""
_NAMES = [column.name for column in job.c]
_FOUND = [cast(column, Text) if column.name in {"tags", "fields"} else column for column in job.c]
_FIXED = {"key", "queue", "id"}
_COUNTED = ("added", "started", "completed", "failed", "retried", "wait", "processing")


class Statements:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.add = Prepared(database, insert(job))
        self.move = Prepared(database, _change(name for name in _NAMES if name not in {*_FIXED, *OWN}))
        """Change a row except for what is its own."""
        self.change = Prepared(database, _change(name for name in _NAMES if name not in _FIXED))
        self.put_words = Prepared(database, JOB_TEXTS.put(database))
        self.put_tags = Prepared(database, insert(job_tag))
        new = insert_for(database, tally)
        total = {"jobs": tally.c.jobs + new.excluded.jobs}
        new = new.on_conflict_do_update(index_elements=[*tally.primary_key], set_=total)
        self.count = Prepared(database, new)
        new = insert_for(database, reason)
        total = {"jobs": reason.c.jobs + new.excluded.jobs}
        new = new.on_conflict_do_update(index_elements=[*reason.primary_key], set_=total)
        self.count_reasons = Prepared(database, new)
        is_named = [column == bindparam(NEW + column.name) for column in reason.primary_key]
        self.drop_reasons = Prepared(database, delete(reason).where(*is_named, reason.c.jobs <= literal_column("0")))
        """Those that no job has any more."""
        new = insert_for(database, minute)
        sums = {name: new.excluded[name] for name in _COUNTED}
        new = new.on_conflict_do_update(index_elements=[*minute.primary_key], set_=sums)
        self.put_minutes = Prepared(database, new)
        self._drops: list[Executable] = [
            JOB_TEXTS.drop(database),
            delete(job_tag).where(among(database, job_tag.c.key)),
            delete(job).where(among(database, job.c.key)),
        ]
        ids = among(database, job.c.id)
        self._find = select(*_FOUND).where((job.c.queue == bindparam("queue")) & ids)
        is_met = (job.c.queue == bindparam("queue")) & (job.c.scan == bindparam("scan"))
        self._known = select(job.c.id).where(is_met & ids)

    async def find(self, connection: AsyncConnection, queue: str, ids: Sequence[str]) -> dict[str, Values]:
        """The rows of these jobs, as they are stored."""
        asked = {"queue": queue, "listed": as_list(self._database, ids)}
        found = [dict(zip(_NAMES, row, strict=True)) for row in await connection.execute(self._find, asked)]
        return {values["id"]: values for values in found}

    async def known(self, connection: AsyncConnection, queue: str, ids: Sequence[str], scan: int) -> Sequence[str]:
        """Those of the ids that have a row which this scan met."""
        asked = {"queue": queue, "scan": scan, "listed": as_list(self._database, ids)}
        return (await connection.execute(self._known, asked)).scalars().all()

    async def drop(self, connection: AsyncConnection, keys: Sequence[int], *, with_rows: bool) -> None:
        """Drop the words and tags of these jobs, and their rows with them."""
        if keys:
            listed = {"listed": as_list(self._database, keys)}
            for statement in self._drops if with_rows else self._drops[:-1]:
                await connection.execute(statement, listed)


def _change(names: Iterable[str]) -> Executable:
    values: dict[str, Any] = {name: bindparam(NEW + name) for name in names}
    return update(job).where(job.c.key == bindparam(NEW + "key")).values(values)
