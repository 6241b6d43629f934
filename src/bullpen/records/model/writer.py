"""Writing to the read model: rows, words, tags, counts and minutes, within the caller's transaction."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import bindparam, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.job.events import Event
from bullpen.job.record import JobRecord
from bullpen.records.database import Database
from bullpen.records.model.minutes import MinuteKey, Since, Tally, tally
from bullpen.records.model.rows import Values, clean, search_words, values_of
from bullpen.records.model.sql import drop_words, insert_for, put_words
from bullpen.records.tables.model import job as job_table
from bullpen.records.tables.model import job_tag, minute
from bullpen.records.tables.model import tally as tally_table

_COMPARED = [column for column in job_table.c if column.name != "queue"]
_PARTS = ("added", "started", "completed", "failed", "retried", "wait", "processing")
_SEARCHED = ("name", "tags", "error", "error_type", "fields")
_AT_ONCE = 500

Kind = tuple[str, str]
"""A state and a tenant, of one queue."""


class ModelWriter:
    """Knows which number comes next; there is one writer at a time."""

    def __init__(self, database: Database, fields: Sequence[str]) -> None:
        self._database = database
        self._fields = tuple(fields)
        self._last_key = 0

    async def begin(self) -> None:
        """After the lease was taken: another may have written before."""
        async with self._database.reading() as connection:
            self._last_key = (
                await connection.execute(select(func.coalesce(func.max(job_table.c.key), 0)))
            ).scalar_one()

    async def apply(
        self,
        connection: AsyncConnection,
        queue: str,
        looked: Mapping[str, JobRecord | None],
        *,
        scan: int,
        events: Sequence[Event] = (),
    ) -> None:
        """Let the rows be as these jobs are; None is one that is gone."""
        old = await self._rows(connection, queue, looked)
        since = self._since(looked, old)
        minutes = tally(events, since)
        changes: Counter[Kind] = Counter()
        new, changed, reworded, gone = [], [], [], []
        for job_id, record in looked.items():
            before = old.get(clean(job_id, 300))
            if record is None:
                if before is not None:
                    gone.append(before)
                    changes[_kind(before)] -= 1
                continue
            values = values_of(record, self._fields) | {"scan": scan, "ready_ms": since[job_id].ready_ms}
            changes[_kind(values)] += 1
            if before is None:
                self._last_key += 1
                new.append(values | {"key": self._last_key})
                continue
            changes[_kind(before)] -= 1
            values["key"] = before["key"]
            if any(before[name] != values[name] for name in _SEARCHED):
                reworded.append(values)
            if any(before[name] != value for name, value in values.items() if name != "queue"):
                changed.append(values)
        await self._write(connection, new, changed, reworded, gone)
        await self._count(connection, queue, changes)
        await self._add_minutes(connection, queue, minutes)

    async def drop(self, connection: AsyncConnection, queue: str, state: str, *, before_ms: int | None) -> None:
        """Drop what the store no longer has: of a finished state all that finished before this; None: all."""
        query = select(job_table.c.key, job_table.c.state, job_table.c.tenant)
        query = query.where((job_table.c.queue == queue) & (job_table.c.state == state))
        if before_ms is not None:
            query = query.where(job_table.c.finished_ms < before_ms)
        while gone := [dict(row._mapping) for row in await connection.execute(query.limit(_AT_ONCE))]:  # noqa: SLF001 - its public name
            await self._write(connection, [], [], [], gone)
            await self._count(connection, queue, Counter({kind: -n for kind, n in Counter(map(_kind, gone)).items()}))

    # ── parts ────────────────────────────────────────────────────────────────────────────

    async def _rows(self, connection: AsyncConnection, queue: str, ids: Iterable[str]) -> dict[str, Values]:
        wanted = [clean(job_id, 300) for job_id in ids]
        found: dict[str, Values] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            query = select(*_COMPARED).where(job_table.c.queue == queue)
            rows = await connection.execute(query.where(job_table.c.id.in_(wanted[start : start + _AT_ONCE])))
            found |= {row.id: dict(row._mapping) for row in rows}  # noqa: SLF001 - its public name
        return found

    def _since(self, looked: Mapping[str, JobRecord | None], old: Mapping[str, Values]) -> dict[str, Since]:
        known = {}
        for job_id, record in looked.items():
            before = old.get(clean(job_id, 300))
            if before is not None:
                known[job_id] = Since(before["ready_ms"], before["started_ms"])
            else:
                known[job_id] = Since(None if record is None else record.added_ms)
        return known

    async def _write(
        self,
        connection: AsyncConnection,
        new: list[Values],
        changed: list[Values],
        reworded: list[Values],
        gone: list[Values],
    ) -> None:
        if new:
            await connection.execute(insert(job_table), new)
        if changed:
            columns: dict[str, Any] = {
                name: bindparam(f"new_{name}") for name in changed[0] if name not in {"key", "queue", "id"}
            }
            change = update(job_table).where(job_table.c.key == bindparam("old_key")).values(columns)
            values = [
                {f"new_{name}": values[name] for name in columns} | {"old_key": values["key"]} for values in changed
            ]
            await connection.execute(change, values)
        dropped = [values["key"] for values in (*reworded, *gone)]
        if dropped:
            await connection.execute(drop_words(self._database), {"keys": dropped})
            await connection.execute(delete(job_tag).where(job_tag.c.key.in_(dropped)))
        if gone:
            await connection.execute(delete(job_table).where(job_table.c.key.in_([values["key"] for values in gone])))
        worded = [{"key": values["key"], "words": search_words(values)} for values in (*new, *reworded)]
        if worded:
            await connection.execute(put_words(self._database), worded)
        tags = [{"key": values["key"], "tag": tag} for values in (*new, *reworded) for tag in values["tags"]]
        if tags:
            await connection.execute(insert(job_tag), tags)

    async def _count(self, connection: AsyncConnection, queue: str, changes: Counter[Kind]) -> None:
        values = [
            {"queue": queue, "state": state, "tenant": tenant, "jobs": jobs}
            for (state, tenant), jobs in changes.items()
            if jobs
        ]
        if values:
            new = insert_for(self._database, tally_table)
            total = {"jobs": tally_table.c.jobs + new.excluded.jobs}
            await connection.execute(
                new.on_conflict_do_update(index_elements=[*tally_table.primary_key], set_=total), values
            )

    async def _add_minutes(self, connection: AsyncConnection, queue: str, minutes: Mapping[MinuteKey, Tally]) -> None:
        if not minutes:
            return
        times = {key.minute_ms for key in minutes}
        query = select(minute).where((minute.c.queue == queue) & minute.c.minute_ms.in_(times))
        for row in await connection.execute(query):
            known = minutes.get(MinuteKey(row.tenant, row.minute_ms))
            if known is not None:
                known.include(Tally(*(getattr(row, part) for part in _PARTS)))
        values: list[dict[str, Any]] = [
            {"queue": queue, **msgspec.structs.asdict(key), **msgspec.structs.asdict(sums)}
            for key, sums in minutes.items()
        ]
        new = insert_for(self._database, minute)
        sums = {part: new.excluded[part] for part in _PARTS}
        await connection.execute(new.on_conflict_do_update(index_elements=[*minute.primary_key], set_=sums), values)


def _kind(values: Mapping[str, Any]) -> Kind:
    return values["state"], values["tenant"] or ""
