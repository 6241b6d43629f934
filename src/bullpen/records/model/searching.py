"""Finding jobs: which the caller wants, and how their rows are reached without reading all that match.

Lists go down an index by time; leading.py says which. Words are found by key, the newest first, in one of these
ways on SQLite:

    few jobs in these states ─▶ read them all                    what is left ─▶ walk down the index of words
    words longer than its beginnings ─▶ the newest that begin alike, then all that have them

PostgreSQL chooses by itself, knowing how frequent words are.
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
from bullpen.records.model.sql import Words, among_few, among_newest, key_of, with_words
from bullpen.records.model.words import FAILED_WORD, LONGEST_BEGINNING, queue_word, tenant_word, words_of
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
        return await _rows(connection, _down(_list(wanted, lead).limit(limit), wanted, before))
    query = _list(wanted).limit(limit)
    words = _words(wanted, wanted.text)
    if words is None:
        return ()
    if database.is_postgres:
        return await _rows(connection, with_words(database, _down(query, wanted, before), words))
    before_key = None if before is None else before[1]
    if (queues := await _queues_of_few(connection, wanted)) is not None:
        return await _rows(connection, among_few(query, words, queues, before_key))
    if words.is_long:
        rows = await _rows(connection, among_newest(query, words, before_key))
        if len(rows) == limit:
            return rows
    query = with_words(database, query, words)
    if before_key is not None:
        query = query.where(key_of(database) < before_key)
    return await _rows(connection, query.order_by(key_of(database).desc()))


@functools.lru_cache(_REPEATED)
def _list(wanted: JobFilter, lead: str | None = None) -> Select[Any]:
    return _narrowed(select(*_SHOWN), wanted, lead)


async def _lead(connection: AsyncConnection, wanted: JobFilter) -> str | None:
    """What leads to the jobs of a list; None where SQLite needs no advice."""
    if not wanted.leads or wanted.has_index:
        return None
    return await lead_of(connection, wanted.leads)


async def _rows(connection: AsyncConnection, query: Select[Any]) -> Sequence[Row[Any]]:
    rows: Sequence[Row[Any]] = (await connection.execute(query)).all()
    return rows


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
    return Words(tuple(begun), tuple(whole), is_long=any(len(word) > LONGEST_BEGINNING for word in begun))


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
