"""What a caller may ask of agents for a tenant, and how urgently."""

import msgspec

from bullpen.agents.kinds import KINDS, Urgency, kind_of, route, urgency_of
from bullpen.agents.words import TaskRequest
from bullpen.records.keys import Role
from bullpen.records.tenants import Plan
from bullpen.server.access.caller import Caller
from bullpen.server.site import Site

_TRUSTED = frozenset({Role.ADMIN, Role.OPERATOR})


async def request_within(site: Site, caller: Caller, tenant_id: str, request: TaskRequest) -> TaskRequest:
    """The request as the tenant's plan allows it, or the usual one. TenantRefused for one that is disabled."""
    kind = kind_of(request.task_type)
    urgency = KINDS[kind].urgency if request.priority is None else urgency_of(request.priority)
    tenant = await site.plans.tenant(tenant_id)
    plan = Plan() if tenant is None else tenant.plan
    if caller.tenant is not None or caller.role not in _TRUSTED:
        urgency = _within(urgency, plan.highest_priority)
        request = msgspec.structs.replace(request, priority=urgency)
    if tenant is not None:
        await site.plans.ensure(route(kind, urgency).queue, tenant)
    return request


def _within(asked: Urgency, highest: int) -> Urgency:
    """No sooner than the plan allows: a smaller number is sooner."""
    return next((one for one in Urgency if one.priority >= max(asked.priority, highest)), Urgency.BULK)
