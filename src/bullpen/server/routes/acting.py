"""Doing something to one job, or to some of them."""

from fastapi import Response
from starlette.requests import Request

from bullpen.errors import BadOption
from bullpen.job.record import JobRef
from bullpen.records.tenants import Plan
from bullpen.server.access.allowing import JobCanceller, JobReader, JobRetrier, JobSignaller, JobWriter
from bullpen.server.adding import check_queue_to_fill
from bullpen.server.bulk_actions import DONE, PERMISSION, act_on
from bullpen.server.descendants import check_below
from bullpen.server.guarding import note
from bullpen.server.models.acting import (
    ActionsBody,
    CancelBody,
    Cancelled,
    ChangeBody,
    Delivered,
    Outcome,
    Outcomes,
    SignalBody,
)
from bullpen.server.models.base import Done
from bullpen.server.problems import forbidden
from bullpen.server.routes.routing import JobId, QueueName, TheSite, family, job_of

router = family("jobs")


@router.post("/queues/{queue}/jobs/{job_id}/retry", name="job.retry")
async def retry(request: Request, caller: JobRetrier, site: TheSite, queue: QueueName, job_id: JobId) -> Done:
    """Run a finished job again, with fresh attempts."""
    job = await job_of(site, caller, queue, job_id)
    note(request, tenant=job.tenant)
    await site.store.retry(job.ref)
    return Done()


@router.post("/queues/{queue}/jobs/{job_id}/promote", name="job.promote")
async def promote(request: Request, caller: JobWriter, site: TheSite, queue: QueueName, job_id: JobId) -> Done:
    """Let a delayed or parked job run now."""
    job = await job_of(site, caller, queue, job_id)
    note(request, tenant=job.tenant)
    await site.store.promote(job.ref)
    return Done()


@router.post("/queues/{queue}/jobs/{job_id}/cancel", name="job.cancel")
async def cancel(
    request: Request, caller: JobCanceller, site: TheSite, queue: QueueName, job_id: JobId, body: CancelBody
) -> Cancelled:
    """End a job that waits; ask the worker of one that runs to stop it."""
    job = await job_of(site, caller, queue, job_id)
    note(request, tenant=job.tenant, reason=body.reason)
    if body.children:
        await check_below(site, caller, job.ref, only_pending=True)
    outcome = await site.queue(queue).job(job.id).cancel(body.reason, children=body.children)
    return Cancelled(outcome=outcome)


@router.post("/queues/{queue}/jobs/{job_id}/signal", name="job.signal")
async def signal(
    request: Request, caller: JobSignaller, site: TheSite, queue: QueueName, job_id: JobId, body: SignalBody
) -> Delivered:
    """Send the job a signal: it wakes if it waits for this one, or finds it when it asks."""
    job = await job_of(site, caller, queue, job_id)
    note(request, tenant=job.tenant, signal=body.name)
    return Delivered(outcome=await site.queue(queue).job(job.id).signal(body.name, body.payload))


@router.patch("/queues/{queue}/jobs/{job_id}", name="job.change")
async def change(
    request: Request, caller: JobWriter, site: TheSite, queue: QueueName, job_id: JobId, body: ChangeBody
) -> Done:
    """Give a job other data, another delay or another priority."""
    job = await job_of(site, caller, queue, job_id)
    note(request, tenant=job.tenant, changed=sorted(body.model_fields_set))
    handle = site.queue(queue).job(job.id)
    if not body.model_fields_set:
        raise BadOption("data: give data, delay or priority")
    if "data" in body.model_fields_set:
        check_queue_to_fill(queue)
        site.queue(queue).payload(body.data)  # PayloadTooLarge before anything is changed
    priority = None if body.priority is None else await _priority(site, caller.tenant, body.priority)
    # First what is refused in most states: a refusal leaves the job as it was.
    if body.delay is not None:
        await handle.change_delay(body.delay)
    if priority is not None:
        await handle.change_priority(priority)
    if "data" in body.model_fields_set:
        await handle.update_data(body.data)
    return Done()


async def _priority(site: TheSite, tenant_id: str | None, asked: int) -> int:
    """What the plan of a caller's tenant, or the usual one, allows at an add, it allows now."""
    if tenant_id is None:
        return asked
    tenant = await site.plans.tenant(tenant_id)
    return (Plan() if tenant is None else tenant.plan).priority_for(asked)


@router.delete("/queues/{queue}/jobs/{job_id}", name="job.remove", status_code=204)
async def remove(request: Request, caller: JobWriter, site: TheSite, queue: QueueName, job_id: JobId) -> Response:
    """Forget a job that is not active, and all its children."""
    job = await job_of(site, caller, queue, job_id)
    note(request, tenant=job.tenant)
    await check_below(site, caller, job.ref)
    await site.store.remove(job.ref)
    return Response(status_code=204)


@router.post("/jobs/actions", name="job.actions")
async def actions(request: Request, caller: JobReader, site: TheSite, body: ActionsBody) -> Outcomes:
    """The same for some jobs at once; each has its own outcome."""
    if PERMISSION[body.action] not in caller.permissions:
        raise forbidden(f"the role {caller.role} has not the permission {PERMISSION[body.action]}")
    outcomes = await act_on(site, caller, body.action, [JobRef(one.queue, one.id) for one in body.jobs])
    done = outcomes.count(DONE)
    note(request, target=f"{len(body.jobs)} jobs", act=body.action, done=done, jobs=_named(body))
    items = [
        Outcome(queue=one.queue, id=one.id, outcome=outcome) for one, outcome in zip(body.jobs, outcomes, strict=True)
    ]
    return Outcomes(items=items, done=done)


def _named(body: ActionsBody) -> list[str]:
    """Some of them, for the audit log."""
    return [f"{one.queue}/{one.id}" for one in body.jobs[:20]]
