"""Is all well: for probes and scrapes, at the paths where worker processes have them too."""

import asyncio
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import JSONResponse, PlainTextResponse, Response

from bullpen.agents.llm.health import Standing
from bullpen.errors import BullpenError
from bullpen.records.outbox_rows import OutboxStanding
from bullpen.server.access.allowing import allowed
from bullpen.server.access.caller import Caller
from bullpen.server.guarding import GuardedRoute, PublicRoute
from bullpen.server.routes.routing import TheSite
from bullpen.server.site import Site
from bullpen.stores.base import Counts
from bullpen.telemetry.checks import Check, Health, HealthOptions, Look, QueueLook, Status, judge, worst
from bullpen.telemetry.gauges import ProviderGauges, RecordsGauges, RunGauges, StoreGauges
from bullpen.telemetry.registry import CONTENT_TYPE, Registry

public = APIRouter(route_class=PublicRoute, tags=["health"])
router = APIRouter(route_class=GuardedRoute, tags=["health"])

_LIMIT_S = 2.0
_LATE_MS = 60_000
"""From here on an outbox whose rows are not sent, or a read model that lags, is not well."""
_JSON = {"application/json": {"schema": {"type": "object"}}}
_WELL_OR_NOT: dict[int | str, dict[str, Any]] = {
    200: {"description": "It is well.", "content": _JSON},
    503: {"description": "It is not well.", "content": _JSON},
}
MetricsReader = Annotated[Caller, allowed("metrics:read", whole=True)]


@public.get("/health/live", responses=_WELL_OR_NOT)
@public.get("/v1/health/live", include_in_schema=False)
async def live() -> Response:
    """Whether the process answers at all."""
    return _answer(Health(Status.HEALTHY, {}))


@public.get("/health/ready", responses=_WELL_OR_NOT)
@public.get("/v1/health/ready", include_in_schema=False)
async def ready(site: TheSite) -> Response:
    """Whether the store and the records answer. What is wrong with them is in the log only."""
    checks = {"store": await _check(site.store.workers()), "records": await _check(site.records.jobs.lag())}
    is_well = all(check.status is Status.HEALTHY for check in checks.values())
    return _answer(Health(Status.HEALTHY if is_well else Status.UNHEALTHY, checks))


@router.get("/health", responses=_WELL_OR_NOT)
@router.get("/v1/health", include_in_schema=False)
async def health(caller: MetricsReader, site: TheSite) -> Response:
    """Store, workers, queues, dead letters, outbox and read model, each healthy, degraded or unhealthy."""
    found = judge(await look(site), site.settings.health or HealthOptions())
    checks = found.checks | await _check_records(site)
    return _answer(Health(worst(check.status for check in checks.values()), checks))


@router.get("/metrics", response_class=PlainTextResponse)
@router.get("/v1/metrics", response_class=PlainTextResponse, include_in_schema=False)
async def metrics(caller: MetricsReader, site: TheSite) -> Response:
    """Of the whole store, and what this server itself counts, in the text that Prometheus reads."""
    registry = Registry()
    StoreGauges(registry).show(await look(site))
    await _show_runs(site, RunGauges(registry), ProviderGauges(registry))
    await _show_records(site, RecordsGauges(registry))
    return Response(registry.text() + site.metrics.text(), media_type=CONTENT_TYPE)


async def _show_runs(site: Site, gauges: RunGauges, of_providers: ProviderGauges) -> None:
    """Nothing where the records do not answer: what the store said is told all the same."""
    try:
        async with asyncio.timeout(_LIMIT_S):
            counts = await site.records.runs.under_way()
            health = await site.provider_health()
    except (TimeoutError, BullpenError):
        return
    for name, one in health.items():
        of_providers.show(name, one.standing, Standing)
    gauges.show({state: one.runs for state, one in counts.items()}, {state: one.tasks for state, one in counts.items()})


async def _stand_of_records(site: Site) -> tuple[OutboxStanding, int | None]:
    async with asyncio.timeout(_LIMIT_S):
        return await site.relay.standing(), await site.records.jobs.behind_ms()


async def _show_records(site: Site, gauges: RecordsGauges) -> None:
    try:
        outbox, behind_ms = await _stand_of_records(site)
    except (TimeoutError, BullpenError, SQLAlchemyError):
        return
    gauges.show(outbox.pending, outbox.problems, behind_ms)


async def _check_records(site: Site) -> dict[str, Check]:
    try:
        outbox, behind_ms = await _stand_of_records(site)
    except (TimeoutError, BullpenError, SQLAlchemyError) as error:
        return {"records": Check(Status.UNHEALTHY, {"error": getattr(error, "code", "no answer in time")})}
    waits_ms = 0 if outbox.oldest_ms is None else max(0, site.clock.now_ms() - outbox.oldest_ms)
    told = {"pending": outbox.pending, "problems": outbox.problems, "oldest_waiting_seconds": waits_ms / 1000}
    is_stuck = outbox.problems > 0 or waits_ms > _LATE_MS
    is_late = behind_ms is not None and behind_ms > _LATE_MS
    behind = {"behind_seconds": None if behind_ms is None else behind_ms / 1000}
    return {
        "outbox": Check(Status.DEGRADED if is_stuck else Status.HEALTHY, told),
        "read_model": Check(Status.DEGRADED if is_late else Status.HEALTHY, behind),
    }


async def look(site: Site) -> Look:
    """What checks and metrics need, from the read model: scraping must not cost the store."""
    begun_ms = site.clock.mono_ms()
    try:
        async with asyncio.timeout(_LIMIT_S):
            workers = tuple(await site.standing.workers())
            took_ms = site.clock.mono_ms() - begun_ms
            stands = await site.standing.queues()
    except TimeoutError:
        return Look(error=f"no answer within {_LIMIT_S:g} s")
    except BullpenError as error:
        return Look(error=f"{type(error).__name__}: {error}")
    queues = {
        stand.name: QueueLook(Counts(**stand.counts, paused=stand.paused), stand.oldest_waiting_ms) for stand in stands
    }
    return Look(queues, workers, took_ms)


async def _check(asking: Any) -> Check:
    try:
        async with asyncio.timeout(_LIMIT_S):
            await asking
    except (TimeoutError, BullpenError) as error:
        return Check(Status.UNHEALTHY, {"error": getattr(error, "code", "no answer in time")})
    return Check(Status.HEALTHY)


def _answer(health: Health) -> Response:
    return JSONResponse(msgspec.to_builtins(health), 503 if health.status is Status.UNHEALTHY else 200)
