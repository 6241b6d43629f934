"""What a caller may ask of agents for a tenant, and how urgently."""

import msgspec

from bullpen.agents.kinds import KINDS, TaskKind, Urgency, kind_of, route, urgency_at, urgency_of
from bullpen.agents.words import TaskRequest, TaskTerms
from bullpen.records.keys import Role
from bullpen.records.runs.words import Task
from bullpen.records.tenants import Plan
from bullpen.server.access.caller import Caller
from bullpen.server.site import Site

_TRUSTED = frozenset({Role.ADMIN, Role.OPERATOR})


async def request_within(site: Site, caller: Caller, tenant_id: str, request: TaskRequest) -> TaskRequest:
    """The request as the tenant's plan allows it, or the usual one. TenantRefused for one that is disabled."""
    kind = kind_of(request.task_type)
    asked = KINDS[kind].urgency if request.priority is None else urgency_of(request.priority)
    urgency = await _urgency_within(site, caller, tenant_id, kind, asked)
    return request if urgency is asked else msgspec.structs.replace(request, priority=urgency)


async def priority_of_fork(site: Site, caller: Caller, task: Task) -> Urgency:
    """That of the task, as far as the plan of its tenant allows this caller. TenantRefused as above."""
    asked = urgency_at(msgspec.json.decode(task.terms, type=TaskTerms).priority)
    return await _urgency_within(site, caller, task.tenant, TaskKind(task.kind), asked)


async def _urgency_within(site: Site, caller: Caller, tenant_id: str, kind: TaskKind, asked: Urgency) -> Urgency:
    tenant = await site.plans.tenant(tenant_id)
    plan = Plan() if tenant is None else tenant.plan
    is_bound = caller.tenant is not None or caller.role not in _TRUSTED
    urgency = _within(asked, plan.highest_priority) if is_bound else asked
    if tenant is not None:
        await site.plans.ensure(route(kind, urgency).queue, tenant)
    return urgency


def _within(asked: Urgency, highest: int) -> Urgency:
    """No sooner than the plan allows: a smaller number is sooner."""
    return next((one for one in Urgency if one.priority >= max(asked.priority, highest)), Urgency.BULK)
