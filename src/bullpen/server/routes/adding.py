"""Adding jobs: one, many, or a tree."""

from starlette.requests import Request

from bullpen.queue.queue import add_all
from bullpen.server.access.allowing import JobAdder
from bullpen.server.adding import check_depth, prepared, prepared_tree
from bullpen.server.guarding import BULK, note
from bullpen.server.models.adding import AddedShown, BulkBody, BulkShown, FlowAdded, FlowBody, NewJobBody
from bullpen.server.routes.routing import QueueName, TheSite, family
from bullpen.stores.base import Added, AddOutcome

router = family("jobs")
many = family("jobs", BULK)

_MAX_FLOW = 10_000


@router.post("/queues/{queue}/jobs", name="job.add", status_code=201)
async def add(request: Request, caller: JobAdder, site: TheSite, queue: QueueName, body: NewJobBody) -> AddedShown:
    """Add one job. Once this is answered, it survives a crash of anything."""
    new = await prepared(site, caller, queue, body)
    job = await site.queue_to_fill(queue).add_prepared(new)
    note(request, target=str(job.ref), tenant=new.spec.tenant, name=new.name)
    return AddedShown(queue=queue, id=job.id, outcome=job.outcome or AddOutcome.ADDED)


@many.post("/queues/{queue}/jobs/bulk", name="job.add_bulk", status_code=201)
async def add_bulk(request: Request, caller: JobAdder, site: TheSite, queue: QueueName, body: BulkBody) -> BulkShown:
    """Add many jobs: all of them or none."""
    new = [await prepared(site, caller, queue, one) for one in body.jobs]
    jobs = await site.queue_to_fill(queue).add_bulk(new)
    note(request, target=queue, count=len(jobs))
    return BulkShown(
        items=[AddedShown(queue=queue, id=job.id, outcome=job.outcome or AddOutcome.ADDED) for job in jobs]
    )


@many.post("/flows", name="flow.add", status_code=201)
async def add_flow(request: Request, caller: JobAdder, site: TheSite, body: FlowBody) -> FlowAdded:
    """Add a job and those that it waits for, in whatever queues: all of them or none."""
    check_depth(body, _MAX_FLOW)
    tree = await prepared_tree(site, caller, body)
    (job,) = await add_all([(site.queue_to_fill(tree.queue), tree)])
    note(request, target=str(job.ref), tenant=tree.spec.tenant, name=tree.name)
    return _shown(body, Added(job.id, job.outcome or AddOutcome.ADDED, job.added.children if job.added else ()))


def _shown(body: FlowBody, added: Added) -> FlowAdded:
    # Below a duplicate nothing was added, and nothing is told.
    children = [_shown(child, one) for child, one in zip(body.children, added.children, strict=False)]
    return FlowAdded(queue=body.queue, id=added.id, outcome=added.outcome, children=children)
