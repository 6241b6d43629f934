"""Jobs that a caller adds: for whom they may be, in which group, with which priority."""

from typing import Any

import msgspec

from bullpen.builtin.messages import QUEUE as DELIVERIES
from bullpen.errors import BadId, BadOption, QueueMissing
from bullpen.job.names import MAX_ID
from bullpen.job.spec import NewJob
from bullpen.jobtypes.declaring import NORMAL_PRIORITY
from bullpen.records.keys import Role
from bullpen.records.tenants import Plan
from bullpen.server.access.caller import Caller
from bullpen.server.models.adding import FlowBody, NewJobBody
from bullpen.server.problems import forbidden
from bullpen.server.site import Site
from bullpen.server.tenant_names import MARK_LENGTH, apart

_OWN_GROUPS = (None, "{tenant}")
_TRUSTED = frozenset({Role.ADMIN, Role.OPERATOR})


async def prepared(site: Site, caller: Caller, queue: str, body: NewJobBody) -> NewJob:
    """The job as the caller may add it; Refused or BadOption if they may not."""
    if not caller.sees_queue(queue):
        raise QueueMissing(f"no queue {queue!r}")
    check_queue_to_fill(queue)
    options = body.options.values()
    tenant = options["tenant"] = _tenant_for(caller, options.get("tenant"))
    if caller.tenant is not None and options.get("group") not in (*_OWN_GROUPS, caller.tenant):
        raise forbidden("group: a caller with a tenant adds to its own group only")
    if tenant is None:
        options.setdefault("priority", NORMAL_PRIORITY)
    else:
        await _keep_to_plan(site, caller, queue, tenant, options)
    job = site.queue(queue).prepare(body.name, body.data, **options)
    return _with_own_id(caller, _with_own_subject(caller, job))


def check_queue_to_fill(queue: str) -> None:
    """Refused where only Bullpen itself adds: a delivery is signed as ours, whoever wrote it."""
    if queue == DELIVERIES:
        raise forbidden(f"queue: only webhooks and alerts add to {DELIVERIES}")


async def prepared_tree(site: Site, caller: Caller, body: FlowBody) -> NewJob:
    """The same for a job and all that it waits for."""
    job = await prepared(site, caller, body.queue, body)
    children = [await prepared_tree(site, caller, child) for child in body.children]
    return msgspec.structs.replace(job, children=tuple(children))


def _with_own_subject(caller: Caller, job: NewJob) -> NewJob:
    """A tenant's subject is not another's of the same name, which it would meet, or even replace."""
    if caller.tenant is None or job.spec.dedup is None:
        return job
    subject = msgspec.structs.replace(job.spec.dedup, id=apart(caller.tenant, job.spec.dedup.id))
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, dedup=subject))


def _with_own_id(caller: Caller, job: NewJob) -> NewJob:
    """A tenant's id is not another's of the same name: it would be told that the other's is there, or be in its way."""
    if caller.tenant is None or job.id is None:
        return job
    if len(job.id) > MAX_ID - MARK_LENGTH:
        raise BadId(f"id: is {len(job.id)} characters long; a caller with a tenant has {MAX_ID - MARK_LENGTH} at most")
    return msgspec.structs.replace(job, id=apart(caller.tenant, job.id))


def _tenant_for(caller: Caller, asked: str | None) -> str | None:
    if caller.tenant is not None and asked not in (None, caller.tenant):
        raise forbidden("tenant: the caller adds for its own only")
    return caller.tenant or asked


async def _keep_to_plan(site: Site, caller: Caller, queue: str, tenant_id: str, options: dict[str, Any]) -> None:
    tenant = await site.plans.tenant(tenant_id)
    plan = Plan() if tenant is None else tenant.plan
    asked = options.get("priority")
    # Who adds for others is the system, unless somebody gave them a plan.
    is_free = caller.tenant is None and (tenant is None or caller.role in _TRUSTED)
    if asked is None or not is_free:
        options["priority"] = plan.priority_for(asked)
    if tenant is None and caller.tenant is None:
        return
    # In a line of its own: the limits of a plan are that line's, and a token for the tenant's work is served from it.
    options.setdefault("group", tenant_id)
    if tenant is not None:
        await site.plans.ensure(queue, tenant)


def check_depth(body: FlowBody, most: int) -> None:
    """BadOption for a tree of more jobs than one call may add."""
    count, waiting = 0, [body]
    while waiting:
        count += 1
        waiting += waiting.pop().children
        if count > most:
            raise BadOption(f"children: a flow has at most {most:,} jobs in one call")
