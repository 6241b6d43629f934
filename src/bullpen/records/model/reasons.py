"""Why jobs failed: how many for each reason is kept with each change, when and with which words an index finds."""

import functools
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Select, String, Subquery, bindparam, func, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.records.model.reading import Within
from bullpen.records.tables.model import job, reason

_FAILED = job.c.state == literal_column("'failed'", String)
"""Written out: only so is the index of failed jobs known to have them all."""
_newest = job.alias("newest")


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
    """Of the one that failed last."""


class Order(StrEnum):
    """Of reasons."""

    COUNT = "count"
    """The most frequent first."""
    NEWEST = "newest"
    """The one by which a job failed last first."""


class _Asked(NamedTuple):
    """What a statement is narrowed to, and how it is ordered; the values come with each question."""

    of_queue: bool
    of_tenant: bool
    of_some: bool
    of_late: bool
    order: Order


async def read_reasons(
    connection: AsyncConnection,
    within: Within,
    queues: Sequence[str] | None,
    since_ms: int | None,
    order: Order,
    limit: int,
) -> list[FailureGroup]:
    """`queues` are all that may be told of; with `since_ms`, jobs that failed since are counted, and no others."""
    late = since_ms is not None
    query = _reasons(_Asked(within.queue is not None, within.tenant is not None, queues is not None, late, order))
    values = {**msgspec.structs.asdict(within), "limit": limit, "since_ms": since_ms}
    if queues is not None:
        values["queues"] = list(queues)
    return [
        FailureGroup(
            queue=queue,
            name=name,
            fingerprint=fingerprint,
            count=int(jobs),
            newest_ms=newest_ms,
            oldest_ms=oldest_ms,
            sample_key=key,
            error=error or "",
        )
        for queue, name, fingerprint, jobs, newest_ms, oldest_ms, key, error in await connection.execute(query, values)
    ]


@functools.cache
def _reasons(asked: _Asked) -> Select[Any]:
    groups = _first_groups(asked).subquery("groups")
    newest = _failed_of(asked, groups, job.c.key).order_by(job.c.finished_ms.desc(), job.c.key.desc()).limit(1)
    oldest_ms = _failed_of(asked, groups, func.min(job.c.finished_ms)).scalar_subquery()
    shown = (_newest.c.finished_ms, oldest_ms, _newest.c.key, _newest.c.error)
    which = (groups.c.queue, groups.c.name, groups.c.fingerprint, groups.c.count)
    found = select(*which, *shown).join_from(groups, _newest, _newest.c.key == newest.scalar_subquery())
    order = [groups.c.count.desc(), _newest.c.finished_ms.desc()]
    return found.order_by(*(order if asked.order is Order.COUNT else reversed(order)), groups.c.fingerprint)


def _first_groups(asked: _Asked) -> Select[Any]:
    """Those that are shown, with their counts: no job is looked at where the kept counts say enough."""
    grouped, jobs = (reason.c.queue, reason.c.name, reason.c.fingerprint), func.sum(reason.c.jobs).label("count")
    query = select(*grouped, jobs).group_by(*grouped)
    if asked.of_queue:
        query = query.where(reason.c.queue == bindparam("queue"))
    if asked.of_tenant:
        query = query.where(reason.c.tenant == bindparam("tenant"))
    if asked.of_some:
        query = query.where(reason.c.queue.in_(bindparam("queues", expanding=True)))
    if not asked.of_late and asked.order is Order.COUNT:
        return query.order_by(jobs.desc(), *grouped).limit(bindparam("limit"))
    known = query.subquery("known")
    count: ColumnElement[Any] = known.c.count
    if asked.of_late:
        since = job.c.finished_ms >= bindparam("since_ms")
        count = _failed_of(asked, known, func.count()).where(since).scalar_subquery().label("count")
    last_ms = _failed_of(asked, known, func.max(job.c.finished_ms)).scalar_subquery().label("last_ms")
    by_group = (known.c.queue, known.c.name, known.c.fingerprint)
    counted = select(*by_group, count, last_ms).subquery("counted")
    first = counted.c.count if asked.order is Order.COUNT else counted.c.last_ms
    late = select(counted).where(counted.c.count > 0)
    return late.order_by(first.desc(), *list(counted.c)[:3]).limit(bindparam("limit"))


def _failed_of(asked: _Asked, groups: Subquery, *columns: ColumnElement[Any]) -> Select[Any]:
    """Of each group, by an index that has them in the order in which they failed."""
    is_of_group = (job.c.queue == groups.c.queue) & (job.c.name == groups.c.name)
    found = select(*columns).where(_FAILED, is_of_group, job.c.fingerprint == groups.c.fingerprint)
    if asked.of_tenant:
        found = found.where(job.c.tenant == bindparam("tenant"))
    return found.correlate(groups)
