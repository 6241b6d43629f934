"""Reading the read model: lists, search, counts, rates, failures, and how far behind it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Row, Select, func, select, tuple_

from bullpen.errors import BadOption
from bullpen.job.state import State
from bullpen.records.database import Database
from bullpen.records.model.minutes import BOUNDS_MS
from bullpen.records.model.sql import keys_with_words
from bullpen.records.model.words import words_of
from bullpen.records.tables.model import job, job_tag, minute, stream, tally

_LIMIT = 500
_SHOWN = [column for column in job.c if column.name not in {"ready_ms", "scan"}]


class ModelJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as the read model knows it; the job itself is in the queue's store."""

    key: int
    queue: str
    id: str
    state: State
    name: str
    tenant: str | None
    workspace: str | None
    tags: tuple[str, ...]
    fields: dict[str, Any]
    """The data's fields that the server was told to keep."""
    priority: int
    attempts_made: int
    error: str | None
    error_kind: str | None
    error_type: str | None
    fingerprint: str | None
    added_ms: int
    run_at_ms: int | None
    started_ms: int | None
    finished_ms: int | None


class ModelPage(msgspec.Struct, frozen=True):
    jobs: tuple[ModelJob, ...]
    next_cursor: str | None
    """Give it back for the next page; None at the end."""


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that failed for the same reason."""

    queue: str
    name: str
    fingerprint: str
    count: int
    newest_ms: int
    oldest_ms: int
    sample_key: int
    error: str
    """Of the one that was seen last."""


class Minute(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in a minute; the histograms have one count more than `BOUNDS_MS`."""

    minute_ms: int
    added: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    wait: tuple[int, ...] = (0,) * (len(BOUNDS_MS) + 1)
    processing: tuple[int, ...] = (0,) * (len(BOUNDS_MS) + 1)


