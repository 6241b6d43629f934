"""Tenants and their plans."""

from typing import Annotated

import msgspec
from fastapi import Response
from starlette.requests import Request

from bullpen.records.tenants import Tenant
from bullpen.server.access.allowing import allowed
from bullpen.server.access.caller import Caller
from bullpen.server.guarding import note
from bullpen.server.models.base import Page
from bullpen.server.models.records import TenantBody, TenantChange, TenantShown, shown_plan
from bullpen.server.routes.routing import Cursor, Limit, Name, TheSite, family

router = family("tenants")

TenantReader = Annotated[Caller, allowed("tenants:read", whole=True)]
TenantWriter = Annotated[Caller, allowed("tenants:write", whole=True)]


@router.get("/tenants")
async def tenants(caller: TenantReader, site: TheSite, limit: Limit = 100, cursor: Cursor = None) -> Page[TenantShown]:
    """All tenants, by id."""
    page = await site.records.tenants.list(limit=limit, cursor=cursor)
    return Page(items=[_shown(tenant) for tenant in page.items], next_cursor=page.next_cursor)


@router.post("/tenants", name="tenant.create", status_code=201)
async def create(request: Request, caller: TenantWriter, site: TheSite, body: TenantBody) -> TenantShown:
    """Make a tenant; its plan counts from now on."""
    tenant = await site.records.tenants.create(body.id, name=body.name, plan=body.plan.plan())
    note(request, target=tenant.id, tenant=tenant.id)
    await site.plans.change(await site.standing.names(), None, tenant)
    return _shown(tenant)


@router.get("/tenants/{tenant_id}")
async def tenant(caller: TenantReader, site: TheSite, tenant_id: Name) -> TenantShown:
    """One tenant with its plan."""
    return _shown(await site.records.tenants.get(tenant_id))


@router.put("/tenants/{tenant_id}", name="tenant.change")
async def change(
    request: Request,
    caller: TenantWriter,
    site: TheSite,
    tenant_id: Name,
    body: TenantChange,
) -> TenantShown:
    """Give a tenant another plan, or take no more jobs of it."""
    note(request, tenant=tenant_id, changed=sorted(body.model_fields_set))
    before = after = await site.records.tenants.get(tenant_id)
    if body.plan is not None:
        after = await site.records.tenants.set_plan(tenant_id, body.plan.plan())
    if body.is_disabled is not None:
        after = await site.records.tenants.disable(tenant_id, is_disabled=body.is_disabled)
    await site.plans.change(await site.standing.names(), before, after)
    return _shown(after)


@router.delete("/tenants/{tenant_id}", name="tenant.remove", status_code=204)
async def remove(caller: TenantWriter, site: TheSite, tenant_id: Name) -> Response:
    """Forget a tenant and its plan; its jobs, keys and audit entries stay."""
    before = await site.records.tenants.get(tenant_id)
    await site.records.tenants.remove(tenant_id)
    await site.plans.change(await site.standing.names(), before, None)
    return Response(status_code=204)


def _shown(tenant: Tenant) -> TenantShown:
    return TenantShown.model_validate(msgspec.structs.asdict(tenant) | {"plan": shown_plan(tenant.plan)})
