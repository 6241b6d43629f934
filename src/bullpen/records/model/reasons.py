"""Why jobs failed: how many for each reason is kept with each change, when and with which words an index finds."""

import functools
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Select, String, bindparam, func, literal_column, select
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


async def read_reasons(
    connection: AsyncConnection, within: Within, queues: Sequence[str] | None, limit: int
) -> list[FailureGroup]:
    """The most frequent first; `queues` are all that may be told of."""
    query = _reasons(within.queue is not None, within.tenant is not None, queues is not None)
    asked = {**msgspec.structs.asdict(within), "limit": limit}
    if queues is not None:
        asked["queues"] = list(queues)
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
        for queue, name, fingerprint, jobs, newest_ms, oldest_ms, key, error in await connection.execute(query, asked)
    ]


@functools.cache
def _reasons(of_queue: bool, of_tenant: bool, of_some: bool) -> Select[Any]:
    grouped, count = (reason.c.queue, reason.c.name, reason.c.fingerprint), func.sum(reason.c.jobs).label("count")
    query = select(*grouped, count).group_by(*grouped).order_by(count.desc(), *grouped).limit(bindparam("limit"))
    if of_queue:
        query = query.where(reason.c.queue == bindparam("queue"))
    if of_tenant:
        query = query.where(reason.c.tenant == bindparam("tenant"))
    if of_some:
        query = query.where(reason.c.queue.in_(bindparam("queues", expanding=True)))
    groups = query.subquery("groups")

    def one(*columns: ColumnElement[Any]) -> Select[Any]:
        is_of_group = (job.c.queue == groups.c.queue) & (job.c.name == groups.c.name)
        found = select(*columns).where(_FAILED, is_of_group, job.c.fingerprint == groups.c.fingerprint)
        if of_tenant:
            found = found.where(job.c.tenant == bindparam("tenant"))
        return found.correlate(groups)

    newest = one(job.c.key).order_by(job.c.finished_ms.desc(), job.c.key.desc()).limit(1).scalar_subquery()
    oldest_ms = one(func.min(job.c.finished_ms)).scalar_subquery()
    shown = (_newest.c.finished_ms, oldest_ms, _newest.c.key, _newest.c.error)
    found = select(*groups.c, *shown).join_from(groups, _newest, _newest.c.key == newest)
    return found.order_by(groups.c.count.desc(), _newest.c.finished_ms.desc(), groups.c.fingerprint)