class Lag(msgspec.Struct, frozen=True):
    """How old what the read model says of a queue may be; None if it was never complete."""

    behind_ms: int | None
    is_scanning: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Jobs for which all of this is true; what is not given is not asked."""

    queue: str | None = None
    states: Sequence[State | str] = ()
    tenant: str | None = None
    workspace: str | None = None
    name: str | None = None
    tag: str | None = None
    fingerprint: str | None = None
    error_kind: str | None = None
    since_ms: int | None = None
    """Added at this wall time or later."""
    until_ms: int | None = None
    text: str | None = None
    """All these words, or the beginnings of them, in id, name, tags, error or the fields that are kept."""

    def __post_init__(self) -> None:
        for state in self.states:
            if state not in tuple(State):
                raise BadOption(f"states: {state!r} is none; use {', '.join(State)}")


_ALL = JobFilter()


class ReadModel:
    """What the read model knows. A tenant that is given is all that is seen."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, wanted: JobFilter = _ALL, *, limit: int = 50, cursor: str | None = None) -> ModelPage:
        """The newest first, by when they were added. Pages neither repeat nor skip a job, whatever changes."""
        if not 1 <= limit <= _LIMIT:
            raise BadOption(f"limit: from 1 to {_LIMIT}, not {limit}")
        query = self._where(select(*_SHOWN), wanted)
        if cursor is not None:
            query = query.where(tuple_(job.c.added_ms, job.c.key) < tuple_(*_place(cursor)))
        query = query.order_by(job.c.added_ms.desc(), job.c.key.desc()).limit(limit + 1)
        async with self._database.reading() as connection:
            found = [_read(row) for row in await connection.execute(query)]
        last = found[limit - 1] if len(found) > limit else None
        return ModelPage(tuple(found[:limit]), None if last is None else f"{last.added_ms}.{last.key}")

    async def search(self, text: str, *, tenant: str | None = None, limit: int = 50) -> ModelPage:
        """`list` by words alone."""
        return await self.list(JobFilter(text=text, tenant=tenant), limit=limit)

    async def counts(self, *, queue: str | None = None, tenant: str | None = None) -> dict[str, dict[State, int]]:
        """How many jobs of each queue are in each state; in all, or of a tenant."""
        sums = select(tally.c.queue, tally.c.state, func.sum(tally.c.jobs)).group_by(tally.c.queue, tally.c.state)
        query = _narrowed(sums, tally, queue, tenant)
        counted: dict[str, dict[State, int]] = {}
        async with self._database.reading() as connection:
            for row in await connection.execute(query):
                if row[2]:
                    counted.setdefault(row[0], {})[State(row[1])] = int(row[2])
        return counted

    async def counts_by_tenant(self, queue: str) -> dict[str, dict[State, int]]:
        """The same of one queue, for each tenant; what has none stands under the empty name."""
        query = select(tally.c.tenant, tally.c.state, tally.c.jobs).where((tally.c.queue == queue) & (tally.c.jobs > 0))
        counted: dict[str, dict[State, int]] = {}
        async with self._database.reading() as connection:
            for name, state, jobs in await connection.execute(query):
                counted.setdefault(name, {})[State(state)] = int(jobs)
        return counted

    async def rates(
        self, *, since_ms: int, until_ms: int, queue: str | None = None, tenant: str | None = None
    ) -> Sequence[Minute]:
        """What happened in each minute from one time to another; minutes in which nothing did are left out."""
        query = select(minute).where((minute.c.minute_ms >= since_ms) & (minute.c.minute_ms < until_ms))
        query = _narrowed(query, minute, queue, tenant).order_by(minute.c.minute_ms)
        minutes: dict[int, Minute] = {}
        async with self._database.reading() as connection:
            for row in await connection.execute(query):
                known = minutes.get(row.minute_ms, Minute(minute_ms=row.minute_ms))
                minutes[row.minute_ms] = _joined(known, row)
        return tuple(minutes.values())

    async def failures(self, wanted: JobFilter = _ALL, *, limit: int = 100) -> Sequence[FailureGroup]:
        """The reasons for which jobs failed, the most frequent first."""
        count, newest_ms = func.count().label("count"), func.max(job.c.finished_ms).label("newest_ms")
        grouped = (job.c.queue, job.c.name, job.c.fingerprint)
        query = select(*grouped, count, newest_ms, func.min(job.c.finished_ms).label("oldest_ms"), func.max(job.c.key))
        query = self._where(query, wanted).where(job.c.state == State.FAILED.value).group_by(*grouped)
        query = query.order_by(count.desc(), newest_ms.desc(), job.c.fingerprint).limit(limit)
        async with self._database.reading() as connection:
            groups = (await connection.execute(query)).all()
            errors = select(job.c.key, job.c.error).where(job.c.key.in_([group[-1] for group in groups]))
            error_of = {row.key: row.error for row in await connection.execute(errors)}
        return [
            FailureGroup(
                queue=queue,
                name=name,
                fingerprint=fingerprint or "",
                count=jobs,
                newest_ms=newest,
                oldest_ms=oldest,
                sample_key=key,
                error=error_of.get(key) or "",
            )
            for queue, name, fingerprint, jobs, newest, oldest, key in groups
        ]

    async def lag(self) -> dict[str, Lag]:
        """How far behind the model may be, for each queue."""
        now_ms = self._database.clock.now_ms()
        query = select(stream.c.queue, stream.c.caught_up_ms, stream.c.is_scanning).order_by(stream.c.queue)
        async with self._database.reading() as connection:
            return {
                queue: Lag(None if caught_up_ms is None else max(0, now_ms - caught_up_ms), is_scanning)
                for queue, caught_up_ms, is_scanning in await connection.execute(query)
            }

    def _where(self, query: Select[Any], wanted: JobFilter) -> Select[Any]:
        for name in ("queue", "tenant", "workspace", "name", "fingerprint", "error_kind"):
            if (value := getattr(wanted, name)) is not None:
                query = query.where(job.c[name] == value)
        if wanted.states:
            query = query.where(job.c.state.in_([str(State(state)) for state in wanted.states]))
        if wanted.since_ms is not None:
            query = query.where(job.c.added_ms >= wanted.since_ms)
        if wanted.until_ms is not None:
            query = query.where(job.c.added_ms < wanted.until_ms)
        if wanted.tag is not None:
            query = query.where(job.c.key.in_(select(job_tag.c.key).where(job_tag.c.tag == wanted.tag)))
        if wanted.text is not None:
            # What has no word in it, such as "…", is found nowhere.
            words = words_of([wanted.text])
            query = query.where(job.c.key.in_(keys_with_words(self._database, words)) if words else job.c.key < 0)
        return query


def _narrowed(query: Select[Any], table: Any, queue: str | None, tenant: str | None) -> Select[Any]:
    if queue is not None:
        query = query.where(table.c.queue == queue)
    return query if tenant is None else query.where(table.c.tenant == tenant)


def _joined(known: Minute, row: Row[Any]) -> Minute:
    return Minute(
        minute_ms=known.minute_ms,
        added=known.added + row.added,
        started=known.started + row.started,
        completed=known.completed + row.completed,
        failed=known.failed + row.failed,
        retried=known.retried + row.retried,
        wait=tuple(a + b for a, b in zip(known.wait, row.wait, strict=True)),
        processing=tuple(a + b for a, b in zip(known.processing, row.processing, strict=True)),
    )


def _place(cursor: str) -> tuple[int, int]:
    added_ms, dot, key = cursor.partition(".")
    if not dot or not all(part.isascii() and part.isdecimal() and len(part) < 19 for part in (added_ms, key)):
        raise BadOption(f"cursor: {cursor!r} is not one that a page gave")
    return int(added_ms), int(key)


def _read(row: Row[Any]) -> ModelJob:
    values = dict(row._mapping)  # noqa: SLF001 - its public name, in SQLAlchemy's way
    return ModelJob(**values | {"state": State(values["state"]), "tags": tuple(values["tags"])})
