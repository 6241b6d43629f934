"""Webhooks: who is told of queue events over HTTP, and how that went."""

from typing import Annotated

import msgspec
from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from bullpen.builtin.messages import QUEUE, tag_of, trial
from bullpen.errors import RecordMissing
from bullpen.queue.trips import add_jobs
from bullpen.records.model.searching import JobFilter
from bullpen.records.webhooks import NewWebhook, Webhook
from bullpen.server.access.allowing import allowed
from bullpen.server.access.caller import Caller
from bullpen.server.guarding import note, replay
from bullpen.server.models.base import Page
from bullpen.server.models.jobs import JobRows
from bullpen.server.models.webhooks import (
    NewWebhookShown,
    SecretShown,
    TrialShown,
    WebhookBody,
    WebhookChange,
    WebhookShown,
)
from bullpen.server.problems import forbidden
from bullpen.server.routes.jobs import rows_of
from bullpen.server.routes.routing import Cursor, Name, TheSite, family
from bullpen.server.site import Site

router = family("webhooks")

_PATH = "/webhooks/{webhook_id}"
WebhookReader = Annotated[Caller, allowed("webhooks:read")]
WebhookWriter = Annotated[Caller, allowed("webhooks:write")]


@router.get("/webhooks")
async def webhooks(caller: WebhookReader, site: TheSite) -> Page[WebhookShown]:
    """All webhooks, by name; never their secrets."""
    found = [one for one in await site.records.webhooks.list(tenant=caller.tenant) if _sees(caller, one)]
    return Page(items=[_shown(webhook) for webhook in found])


@router.post("/webhooks", name="webhook.create", status_code=201)
async def create(request: Request, caller: WebhookWriter, site: TheSite, body: WebhookBody) -> NewWebhookShown:
    """Be told of events from now on. The secret is in this answer and nowhere else."""
    site.outgoing.check(body.url)
    if caller.tenant is not None and body.tenant not in (None, caller.tenant):
        raise forbidden("tenant: the caller hears of its own only")
    new = NewWebhook(
        name=body.name,
        url=body.url,
        tenant=caller.tenant or body.tenant,
        queues=_queues_for(caller, body.queues),
        kinds=body.kinds,
        with_result=body.with_result,
        is_enabled=body.is_enabled,
    )
    webhook, secret = await site.records.webhooks.create(new, created_by=caller.name)
    note(request, target=webhook.id, tenant=webhook.tenant, name=webhook.name)
    site.nudge_webhooks()
    shown = NewWebhookShown.model_validate(msgspec.structs.asdict(webhook) | {"secret": secret})
    replay(request, shown.model_copy(update={"secret": None}).model_dump_json().encode())
    return shown


@router.get(_PATH)
async def webhook(caller: WebhookReader, site: TheSite, webhook_id: Name) -> WebhookShown:
    """One webhook; never its secret."""
    return _shown(await _webhook_of(site, caller, webhook_id))


@router.patch(_PATH, name="webhook.change")
async def change(
    request: Request, caller: WebhookWriter, site: TheSite, webhook_id: Name, body: WebhookChange
) -> WebhookShown:
    """Change what is given; with other queues, or enabled again, it is told of what happens from now on."""
    before = await _webhook_of(site, caller, webhook_id)
    values = body.values()
    if "url" in values:
        site.outgoing.check(values["url"])
    if "queues" in values:
        values["queues"] = _queues_for(caller, values["queues"])
    note(request, tenant=before.tenant, changed=sorted(values))
    changed = await site.records.webhooks.change(webhook_id, **values) if values else before
    site.nudge_webhooks()
    return _shown(changed)


@router.delete(_PATH, name="webhook.remove", status_code=204)
async def remove(request: Request, caller: WebhookWriter, site: TheSite, webhook_id: Name) -> Response:
    """Tell it nothing any more; what waits to be delivered ends without a call."""
    before = await _webhook_of(site, caller, webhook_id)
    note(request, tenant=before.tenant, name=before.name)
    await site.records.webhooks.remove(webhook_id)
    return Response(status_code=204)


@router.post(f"{_PATH}/secret", name="webhook.secret")
async def renew_secret(request: Request, caller: WebhookWriter, site: TheSite, webhook_id: Name) -> SecretShown:
    """Sign with another secret from now on. It is in this answer and nowhere else."""
    before = await _webhook_of(site, caller, webhook_id)
    note(request, tenant=before.tenant, name=before.name)
    shown = SecretShown(secret=await site.records.webhooks.renew_secret(webhook_id))
    replay(request, SecretShown(secret=None).model_dump_json().encode())
    return shown


@router.post(f"{_PATH}/test", name="webhook.test", status_code=202)
async def test(request: Request, caller: WebhookWriter, site: TheSite, webhook_id: Name) -> TrialShown:
    """Deliver a trial that stands for no event, also if it is off."""
    found = await _webhook_of(site, caller, webhook_id)
    note(request, tenant=found.tenant, name=found.name)
    job = trial(found, now_ms=site.clock.now_ms())
    site.queue_to_fill(QUEUE)
    (added,) = await add_jobs(site.store, [job])
    site.nudge_webhooks()
    return TrialShown(queue=QUEUE, id=added.id)


@router.get(f"{_PATH}/deliveries")
async def deliveries(
    caller: WebhookReader,
    site: TheSite,
    webhook_id: Name,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    cursor: Cursor = None,
) -> JobRows:
    """Its deliveries, the newest first: each is a job, whose state and error say how it went."""
    found = await _webhook_of(site, caller, webhook_id)
    return await rows_of(site, caller, JobFilter(queue=QUEUE, tag=tag_of(found.id), tenant=found.tenant), limit, cursor)


async def _webhook_of(site: Site, caller: Caller, webhook_id: str) -> Webhook:
    """If it is the caller's to see; else the same RecordMissing as for one that never was."""
    found = await site.records.webhooks.get(webhook_id, tenant=caller.tenant)
    if not _sees(caller, found):
        raise RecordMissing(f"no webhook {webhook_id!r}")
    return found


def _sees(caller: Caller, webhook: Webhook) -> bool:
    """Who sees some queues only sees no webhook that is told of others."""
    return caller.queues is None or (webhook.queues is not None and caller.queues >= set(webhook.queues))


def _queues_for(caller: Caller, asked: list[str] | None) -> list[str] | None:
    if caller.queues is None:
        return asked
    if asked is not None and not caller.queues >= set(asked):
        raise forbidden("queues: the caller sees some of these only")
    return sorted(caller.queues) if asked is None else asked


def _shown(webhook: Webhook) -> WebhookShown:
    return WebhookShown.model_validate(msgspec.structs.asdict(webhook))
