"""Limits of queues, and the groups in them."""

from typing import Annotated

from fastapi import Query, Response

from bullpen.errors import QueueMissing
from bullpen.server.access.allowing import allowed
from bullpen.server.access.caller import Caller
from bullpen.server.models.queues import GroupBody, GroupLimitsShown, GroupShown, GroupsShown, Limits, LimitsBody
from bullpen.server.problems import forbidden
from bullpen.server.routes.routing import Cursor, Name, QueueName, TheSite, family, has_jobs

router = family("limits")

LimitReader = Annotated[Caller, allowed("queues:read")]
LimitWriter = Annotated[Caller, allowed("limits:write", whole=True)]


@router.get("/queues/{queue}/limits")
async def limits(
    caller: Annotated[Caller, allowed("queues:read", whole=True)], site: TheSite, queue: QueueName
) -> Limits:
    """What all workers of the queue share, and whether it holds them now."""
    return Limits.of(await site.queue(queue).limits())


@router.put("/queues/{queue}/limits", name="queue.limit")
async def set_limits(caller: LimitWriter, site: TheSite, queue: QueueName, body: LimitsBody) -> Limits:
    """Limit what all workers together do, from now on."""
    rate = None if body.rate is None else body.rate.value()
    await site.queue(queue).set_limits(concurrency=body.concurrency, rate=rate)
    return Limits.of(await site.queue(queue).limits())


@router.delete("/queues/{queue}/limits", name="queue.unlimit", status_code=204)
async def unset_limits(caller: LimitWriter, site: TheSite, queue: QueueName) -> Response:
    """Take all limits of the queue away."""
    await site.queue(queue).limits()  # QueueMissing, rather than a queue made by a slip
    await site.queue(queue).set_limits()
    return Response(status_code=204)


@router.get("/queues/{queue}/groups")
async def groups(
    caller: LimitReader,
    site: TheSite,
    queue: QueueName,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    cursor: Cursor = None,
) -> GroupsShown:
    """The groups that have jobs, limits of their own, or a pause; a caller with a tenant sees its own."""
    if caller.tenant is not None:
        own = await _own_group(site, caller.tenant, queue)
        return GroupsShown(items=own, default=None)
    page = await site.queue(queue).groups.page(limit=limit, cursor=cursor)
    return GroupsShown(
        items=[GroupShown.model_validate(group) for group in page.groups],
        default=GroupLimitsShown.model_validate(page.default),
        next_cursor=page.next_cursor,
    )


async def _own_group(site: TheSite, tenant: str, queue: str) -> list[GroupShown]:
    if not await has_jobs(site, tenant, queue):
        return []
    try:
        return [GroupShown.model_validate(await site.queue(queue).groups.get(tenant))]
    except QueueMissing:
        return []


@router.get("/queues/{queue}/groups/{group}")
async def group(caller: LimitReader, site: TheSite, queue: QueueName, group: Name) -> GroupShown:
    """One group as it stands; one that nobody spoke of is empty."""
    if caller.tenant not in (None, group):
        raise forbidden("group: the caller sees its own only")
    if not await has_jobs(site, caller.tenant, queue):
        raise QueueMissing(f"no queue {queue!r}")
    return GroupShown.model_validate(await site.queue(queue).groups.get(group))


@router.put("/queues/{queue}/groups/{group}", name="group.limit")
async def set_group(caller: LimitWriter, site: TheSite, queue: QueueName, group: Name, body: GroupBody) -> GroupShown:
    """Give a group limits of its own, in place of all that it had."""
    of_queue = site.queue(queue).groups
    await of_queue.set(
        group,
        weight=body.weight,
        concurrency=body.concurrency,
        rate=None if body.rate is None else body.rate.value(),
        max_size=body.max_size,
    )
    return GroupShown.model_validate(await of_queue.get(group))


@router.post("/queues/{queue}/groups/{group}/pause", name="group.pause")
async def pause_group(caller: LimitWriter, site: TheSite, queue: QueueName, group: Name) -> GroupShown:
    """Start no more of its jobs; those that run go on."""
    await site.queue(queue).groups.pause(group)
    return GroupShown.model_validate(await site.queue(queue).groups.get(group))


@router.post("/queues/{queue}/groups/{group}/resume", name="group.resume")
async def resume_group(caller: LimitWriter, site: TheSite, queue: QueueName, group: Name) -> GroupShown:
    """Let its jobs start again."""
    await site.queue(queue).groups.resume(group)
    return GroupShown.model_validate(await site.queue(queue).groups.get(group))


@router.delete("/queues/{queue}/groups/{group}", name="group.unlimit", status_code=204)
async def unset_group(caller: LimitWriter, site: TheSite, queue: QueueName, group: Name) -> Response:
    """Take a group's own limits away: it has the queue's default, or those of its tenant's plan with the next add."""
    await site.queue(queue).groups.get(group)  # QueueMissing, rather than a queue made by a slip
    await site.queue(queue).groups.unset(group)
    site.plans.forget(queue)
    return Response(status_code=204)
