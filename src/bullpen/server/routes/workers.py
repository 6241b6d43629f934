"""Who works."""

from typing import Annotated

import msgspec

from bullpen.server.access.allowing import allowed
from bullpen.server.access.caller import Caller
from bullpen.server.models.workers import WorkerShown, WorkersShown
from bullpen.server.routes.routing import TheSite, family

router = family("workers")


@router.get("/workers")
async def workers(caller: Annotated[Caller, allowed("workers:read", whole=True)], site: TheSite) -> WorkersShown:
    """The workers that beat lately, with what they run."""
    found = await site.standing.workers()
    return WorkersShown(items=[WorkerShown.model_validate(msgspec.to_builtins(worker)) for worker in found])
