"""The sandboxes of all workers."""

from typing import Annotated

from bullpen.agents.sandbox.telling import all_sandboxes
from bullpen.server.access.allowing import allowed
from bullpen.server.access.caller import Caller
from bullpen.server.models.base import Count
from bullpen.server.models.sandboxes import SandboxesShown, SandboxItem
from bullpen.server.routes.routing import TheSite, family

router = family("sandboxes")

SandboxReader = Annotated[Caller, allowed("sandboxes:read", whole=True)]
SandboxWriter = Annotated[Caller, allowed("sandboxes:write", whole=True)]


@router.get("/sandboxes")
async def sandboxes(caller: SandboxReader, site: TheSite) -> SandboxesShown:
    """The sandboxes of all workers, as each told of its own in the last minute."""
    found = await all_sandboxes(site.records.sandboxes)
    return SandboxesShown(items=[SandboxItem.model_validate(one) for one in found])


@router.post("/sandboxes/restart", name="sandboxes.restart")
async def restart(caller: SandboxWriter, site: TheSite) -> Count:
    """Have all pools replace their unused sandboxes; those in use go when they come back. How many pools."""
    return Count(count=await site.records.sandboxes.ask_restart())
