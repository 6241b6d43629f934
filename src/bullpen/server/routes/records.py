"""The audit log, saved views and alerts."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query, Response
from starlette.requests import Request

from bullpen.builtin.alerting import read_condition
from bullpen.errors import BadOption, RecordMissing
from bullpen.records.audit import AuditFilter
from bullpen.records.sealing import SEALED
from bullpen.records.settings import SLACK, AlertSetting
from bullpen.server.access.allowing import allowed
from bullpen.server.access.caller import Caller
from bullpen.server.guarding import note
from bullpen.server.models.base import Page
from bullpen.server.models.records import AlertBody, AlertShown, AuditShown, ViewBody, ViewShown, shown_channel
from bullpen.server.problems import forbidden
from bullpen.server.routes.filtering import tenant_of
from bullpen.server.routes.routing import Cursor, Millis, Name, Text, TheSite, family
from bullpen.server.site import Site

router = family("records")

ViewOwner = Annotated[Caller, allowed("views:write")]
AlertReader = Annotated[Caller, allowed("alerts:read")]
AlertWriter = Annotated[Caller, allowed("alerts:write")]


@router.get("/audit")
async def audit(
    caller: Annotated[Caller, allowed("audit:read")],
    site: TheSite,
    tenant: Text = None,
    actor: Text = None,
    action: Text = None,
    target: Text = None,
    since_ms: Millis = None,
    until_ms: Millis = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    cursor: Cursor = None,
) -> Page[AuditShown]:
    """Who did what, the newest first."""
    wanted = AuditFilter(
        tenant=tenant_of(caller, tenant),
        actor=actor,
        action=action,
        target=target,
        since_ms=since_ms,
        until_ms=until_ms,
    )
    page = await site.records.audit.list(wanted, limit=limit, cursor=cursor)
    return Page(items=[AuditShown.model_validate(entry) for entry in page.entries], next_cursor=page.next_cursor)


@router.get("/views")
async def views(caller: ViewOwner, site: TheSite) -> Page[ViewShown]:
    """One's own views, and those that others share, by name."""
    found = await site.records.views.list(caller.name, tenant=caller.tenant)
    # What others look at may name queues that the caller does not see.
    seen = [view for view in found if caller.queues is None or view.owner == caller.name]
    return Page(items=[ViewShown.model_validate(view) for view in seen])


@router.get("/views/{name}")
async def view(caller: ViewOwner, site: TheSite, name: Name) -> ViewShown:
    """One's own view of this name."""
    for found in await site.records.views.list(caller.name, tenant=caller.tenant):
        if found.owner == caller.name and found.name == name:
            return ViewShown.model_validate(found)
    raise RecordMissing(f"no view {name!r}")


@router.put("/views/{name}", name="view.save")
async def save_view(caller: ViewOwner, site: TheSite, name: Name, body: ViewBody) -> ViewShown:
    """Keep a view of one's own under this name."""
    view = await site.records.views.save(
        caller.name,
        name,
        page=body.page,
        query=body.query,
        tenant=caller.tenant,
        is_shared=body.is_shared,
    )
    return ViewShown.model_validate(view)


@router.delete("/views/{name}", name="view.remove", status_code=204)
async def remove_view(caller: ViewOwner, site: TheSite, name: Name) -> Response:
    """Drop a view of one's own."""
    view_id = await _own_view(site, caller, name)
    if view_id is None:
        raise RecordMissing(f"no view {name!r}")
    await site.records.views.remove(caller.name, view_id, tenant=caller.tenant)
    return Response(status_code=204)


async def _own_view(site: TheSite, caller: Caller, name: str) -> str | None:
    found = await site.records.views.list(caller.name, tenant=caller.tenant)
    return next((view.id for view in found if view.owner == caller.name and view.name == name), None)


@router.get("/alerts")
async def alerts(caller: AlertReader, site: TheSite) -> Page[AlertShown]:
    """All alerts that are set, by name."""
    found = await site.records.alerts.list(tenant=caller.tenant)
    return Page(items=[AlertShown.of(alert) for alert in found if _counts_own(caller, alert.condition)])


@router.put("/alerts", name="alert.save")
async def save_alert(request: Request, caller: AlertWriter, site: TheSite, body: AlertBody) -> AlertShown:
    """Set an alert, or with its id change it; whose it is, stays."""
    before = await _alert_of(site, caller, body.id) if body.id else None
    tenant = caller.tenant if before is None else before.tenant
    note(request, target=body.name, tenant=tenant)
    if before is None or body.is_enabled:
        # One of another shape looks as if all were well; what is there already may be turned off.
        read_condition(body.condition)
    if not _counts_own(caller, body.condition):
        raise forbidden("condition: the caller sees some queues only; say one of these as `queue`")
    alert = await site.records.alerts.save(
        body.name,
        condition=body.condition,
        channel=_channel_for(body.channel, before),
        tenant=tenant,
        is_enabled=body.is_enabled,
        alert_id=body.id or None,
    )
    return AlertShown.of(alert)


@router.delete("/alerts/{alert_id}", name="alert.remove", status_code=204)
async def remove_alert(request: Request, caller: AlertWriter, site: TheSite, alert_id: Name) -> Response:
    """Drop an alert."""
    before = await _alert_of(site, caller, alert_id)
    note(request, tenant=before.tenant, name=before.name)
    await site.records.alerts.remove(alert_id, tenant=before.tenant)
    return Response(status_code=204)


async def _alert_of(site: Site, caller: Caller, alert_id: str) -> AlertSetting:
    """If it is the caller's to see; else the same RecordMissing as for one that never was."""
    for found in await site.records.alerts.list(tenant=caller.tenant):
        if found.id == alert_id and _counts_own(caller, found.condition):
            return found
    raise RecordMissing(f"no alert {alert_id!r}")


def _channel_for(asked: dict[str, Any], before: AlertSetting | None) -> dict[str, Any]:
    """As it is given; what was shown of Slack's address stands for the address that is kept."""
    url = asked.get(SLACK)
    if before is not None and SLACK in before.channel and url == shown_channel(before.channel)[SLACK]:
        return asked | {SLACK: before.channel[SLACK]}
    if isinstance(url, str) and (url.endswith("…") or url.startswith(SEALED)):
        raise BadOption("channel: the whole address of Slack, not what is shown of it")
    return asked


def _counts_own(caller: Caller, condition: Mapping[str, Any]) -> bool:
    """Who sees some queues only has alerts of one of these; one without a queue counts all."""
    queue = condition.get("queue")
    return caller.queues is None or (isinstance(queue, str) and caller.sees_queue(queue))
