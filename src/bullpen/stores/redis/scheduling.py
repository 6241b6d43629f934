"""Schedules on BullMQ's keys: Node's workers advance ours, and ours advance Node's."""

from collections.abc import Sequence
from typing import Any

import msgspec

from bullpen.errors import ScheduleMissing
from bullpen.job.record import Lease
from bullpen.job.schedule import Schedule, ScheduleRecord, Tick, tick_of
from bullpen.job.spec import NewJob
from bullpen.stores.base import ScheduleOutcome, TickStart
from bullpen.stores.redis import scripts
from bullpen.stores.redis.asking import Batch, Message, ask_runnable, encode
from bullpen.stores.redis.repeating import encode_schedule, encode_tick_options, read_schedule
from bullpen.stores.redis.site import MISSING, Site


async def put(
    site: Site, schedule: Schedule, next_ms: int | None, seen_ms: int | None, *, count: int, paused: bool
) -> ScheduleOutcome:
    now_ms = site.clock.now_ms()
    message: Message = {
        "now": now_ms,
        "id": schedule.id,
        "fields": encode_schedule(schedule, count=count, paused=paused, ended=next_ms is None and not paused),
    }
    if seen_ms is not None:
        message["seen"] = seen_ms
    if next_ms is None:
        # No tick is for this time: a Node worker that holds the one before finds that it is not the newest.
        message["rest_at"] = (seen_ms or now_ms) - 1
    else:
        message |= _next(site, schedule, next_ms, count, now_ms)
    word = await site.ask(scripts.PUT_SCHEDULE, schedule.queue, encode(message))
    return ScheduleOutcome(word.decode())


async def advance(site: Site, queue: str, schedule_id: str, tick_ms: int, next_ms: int | None) -> bool:
    now_ms = site.clock.now_ms()
    message: Message = {"now": now_ms, "id": schedule_id, "from": tick_ms}
    if next_ms is not None:
        try:
            record = await one(site, queue, schedule_id)
        except ScheduleMissing:
            return False
        message |= _next(site, record.schedule, next_ms, record.count + 1, now_ms)
    return bool(await site.ask(scripts.ADVANCE_SCHEDULE, queue, encode(message)) == b"done")


def _next(site: Site, schedule: Schedule, next_ms: int, count: int, now_ms: int) -> Message:
    tick = Tick(schedule.id, next_ms)
    spec = msgspec.structs.replace(schedule.spec, delay_ms=max(0, next_ms - now_ms))
    job = NewJob(schedule.queue, schedule.name, schedule.data, tick.job_id, spec)
    options = encode_tick_options(schedule, job, count, next_ms, now_ms).decode()
    return {
        "next": next_ms,
        "count": count,
        "tick": Batch(site.keys).job(job) | {"schedule": schedule.id, "options": options},
    }


async def start_tick(site: Site, lease: Lease) -> TickStart:
    tick = tick_of(lease.ref.id)
    if tick is None:
        return TickStart(None)
    queue = lease.ref.queue
    found = await site.ask(scripts.START_TICK, queue, lease.ref.id, lease.token, str(lease.epoch), tick.schedule)
    if not found:
        return TickStart(None)
    told, running = found
    return TickStart(_read(queue, *told), running.decode() or None)


async def remove(site: Site, queue: str, schedule_id: str) -> None:
    if await site.ask(scripts.REMOVE_SCHEDULE, queue, schedule_id, site.now) == MISSING:
        raise _missing(queue, schedule_id)


async def one(site: Site, queue: str, schedule_id: str) -> ScheduleRecord:
    found = await site.ask(scripts.SCHEDULES, queue, schedule_id)
    if not found:
        raise _missing(queue, schedule_id)
    return _read(queue, *found[0])


async def all_of(site: Site, queue: str) -> Sequence[ScheduleRecord]:
    found = await site.ask(scripts.SCHEDULES, queue, "")
    return sorted((_read(queue, *told) for told in found), key=lambda record: record.id)


async def idle(site: Site, queues: Sequence[str]) -> Sequence[ScheduleRecord]:
    if not queues:
        return []
    keys = site.keys
    message = ask_runnable(keys, queues, site.clock.now_ms())
    found = await site.connection.run(scripts.IDLE_SCHEDULES, keys.meta(queues[0]), message)
    return [_read(keys.queue_of(base), *told) for base, told in found]


def _read(queue: str, schedule_id: bytes, last_ms: Any, flat: Any, options: bytes, pending: bytes) -> ScheduleRecord:
    return read_schedule(queue, schedule_id.decode(), int(last_ms), flat, options, pending)


def _missing(queue: str, schedule_id: str) -> ScheduleMissing:
    return ScheduleMissing(f"no schedule {schedule_id!r} in queue {queue!r}")
