"""All queues at one glance."""

from bullpen.server.access.allowing import QueueReader
from bullpen.server.access.caller import Caller
from bullpen.server.models.queues import Counts, Overview, QueueShown
from bullpen.server.routes.queues import stands_of
from bullpen.server.routes.routing import TheSite, family

router = family("overview")


def _sees_workers(caller: Caller) -> bool:
    """Who sees but a part of the work is not told how many do it."""
    return caller.tenant is None and caller.queues is None


@router.get("/overview")
async def overview(caller: QueueReader, site: TheSite) -> Overview:
    """Every queue with its counts and rates, and the sums of all."""
    stands = await stands_of(site, caller)
    totals = {name: sum(stand.counts[name] for stand in stands) for name in Counts.model_fields}
    behind = [stand.behind_ms for stand in stands]
    known = [one for one in behind if one is not None]
    return Overview(
        queues=[QueueShown.model_validate(stand) for stand in stands],
        workers=len(await site.standing.workers()) if _sees_workers(caller) else 0,
        totals=Counts.model_validate(totals),
        behind_ms=None if len(known) < len(behind) else max(known, default=0),
    )
