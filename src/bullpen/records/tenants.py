"""Tenants, and what each one's plan allows."""

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from bullpen.errors import BadOption, RecordMissing, RecordTaken
from bullpen.job.limits import GroupLimits
from bullpen.records.database import Database
from bullpen.records.paging import Page, check_limit, name_in, page_of
from bullpen.records.tables.access import tenant as tenant_table

_HIGHEST = 3
_NORMAL = 5


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a tenant may use. A plan is data: it changes at any time, and counts from then on."""

    limits: GroupLimits = GroupLimits()
    """Of its group in each queue where it has none of its own."""
    queues: Mapping[str, GroupLimits] = {}
    """Of its group in these queues."""
    default_priority: int = _NORMAL
    """Of a job whose producer asks for none."""
    highest_priority: int = _HIGHEST
    """The smallest number that a caller may ask for; what is below is the system's own."""
    uploads_mb: int | None = None
    """How many megabytes of files it may have that no run was given; None: as `BULLPEN_UPLOADS_MB` says."""

    def __post_init__(self) -> None:
        if self.uploads_mb is not None and self.uploads_mb < 0:
            raise BadOption(f"uploads_mb: 0 or more, not {self.uploads_mb}")
        if not 1 <= self.highest_priority <= self.default_priority:
            raise BadOption(
                f"highest_priority: from 1 to the default, {self.default_priority}, not {self.highest_priority}"
            )

    def priority_for(self, asked: int | None) -> int:
        """The priority of a job whose producer asked for this; BadOption if the plan has no such one."""
        if asked is None:
            return self.default_priority
        # 0 is none, and runs before all others: it is above the highest too.
        if asked < self.highest_priority:
            raise BadOption(f"priority: {self.highest_priority} is the highest of this tenant's plan, not {asked}")
        return asked

    def limits_in(self, queue: str) -> GroupLimits:
        """Of the tenant's group in a queue."""
        return self.queues.get(queue, GroupLimits()).over(self.limits)


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    """As jobs name it."""
    name: str
    plan: Plan
    created_ms: int
    disabled_ms: int | None


class Tenants:
    """Make, change and look at tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, tenant_id: str, *, name: str = "", plan: Plan | None = None) -> Tenant:
        """RecordTaken if there is one of this id."""
        if not tenant_id or len(tenant_id) > 200:
            raise BadOption("tenant: a text of 1 to 200 characters")
        tenant = Tenant(
            id=tenant_id,
            name=name or tenant_id,
            plan=plan or Plan(),
            created_ms=self._database.clock.now_ms(),
            disabled_ms=None,
        )
        try:
            async with self._database.writing() as connection:
                values = msgspec.structs.asdict(tenant) | {"plan": msgspec.to_builtins(tenant.plan)}
                await connection.execute(insert(tenant_table), values)
        except IntegrityError as error:
            raise RecordTaken(f"there is a tenant {tenant_id!r} already") from error
        return tenant

    async def get(self, tenant_id: str) -> Tenant:
        """RecordMissing if there is none."""
        async with self._database.reading(brief=True) as connection:
            row = (await connection.execute(select(tenant_table).where(tenant_table.c.id == tenant_id))).one_or_none()
        if row is None:
            raise RecordMissing(f"no tenant {tenant_id!r}")
        return _read(row)

    async def list(self, *, limit: int = 100, cursor: str | None = None) -> Page[Tenant]:
        """All tenants, by id."""
        query = select(tenant_table).order_by(tenant_table.c.id).limit(check_limit(limit) + 1)
        if cursor is not None:
            query = query.where(tenant_table.c.id > name_in(cursor))
        async with self._database.reading(brief=True) as connection:
            found = [_read(row) for row in await connection.execute(query)]
        return page_of(found, limit, lambda tenant: tenant.id)

    async def set_plan(self, tenant_id: str, plan: Plan) -> Tenant:
        """Another plan from now on; RecordMissing."""
        return await self._change(tenant_id, plan=msgspec.to_builtins(plan))

    async def disable(self, tenant_id: str, *, is_disabled: bool = True) -> Tenant:
        """Take no more jobs of it, or take them again; RecordMissing."""
        return await self._change(tenant_id, disabled_ms=self._database.clock.now_ms() if is_disabled else None)

    async def remove(self, tenant_id: str) -> None:
        """Forget the tenant and its plan; its jobs, keys and audit entries stay. RecordMissing."""
        async with self._database.writing() as connection:
            done = await connection.execute(delete(tenant_table).where(tenant_table.c.id == tenant_id))
        if done.rowcount == 0:
            raise RecordMissing(f"no tenant {tenant_id!r}")

    async def _change(self, tenant_id: str, **values: Any) -> Tenant:
        async with self._database.writing() as connection:
            await connection.execute(update(tenant_table).where(tenant_table.c.id == tenant_id).values(**values))
        return await self.get(tenant_id)


def _read(row: Row[Any]) -> Tenant:
    return Tenant(
        id=row.id,
        name=row.name,
        plan=msgspec.convert(row.plan, Plan),
        created_ms=row.created_ms,
        disabled_ms=row.disabled_ms,
    )
