"""Who one is; logging in and out."""

from importlib.metadata import version

from bullpen.server.access.allowing import MeReader
from bullpen.server.access.roles import OF_ALL_TENANTS
from bullpen.server.models.access import Me
from bullpen.server.routes.routing import TheSite, family

router = family("me")


@router.get("/me")
async def me(caller: MeReader, site: TheSite) -> Me:
    """Who calls, and what they may do."""
    return Me(
        name=caller.name,
        role=caller.role,
        tenant=caller.tenant,
        queues=None if caller.queues is None else sorted(caller.queues),
        kind=caller.kind,
        csrf=caller.csrf,
        permissions=sorted(caller.permissions if caller.tenant is None else caller.permissions - OF_ALL_TENANTS),
        version=version("bullpen"),
        store=site.store.place if caller.tenant is None else "",
        records="postgresql" if site.records.database.is_postgres else "sqlite",
    )
