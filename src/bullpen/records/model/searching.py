"""Finding jobs: which the caller wants, and how their rows are reached without reading all that match.

Lists go down an index by time; leading.py says which. Words are found by key, the newest first, in one of these
ways on SQLite:

    few jobs in these states ─▶ read them all                    what is left ─▶ walk down the index of words
    words longer than its beginnings ─▶ the newest that begin alike, then all that have them

On PostgreSQL a search by nothing but words looks through the newest jobs, and then collects all that have the
words. Where something else is asked too, PostgreSQL chooses by itself, knowing how frequent that is.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, String, func, literal_column, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.errors import BadOption
from bullpen.job.state import State
from bullpen.records.database import Database
from bullpen.records.model.leading import LEADS, apart, lead_of
from bullpen.records.model.texts import JOB_TEXTS, Words, rows_of
from bullpen.records.model.words import FAILED_WORD, queue_word, tenant_word, words_of
from bullpen.records.tables.model import job, job_tag, tally

_REPEATED = 256
"""Statements that are kept: a page that is open asks the same every few seconds, and building one takes a while."""
_SHOWN = [column for column in job.c if column.name not in {"ready_ms", "scan"}]
_ANY_STATE = literal_column("(bullpen_job.state || '')", String)
"""As the index has it that leads through all queues."""
_FEW = 2_000
"""So many rows are read rather than the index of words, in which a rare state may be far down."""

Place = tuple[int, int]
"""When a job was added, and its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Jobs for which all of this is true; what is not given is not asked."""

    queue: str | None = None
    queues: Sequence[str] | None = None
    """One of these; None: whichever. None of a filter that comes to one queue, empty of one that fits no job."""
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
        # A statement is kept by the filter that it was made for.
        object.__setattr__(self, "states", tuple(self.states))
        queue, queues = self._scope()
        object.__setattr__(self, "queue", queue)
        object.__setattr__(self, "queues", queues)

    def _scope(self) -> tuple[str | None, tuple[str, ...] | None]:
        """One queue and no others, where it comes to that: an index leads through one, and through several none."""
        if self.queues is None:
            return self.queue, None
        queues = tuple(self.queues)
        if self.queue is None:
            return (queues[0], None) if len(queues) == 1 else (None, queues)
        return self.queue, None if self.queue in queues else ()

    @property
    def has_index(self) -> bool:
        """Whether one leads from each of these jobs to the next: else any number of others may lie between them."""
        if self.text is not None or self.queues is not None or self.error_kind is not None:
            return False
        if self.tag is not None and (self.since_ms is not None or self.until_ms is not None):
            return False  # tags are by key
        narrow = [one for one in (self.queue, self.tenant, *self.leads.values()) if one is not None]
        if len(narrow) == 2:
            return not self.leads and not self.states  # a tenant's jobs of a queue
        # By state are the lists of all jobs, of a queue and of a tenant.
        return len(narrow) <= 1 and len(self.states) <= (0 if self.leads else 1)

    @property
    def is_all_words(self) -> bool:
        """Whether it asks for nothing that is not among the words of a job."""
        by_time = self.since_ms is not None or self.until_ms is not None
        by_others = self.queues is not None or self.error_kind is not None or bool(self.leads)
        return not by_time and not by_others and (not self.states or _is_of_failed(self))

    @property
    def leads(self) -> dict[str, str]:
        """What of this may lead to few jobs, by its name."""
        return {name: value for name in LEADS if (value := getattr(self, name)) is not None}


async def find(
    database: Database,
    connection: AsyncConnection,
    wanted: JobFilter,
    limit: int,
    *,
    before: Place | None,
) -> Sequence[Row[Any]]:
    """The newest jobs of the filter, from a place downwards."""
    if wanted.queues == ():
        return ()
    if wanted.text is None:
        lead = None if database.is_postgres else await _lead(connection, wanted)
        return await rows_of(connection, _down(_list(wanted, lead).limit(limit), wanted, before))
    words = _words(wanted, wanted.text)
    if words is None:
        return ()
    find_words = _find_in_postgres if database.is_postgres else _find_in_sqlite
    return await find_words(connection, wanted, words, limit, before)


async def _find_in_sqlite(
    connection: AsyncConnection, wanted: JobFilter, words: Words, limit: int, before: Place | None
) -> Sequence[Row[Any]]:
    query, before_key = _list(wanted), None if before is None else before[1]
    if (queues := await _queues_of_few(connection, wanted)) is not None:
        few = query.where(job.c.queue.in_(queues)).limit(limit)
        return await rows_of(connection, JOB_TEXTS.among_few(few, words, before_key))
    return await JOB_TEXTS.walk(connection, query, words, limit, before_key)


async def _find_in_postgres(
    connection: AsyncConnection, wanted: JobFilter, words: Words, limit: int, before: Place | None
) -> Sequence[Row[Any]]:
    query = _list(wanted)
    if not wanted.is_all_words:
        return await rows_of(connection, _down(JOB_TEXTS.with_vectors(query.limit(limit), words), wanted, before))
    keys = await JOB_TEXTS.keys(connection, words, limit, None if before is None else before[1])
    return await rows_of(connection, query.where(job.c.key.in_(keys)).order_by(job.c.key.desc()))


@functools.lru_cache(_REPEATED)
def _list(wanted: JobFilter, lead: str | None = None) -> Select[Any]:
    return _narrowed(select(*_SHOWN), wanted, lead)


async def _lead(connection: AsyncConnection, wanted: JobFilter) -> str | None:
    """What leads to the jobs of a list; None where SQLite needs no advice."""
    if not wanted.leads or wanted.has_index:
        return None
    return await lead_of(connection, wanted.leads)


def _down(query: Select[Any], wanted: JobFilter, before: Place | None) -> Select[Any]:
    # Words and tags are found by key: in another order all that have them would be read for one page.
    if wanted.text is not None or wanted.tag is not None:
        key = job.c.key if wanted.tag is None else job_tag.c.key
        if before is not None:
            query = query.where(key < before[1])
        return query.order_by(key.desc())
    if before is not None:
        query = query.where(tuple_(job.c.added_ms, job.c.key) < tuple_(*before))
    return query.order_by(job.c.added_ms.desc(), job.c.key.desc())


def _words(wanted: JobFilter, text: str) -> Words | None:
    """What to search for; None for what has no word in it, such as "…", and is found nowhere."""
    begun = words_of([text])
    if not begun:
        return None
    whole = []
    if wanted.tenant is not None:
        whole.append(tenant_word(wanted.tenant))
    if wanted.queue is not None:
        whole.append(queue_word(wanted.queue))
    if _is_of_failed(wanted):
        whole.append(FAILED_WORD)
    return Words(tuple(begun), tuple(whole))


def _is_of_failed(wanted: JobFilter) -> bool:
    return {State(state) for state in wanted.states} == {State.FAILED}


async def _queues_of_few(connection: AsyncConnection, wanted: JobFilter) -> Sequence[str] | None:
    """The queues that have jobs of these states and this tenant; None if those are many, or found by their words."""
    if not wanted.states or _is_of_failed(wanted):
        return None
    query = select(tally.c.queue, func.sum(tally.c.jobs)).where(tally.c.jobs > 0).group_by(tally.c.queue)
    query = query.where(tally.c.state.in_([State(state).value for state in wanted.states]))
    for column, value in ((tally.c.queue, wanted.queue), (tally.c.tenant, wanted.tenant)):
        if value is not None:
            query = query.where(column == value)
    if wanted.queues is not None:
        query = query.where(tally.c.queue.in_(list(wanted.queues)))
    counted = {queue: int(jobs) for queue, jobs in await connection.execute(query)}
    return list(counted) if sum(counted.values()) <= _FEW else None


def _narrowed(query: Select[Any], wanted: JobFilter, lead: str | None = None) -> Select[Any]:
    def column(name: str) -> ColumnElement[str]:
        own = job_tag.c.tag if name == "tag" else job.c[name]
        return own if lead in (None, name) else apart(own)

    if wanted.tag is not None:
        query = query.join(job_tag, job_tag.c.key == job.c.key)
    for name in ("queue", "tenant", "workspace", "name", "tag", "fingerprint", "error_kind"):
        if (value := getattr(wanted, name)) is not None:
            query = query.where(column(name) == value)
    if wanted.queues is not None:
        query = query.where(column("queue").in_(list(wanted.queues)))
    if wanted.states:
        goes_through_all = lead is None and wanted.queue is None and wanted.tenant is None and wanted.text is None
        state = _ANY_STATE if goes_through_all else column("state")
        query = query.where(state.in_([str(State(one)) for one in wanted.states]))
    if wanted.since_ms is not None:
        query = query.where(job.c.added_ms >= wanted.since_ms)
    if wanted.until_ms is not None:
        query = query.where(job.c.added_ms < wanted.until_ms)
    return query
