"""Writing to the read model: rows, words, tags, counts and minutes, within the caller's transaction."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import msgspec
from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.job.events import Event
from bullpen.job.record import JobRecord
from bullpen.job.state import State
from bullpen.records.database import Database
from bullpen.records.model.folding import ToldJob
from bullpen.records.model.minutes import MinuteKey, Since, Tally, count
from bullpen.records.model.reading import by_minute
from bullpen.records.model.rows import Values, as_json, clean, search_words, tags_of, values_of
from bullpen.records.model.statements import OWN, Statements
from bullpen.records.tables.model import job as job_table
from bullpen.records.tables.model import minute

_PARTS = ("added", "started", "completed", "failed", "retried", "wait", "processing")
_AT_ONCE = 500
_SLICE = 250
"""Rows between two looks at what else there is to do."""
_ANALYZE = text("ANALYZE bullpen_job, bullpen_job_tag, bullpen_job_text")
_FEWEST_TO_ANALYZE = 1_000
_GROWN = 4

_own = itemgetter(*OWN)
_searched = itemgetter("name", "tags", "error", "error_type", "fields")

Kind = tuple[str, str]
"""A state and a tenant, of one queue."""
Reason = tuple[str, str, str]
"""A name, a fingerprint and a tenant, of failed jobs of one queue."""


class _Changes(msgspec.Struct):
    """How many rows more, or fewer, there are of each kind and reason."""

    kinds: Counter[Kind] = msgspec.field(default_factory=Counter)
    reasons: Counter[Reason] = msgspec.field(default_factory=Counter)

    def count(self, values: Mapping[str, Any], by: int) -> None:
        state, tenant = values["state"], values["tenant"] or ""
        self.kinds[state, tenant] += by
        if state == State.FAILED:
            self.reasons[values["name"], values["fingerprint"] or "", tenant] += by


class _Rows(msgspec.Struct):
    """What is to be written of some jobs."""

    new: list[Values] = []
    moved: list[Values] = []
    changed: list[Values] = []
    reworded: list[Values] = []
    gone: list[Values] = []


class ModelWriter:
    """Knows which number comes next; there is one writer at a time."""

    def __init__(self, database: Database, fields: Sequence[str]) -> None:
        self._database = database
        self._fields = tuple(fields)
        self._statements = Statements(database)
        self._last_key = 0
        self._analyze_at_key = 0

    async def begin(self) -> None:
        """After the lease was taken: another may have written before."""
        async with self._database.reading() as connection:
            self._last_key = (
                await connection.execute(select(func.coalesce(func.max(job_table.c.key), 0)))
            ).scalar_one()
        self._analyze_at_key = max(_FEWEST_TO_ANALYZE, _GROWN * self._last_key)

    async def analyze_if_grown(self) -> None:
        """PostgreSQL plans by what it counted, and counts by itself a minute late: until then it is slow."""
        if self._database.is_postgres and self._last_key >= self._analyze_at_key:
            self._analyze_at_key = _GROWN * self._last_key
            async with self._database.writing() as connection:
                await connection.execute(_ANALYZE)

    async def apply(
        self,
        connection: AsyncConnection,
        queue: str,
        looked: Mapping[str, JobRecord | None],
        *,
        told: Mapping[str, ToldJob] = MappingProxyType({}),
        scan: int,
        events: Sequence[Event] = (),
    ) -> None:
        """Let the rows be as these jobs are, or as events told of them; None is one that is gone."""
        happened: dict[str | None, list[Event]] = {}
        for event in events:
            happened.setdefault(event.job_id, []).append(event)
        changes = _Changes()
        minutes: dict[MinuteKey, Tally] = {}
        ids = list({**looked, **told})
        # A slice at a time: a server answers between them, in the same loop.
        for start in range(0, len(ids), _SLICE):
            some = {job_id: clean(job_id, 300) for job_id in ids[start : start + _SLICE]}
            old = await self._statements.find(connection, queue, list(some.values()))
            rows = _Rows()
            for job_id, stored_id in some.items():
                before, what = old.get(stored_id), told.get(job_id)
                record = looked[job_id] if what is None else what.record(queue)
                since = _since(before, record)
                count(happened.get(job_id, ()), since, minutes)
                values = self._values(before, record, what)
                if values is not None:
                    values["scan"], values["ready_ms"] = scan, since.ready_ms
                self._compare(rows, before, values, changes)
            await self._write(connection, rows)
            await asyncio.sleep(0)
        await self._count(connection, queue, changes)
        await self._add_minutes(connection, queue, minutes)

    def _values(self, before: Values | None, record: JobRecord | None, told: ToldJob | None) -> Values | None:
        """What a row is to be after `before`; None for a job that is gone."""
        if record is not None:
            return values_of(record, self._fields)
        if before is None or told is None:
            return None
        return {**before, **told.changes(before)}

    def _compare(self, rows: _Rows, before: Values | None, values: Values | None, changes: _Changes) -> None:
        """Note what is to be written, and how the counts change with it."""
        if before is not None:
            changes.count(before, -1)
        if values is not None:
            changes.count(values, 1)
        if before is None:
            if values is not None:
                self._last_key += 1
                values["key"] = self._last_key
                rows.new.append(values)
        elif values is None:
            rows.gone.append(before)
        else:
            values["key"] = before["key"]
            if values != before:
                (rows.moved if _own(before) == _own(values) else rows.changed).append(values)
                if _has_other_words(before, values):
                    rows.reworded.append(values)

    async def drop(self, connection: AsyncConnection, queue: str, state: str, *, before_ms: int | None) -> bool:
        """Drop some that the store no longer has; whether there are more, for another transaction.

        Of a finished state those that finished before this; None: any.
        """
        query = select(*[job_table.c[name] for name in ("key", "state", "tenant", "name", "fingerprint")])
        query = query.where((job_table.c.queue == queue) & (job_table.c.state == state))
        if before_ms is not None:
            query = query.where(job_table.c.finished_ms < before_ms)
        gone = (await connection.execute(query.limit(_AT_ONCE))).all()
        await self._statements.drop(connection, [row.key for row in gone], with_rows=True)
        dropped = _Changes()
        for row in gone:
            dropped.count(row._asdict(), -1)
        await self._count(connection, queue, dropped)
        return len(gone) == _AT_ONCE

    async def known(self, queue: str, ids: Sequence[str], *, scan: int) -> set[str]:
        """Those of the ids that have a row, met since this scan began: an older one may tell of another job by now."""
        if not ids:
            return set()
        by_stored = {clean(job_id, 300): job_id for job_id in ids}
        stored = list(by_stored)
        known: set[str] = set()
        async with self._database.reading() as connection:
            for start in range(0, len(stored), _AT_ONCE):
                found = await self._statements.known(connection, queue, stored[start : start + _AT_ONCE], scan)
                known |= {by_stored[job_id] for job_id in found}
        return known

    # ── parts ────────────────────────────────────────────────────────────────────────────

    async def _write(self, connection: AsyncConnection, rows: _Rows) -> None:
        statements = self._statements
        await statements.add.run(connection, rows.new)
        await statements.move.run(connection, rows.moved)
        await statements.change.run(connection, rows.changed)
        await statements.drop(connection, [values["key"] for values in rows.reworded], with_rows=False)
        await statements.drop(connection, [values["key"] for values in rows.gone], with_rows=True)
        worded = [*rows.new, *rows.reworded]
        words = [{"key": values["key"], "words": search_words(values)} for values in worded]
        await statements.put_words.run(connection, words)
        tags = [{"key": values["key"], "tag": tag} for values in worded for tag in tags_of(values)]
        await statements.put_tags.run(connection, tags)

    async def _count(self, connection: AsyncConnection, queue: str, changes: _Changes) -> None:
        counted = [
            {"queue": queue, "state": state, "tenant": tenant, "jobs": jobs}
            for (state, tenant), jobs in changes.kinds.items()
            if jobs
        ]
        await self._statements.count.run(connection, counted)
        reasons: list[Values] = [
            {"queue": queue, "name": name, "fingerprint": fingerprint, "tenant": tenant, "jobs": jobs}
            for (name, fingerprint, tenant), jobs in changes.reasons.items()
            if jobs
        ]
        await self._statements.count_reasons.run(connection, reasons)
        await self._statements.drop_reasons.run(connection, [one for one in reasons if one["jobs"] < 0])

    async def _add_minutes(self, connection: AsyncConnection, queue: str, minutes: Mapping[MinuteKey, Tally]) -> None:
        if not minutes:
            return
        times = {key.minute_ms for key in minutes}
        query = select(minute).where((by_minute() == queue) & minute.c.minute_ms.in_(times))
        for row in await connection.execute(query):
            known = minutes.get(MinuteKey(row.tenant, row.minute_ms))
            if known is not None:
                known.include(Tally(*(getattr(row, part) for part in _PARTS)))
        values: list[dict[str, Any]] = [
            {"queue": queue, **key._asdict(), **msgspec.structs.asdict(sums)}
            | {"wait": as_json(sums.wait), "processing": as_json(sums.processing)}
            for key, sums in minutes.items()
        ]
        await self._statements.put_minutes.run(connection, values)


def _since(before: Values | None, record: JobRecord | None) -> Since:
    if before is not None:
        return Since(before["ready_ms"], before["started_ms"])
    return Since(None if record is None else record.added_ms)


def _has_other_words(before: Values, values: Values) -> bool:
    is_same_end = (before["state"] == State.FAILED) == (values["state"] == State.FAILED)
    return not is_same_end or _searched(before) != _searched(values)
