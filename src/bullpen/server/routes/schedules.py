"""What comes again and again."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Path, Response
from starlette.requests import Request

from bullpen.errors import BadOption, ScheduleMissing
from bullpen.job.schedule import ScheduleRecord
from bullpen.records.paging import name_in
from bullpen.scheduling.options import ScheduleFields
from bullpen.server.access.allowing import allowed
from bullpen.server.access.caller import Caller
from bullpen.server.adding import prepared
from bullpen.server.guarding import note
from bullpen.server.models.adding import AddedShown, ScheduleBody
from bullpen.server.models.schedules import ScheduleShown, SchedulesShown
from bullpen.server.routes.routing import Cursor, Limit, QueueName, Text, TheSite, family
from bullpen.server.site import Site
from bullpen.server.tenant_names import apart, as_chosen
from bullpen.stores.base import AddOutcome

router = family("schedules")

ScheduleReader = Annotated[Caller, allowed("schedules:read")]
ScheduleWriter = Annotated[Caller, allowed("schedules:write")]
ScheduleId = Annotated[str, Path(min_length=1, max_length=180, pattern=r"^[A-Za-z0-9_.-]+$")]
"""Shorter than the store takes: there must be room for a tenant's mark."""
_PATH = "/queues/{queue}/schedules/{schedule}"


@router.get("/schedules")
async def schedules(
    caller: ScheduleReader, site: TheSite, queue: Text = None, limit: Limit = 100, cursor: Cursor = None
) -> SchedulesShown:
    """All schedules with their next runs, or those of a queue, by queue and id."""
    names = await site.standing.names() if queue is None else [site.queue(queue).name]
    after = ("", "") if cursor is None else _place_in(cursor)
    found: list[tuple[ScheduleRecord, str]] = []
    for name in sorted(filter(caller.sees_queue, names)):
        if name >= after[0] and len(found) <= limit:
            # The store tells those of a queue at once: a page asks for no queue beyond its last one.
            found += [one for one in await _in_queue(site, caller, name) if (name, one[0].id) > after]
    last = found[limit - 1][0] if len(found) > limit else None
    return SchedulesShown(
        items=[_shown(site, record, name) for record, name in found[:limit]],
        next_cursor=None if last is None else f"{last.queue}~{last.id}",
    )


async def _in_queue(site: Site, caller: Caller, queue: str) -> list[tuple[ScheduleRecord, str]]:
    """Those of the queue that the caller sees, by id, each with its name for the caller."""
    seen = [one for one in await site.store.schedules(queue) if caller.sees_tenant(one.schedule.spec.tenant)]
    found = {record.id: as_chosen(caller.tenant, record.id) for record in seen}
    # Somebody made one of the same name for the tenant: then each has to be told by its full one.
    clear = {stored: stored if name != stored and name in found else name for stored, name in found.items()}
    return sorted(((record, clear[record.id]) for record in seen), key=lambda one: one[0].id)


def _place_in(cursor: str) -> tuple[str, str]:
    queue, mark, schedule = cursor.partition("~")
    if not mark:
        raise BadOption(f"cursor: {cursor!r} is not one that a page gave")
    return queue, name_in(schedule)


@router.get(_PATH)
async def schedule(caller: ScheduleReader, site: TheSite, queue: QueueName, schedule: ScheduleId) -> ScheduleShown:
    """One schedule with its next runs."""
    return _shown(site, await _own(site, caller, queue, schedule), schedule)


@router.put(_PATH, name="schedule.put")
async def put(
    request: Request, caller: ScheduleWriter, site: TheSite, queue: QueueName, schedule: ScheduleId, body: ScheduleBody
) -> ScheduleShown:
    """Make the schedule, or change it to this. The same again changes nothing."""
    stored = await _stored(site, caller, queue, schedule)
    job = await prepared(site, caller, queue, body)
    note(request, tenant=job.spec.tenant)
    when = ScheduleFields(
        cron=body.cron,
        every=body.every,
        tz=body.tz,
        start=_instant(body.start_ms),
        end=_instant(body.end_ms),
        limit=body.limit,
        immediately=body.immediately,
        overlap=body.overlap,
    )
    return _shown(site, await site.queue(queue).schedules.upsert(stored, job, **when), schedule)


@router.post(f"{_PATH}/pause", name="schedule.pause")
async def pause(caller: ScheduleWriter, site: TheSite, queue: QueueName, schedule: ScheduleId) -> ScheduleShown:
    """No more ticks until it is resumed."""
    own = await _own(site, caller, queue, schedule)
    return _shown(site, await site.queue(queue).schedules.pause(own.id), schedule)


@router.post(f"{_PATH}/resume", name="schedule.resume")
async def resume(caller: ScheduleWriter, site: TheSite, queue: QueueName, schedule: ScheduleId) -> ScheduleShown:
    """Tick again; what was missed is not made up for."""
    own = await _own(site, caller, queue, schedule)
    return _shown(site, await site.queue(queue).schedules.resume(own.id), schedule)


@router.post(f"{_PATH}/run", name="schedule.run", status_code=201)
async def run(caller: ScheduleWriter, site: TheSite, queue: QueueName, schedule: ScheduleId) -> AddedShown:
    """Add one job now, apart from its ticks."""
    own = await _own(site, caller, queue, schedule)
    job = await site.queue(queue).schedules.run_now(own.id)
    return AddedShown(queue=queue, id=job.id, outcome=job.outcome or AddOutcome.ADDED)


@router.delete(_PATH, name="schedule.remove", status_code=204)
async def remove(caller: ScheduleWriter, site: TheSite, queue: QueueName, schedule: ScheduleId) -> Response:
    """Forget the schedule with its next tick."""
    own = await _own(site, caller, queue, schedule)
    await site.queue(queue).schedules.remove(own.id)
    return Response(status_code=204)


async def _own(site: Site, caller: Caller, queue: str, schedule: str) -> ScheduleRecord:
    """The schedule, if it is the caller's to see; else the same as if there were none."""
    missing = ScheduleMissing(f"no schedule {schedule!r} in queue {queue!r}")
    try:
        record = await site.store.schedule(queue, await _stored(site, caller, queue, schedule))
    except ScheduleMissing:
        raise missing from None
    if not caller.sees_tenant(record.schedule.spec.tenant):
        raise missing
    return record


async def _stored(site: Site, caller: Caller, queue: str, schedule: str) -> str:
    """The store's name for what the caller calls so: one that was made for its tenant, else the tenant's own."""
    if caller.tenant is None:
        return schedule
    try:
        record = await site.store.schedule(queue, schedule)
    except ScheduleMissing:
        return apart(caller.tenant, schedule)
    return schedule if caller.sees_tenant(record.schedule.spec.tenant) else apart(caller.tenant, schedule)


def _shown(site: Site, record: ScheduleRecord, name: str) -> ScheduleShown:
    shown = ScheduleShown.of(record, site.clock.now_ms(), site.queue(record.queue).codec)
    return shown.model_copy(update={"id": name})


def _instant(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)
