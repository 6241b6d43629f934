"""What a caller may ask of agents for a tenant, and how urgently."""

import msgspec

from bullpen.agents.kinds import TaskKind, Urgency, kind_of, route, urgency_of
from bullpen.agents.words import TaskRequest
from bullpen.records.keys import Role
from bullpen.server.access.caller import Caller
from bullpen.server.site import Site

_TRUSTED = frozenset({Role.ADMIN, Role.OPERATOR})


async def request_within(site: Site, caller: Caller, tenant_id: str, request: TaskRequest) -> TaskRequest:
    """The request as the tenant's plan allows it. TenantRefused for one that is disabled."""
    kind = kind_of(request.task_type)
    urgency = None if request.priority is None else urgency_of(request.priority)
    tenant = await site.plans.tenant(tenant_id)
    if tenant is None:
        return request
    if urgency is not None and (caller.tenant is not None or caller.role not in _TRUSTED):
        urgency = _within(urgency, tenant.plan.highest_priority)
        request = msgspec.structs.replace(request, priority=urgency)
    await site.plans.ensure(_queue_for(kind, urgency), tenant)
    return request


def _within(asked: Urgency, highest: int) -> Urgency:
    """No sooner than the plan allows: a smaller number is sooner."""
    return next((one for one in Urgency if one.priority >= max(asked.priority, highest)), Urgency.BULK)


def _queue_for(kind: TaskKind, urgency: Urgency | None) -> str:
    return route(kind, urgency).queue
