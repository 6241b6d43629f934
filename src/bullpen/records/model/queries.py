"""Reading the read model: lists, search, counts, rates, failures, and how far behind it is."""

from collections.abc import Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec
from sqlalchemy import Row, bindparam, func, select

from bullpen.errors import BadOption
from bullpen.job.state import State
from bullpen.records.database import Database
from bullpen.records.model.reading import Lag, Minute, Period, Within, read_counts, read_lag, read_minutes
from bullpen.records.model.reasons import FailureGroup, Order, read_reasons
from bullpen.records.model.searching import JobFilter, find
from bullpen.records.tables.model import tally

_LIMIT = 500


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
    behind_ms: int | None
    """How old this may be; None if the model was never complete."""


class Glance(msgspec.Struct, frozen=True):
    """What lists of queues show, by queue, as it was at one moment."""

    lag: dict[str, Lag]
    counts: dict[str, dict[State, int]]
    minutes: dict[str, Sequence[Minute]]


class TenantCounts(msgspec.Struct, frozen=True):
    counts: dict[str, dict[State, int]]
    """Of those that have most jobs, these first."""
    more: int
    """How many other tenants there are."""


_ALL = JobFilter()
_OF_QUEUE = (tally.c.queue == bindparam("queue")) & (tally.c.jobs > 0)
_MOST_JOBS = (
    select(tally.c.tenant, func.count().over().label("tenants"))
    .where(_OF_QUEUE)
    .group_by(tally.c.tenant)
    .order_by(func.sum(tally.c.jobs).desc(), tally.c.tenant)
    .limit(bindparam("limit"))
)
"""Reads the tallies of a queue once: they are as many as its tenants have states, and open pages ask each second."""
_OF_TENANTS = (
    select(tally.c.tenant, tally.c.state, tally.c.jobs)
    # By the whole of the primary key: without the states, those of all tenants would be read.
    .where(_OF_QUEUE, tally.c.state.in_(list(State)), tally.c.tenant.in_(bindparam("names", expanding=True)))
)


class ReadModel:
    """What the read model knows. A tenant that is given is all that is seen."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, wanted: JobFilter = _ALL, *, limit: int = 50, cursor: str | None = None) -> ModelPage:
        """The newest first, by when they were added; with a text or tag, by when they were seen first.

        Pages neither repeat nor skip a job, whatever changes.
        """
        if not 1 <= limit <= _LIMIT:
            raise BadOption(f"limit: from 1 to {_LIMIT}, not {limit}")
        before = None if cursor is None else _place(cursor)
        async with self._database.reading(brief=True) as connection:
            lag = await read_lag(connection, self._database.clock.now_ms())
            if not wanted.has_index:
                self._database.go_aside(connection)
            rows = await find(self._database, connection, wanted, limit + 1, before=before)
        found = [_read(row) for row in rows]
        last = found[limit - 1] if len(found) > limit else None
        next_cursor = None if last is None else f"{last.added_ms}.{last.key}"
        return ModelPage(tuple(found[:limit]), next_cursor, _most_behind(lag, wanted.queue))

    async def search(self, text: str, *, tenant: str | None = None, limit: int = 50) -> ModelPage:
        """`list` by words alone."""
        return await self.list(JobFilter(text=text, tenant=tenant), limit=limit)

    async def counts(self, *, queue: str | None = None, tenant: str | None = None) -> dict[str, dict[State, int]]:
        """How many jobs of each queue are in each state; in all, or of a tenant."""
        async with self._database.reading(brief=True) as connection:
            return await read_counts(connection, Within(queue, tenant))

    async def counts_by_tenant(self, queue: str, *, limit: int = 50) -> TenantCounts:
        """The same of one queue, for the tenants that have most jobs; what has none stands under the empty name."""
        counted: dict[str, dict[State, int]] = {}
        async with self._database.reading() as connection:
            most = (await connection.execute(_MOST_JOBS, {"queue": queue, "limit": limit})).all()
            names = [row.tenant for row in most]
            for name, state, jobs in await connection.execute(_OF_TENANTS, {"queue": queue, "names": names}):
                counted.setdefault(name, {})[State(state)] = int(jobs)
        in_all = most[0].tenants if most else 0
        return TenantCounts({name: counted[name] for name in names if name in counted}, in_all - len(names))

    async def rates(
        self, *, since_ms: int, until_ms: int, queue: str | None = None, tenant: str | None = None
    ) -> Sequence[Minute]:
        """What happened in each minute from one time to another; minutes in which nothing did are left out."""
        period = Period(since_ms=since_ms, until_ms=until_ms)
        async with self._database.reading() as connection:
            by_queue = await read_minutes(connection, period, Within(queue, tenant))
        summed: dict[int, Minute] = {}
        for one in sorted(chain(*by_queue.values()), key=attrgetter("minute_ms")):
            known = summed.get(one.minute_ms)
            summed[one.minute_ms] = one if known is None else known.joined(one)
        return tuple(summed.values())

    async def glance(self, period: Period, *, queue: str | None = None, tenant: str | None = None) -> Glance:
        """How far behind, how many, and what happened when: of every queue, or of one."""
        within = Within(queue, tenant)
        async with self._database.reading(brief=True) as connection:
            lag = await read_lag(connection, self._database.clock.now_ms())
            counts = await read_counts(connection, within)
            # As many as there are minutes and tenants.
            self._database.go_aside(connection)
            return Glance(lag, counts, await read_minutes(connection, period, within))

    async def failures(
        self,
        *,
        queue: str | None = None,
        queues: Sequence[str] | None = None,
        tenant: str | None = None,
        since_ms: int | None = None,
        order: Order = Order.COUNT,
        limit: int = 100,
    ) -> Sequence[FailureGroup]:
        """The reasons for which jobs failed; `queues`: of one of these; `since_ms`: of jobs that failed since."""
        async with self._database.reading() as connection:
            return await read_reasons(connection, Within(queue, tenant), queues, since_ms, order, limit)

    async def lag(self) -> dict[str, Lag]:
        """How far behind the model may be, for each queue."""
        async with self._database.reading(brief=True) as connection:
            return await read_lag(connection, self._database.clock.now_ms())

    async def behind_ms(self, queue: str | None = None) -> int | None:
        """The same of one queue, or the most of all; None if one was never complete."""
        return _most_behind(await self.lag(), queue)


def _most_behind(lag: Mapping[str, Lag], queue: str | None) -> int | None:
    wanted = [one for name, one in lag.items() if queue in (None, name)]
    known = [one.behind_ms for one in wanted if one.behind_ms is not None]
    return max(known, default=0) if len(known) == len(wanted) else None


def _place(cursor: str) -> tuple[int, int]:
    added_ms, dot, key = cursor.partition(".")
    if not dot or not all(part.isascii() and part.isdecimal() and len(part) < 19 for part in (added_ms, key)):
        raise BadOption(f"cursor: {cursor!r} is not one that a page gave")
    return int(added_ms), int(key)


def _read(row: Row[Any]) -> ModelJob:
    values = dict(row._mapping)  # noqa: SLF001 - its public name, in SQLAlchemy's way
    return ModelJob(**values | {"state": State(values["state"]), "tags": tuple(values["tags"])})
