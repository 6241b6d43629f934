"""Tenants' plans at work: what a caller may ask for at an add, and the limits of the tenant's group."""

from collections.abc import Iterable

from bullpen.errors import QueueMissing, RecordMissing, TenantRefused
from bullpen.job.limits import NO_GROUP_LIMITS, GroupLimits
from bullpen.records.records import Records
from bullpen.records.tenants import Tenant
from bullpen.stores.base import Store

_FRESH_MS = 1_000
_KNOWN = 10_000
_SURE_MS = 10_000
"""Another process may take the limits of a group away, with the whole queue or alone."""


class Plans:
    """Knows tenants for a moment, so that adds do not ask the records each time."""

    def __init__(self, store: Store, records: Records) -> None:
        self._store = store
        self._records = records
        self._known: dict[str, tuple[int, Tenant | None]] = {}
        self._limited: dict[tuple[str, str], tuple[int, GroupLimits]] = {}
        """By queue and tenant: when, and of what it was last made sure."""

    async def tenant(self, tenant_id: str) -> Tenant | None:
        """Whose plan counts for an add; None for a tenant that has none. TenantRefused for one that is disabled."""
        mono_ms = self._store.clock.mono_ms()
        known = self._known.get(tenant_id)
        if known is None or mono_ms - known[0] >= _FRESH_MS:
            if len(self._known) >= _KNOWN:
                self._known.clear()
            known = self._known[tenant_id] = mono_ms, await self._find(tenant_id)
        if known[1] is not None and known[1].disabled_ms is not None:
            raise TenantRefused(f"tenant {tenant_id!r} is disabled: no jobs are taken for it")
        return known[1]

    async def ensure(self, queue: str, tenant: Tenant) -> None:
        """Before an add: its group in this queue has the limits of its plan, unless it has its own."""
        limits = tenant.plan.limits_in(queue)
        mono_ms = self._store.clock.mono_ms()
        sure_ms, sure_of = self._limited.get((queue, tenant.id), (mono_ms, NO_GROUP_LIMITS))
        if sure_of == limits and mono_ms - sure_ms < _SURE_MS:
            return
        if await self._limits(queue, tenant.id) == NO_GROUP_LIMITS:
            await self._store.set_group(queue, tenant.id, limits)
        if len(self._limited) >= _KNOWN:
            self._limited.clear()
        self._limited[queue, tenant.id] = mono_ms, limits

    def forget(self, queue: str) -> None:
        """Limits of its groups were taken away: make sure of them anew."""
        self._limited = {known: sure for known, sure in self._limited.items() if known[0] != queue}

    async def change(self, queues: Iterable[str], before: Tenant | None, after: Tenant | None) -> None:
        """Another plan counts from now on; limits that somebody gave a group by hand stay."""
        tenant = after or before
        assert tenant is not None
        self._known.pop(tenant.id, None)
        for queue in queues:
            was = NO_GROUP_LIMITS if before is None else before.plan.limits_in(queue)
            to_be = NO_GROUP_LIMITS if after is None else after.plan.limits_in(queue)
            has = await self._limits(queue, tenant.id)
            if has in (was, NO_GROUP_LIMITS) and has != to_be:
                await self._store.set_group(queue, tenant.id, None if to_be == NO_GROUP_LIMITS else to_be)
            self._limited[queue, tenant.id] = self._store.clock.mono_ms(), to_be

    async def _limits(self, queue: str, group: str) -> GroupLimits:
        try:
            return (await self._store.group(queue, group)).limits
        except QueueMissing:
            return NO_GROUP_LIMITS  # its first job is on the way

    async def _find(self, tenant_id: str) -> Tenant | None:
        try:
            return await self._records.tenants.get(tenant_id)
        except RecordMissing:
            return None
