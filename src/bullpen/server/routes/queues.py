"""Queues: how each stands, and what is done to all its jobs at once."""

from bullpen.errors import BadOption, QueueMissing
from bullpen.server.access.allowing import QueueReader
from bullpen.server.access.caller import Caller
from bullpen.server.models.base import Page
from bullpen.server.models.queues import Limits, MinuteShown, Percentiles, QueueDetail, Queues, QueueShown
from bullpen.server.queue_status import QueueStand, percentiles_of
from bullpen.server.routes.routing import Millis, QueueName, TheSite, family, has_jobs
from bullpen.server.site import Site

router = family("queues")

_HOUR_MS = 3_600_000
_MOST_MS = 7 * 86_400_000
_COUNTED = ("minute_ms", "added", "started", "completed", "failed", "retried")


async def stands_of(site: Site, caller: Caller) -> list[QueueStand]:
    """All queues that the caller sees; of those with a tenant, the queues where it has jobs."""
    stands = await site.standing.queues(sees=caller.sees_queue, tenant=caller.tenant)
    return stands if caller.tenant is None else [stand for stand in stands if any(stand.counts.values())]


@router.get("/queues")
async def queues(caller: QueueReader, site: TheSite) -> Queues:
    """Every queue with its counts and rates, by name."""
    return Queues(items=[QueueShown.model_validate(stand) for stand in await stands_of(site, caller)])


@router.get("/queues/{queue}")
async def queue(caller: QueueReader, site: TheSite, queue: QueueName) -> QueueDetail:
    """One queue; for who sees all tenants with its limits and the counts of the 50 that have most jobs."""
    if not await has_jobs(site, caller.tenant, queue):
        raise QueueMissing(f"no queue {queue!r}")
    standing = await site.store.limits(queue)
    shown = QueueShown.model_validate(await site.standing.queue(queue, tenant=caller.tenant)).model_dump()
    if caller.tenant is not None:
        return QueueDetail(**shown, limits=None, tenants=None)
    counted = await site.records.jobs.counts_by_tenant(queue)
    tenants = {name: {str(state): n for state, n in states.items()} for name, states in counted.counts.items()}
    return QueueDetail(**shown, limits=Limits.of(standing), tenants=tenants, more_tenants=counted.more)


@router.get("/queues/{queue}/minutes")
async def minutes(
    caller: QueueReader, site: TheSite, queue: QueueName, since_ms: Millis = None, until_ms: Millis = None
) -> Page[MinuteShown]:
    """What happened in each minute, of the last hour if nothing else is asked; those without anything are left out."""
    until_ms = site.clock.now_ms() + 1 if until_ms is None else until_ms
    since_ms = until_ms - _HOUR_MS if since_ms is None else since_ms
    if until_ms - since_ms > _MOST_MS:
        raise BadOption("since_ms: at most seven days at a time")
    found = await site.records.jobs.rates(since_ms=since_ms, until_ms=until_ms, queue=queue, tenant=caller.tenant)
    return Page(
        items=[
            MinuteShown(
                **{name: getattr(minute, name) for name in _COUNTED},
                wait_ms=Percentiles.model_validate(percentiles_of([minute.wait])),
                run_ms=Percentiles.model_validate(percentiles_of([minute.processing])),
            )
            for minute in found
        ]
    )
