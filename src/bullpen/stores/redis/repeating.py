"""A schedule in BullMQ's words, and back.

Its own fields are the timing and the template of its jobs; a tick carries all of that once more
in its options, from which a Node worker makes the next one. Reading is lenient, as of jobs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bullpen.job.schedule import Overlap, Schedule, ScheduleRecord, Timing
from bullpen.job.spec import NewJob
from bullpen.stores.redis.codec import FIELDS, OPTIONS, decode_options, encode_options

_F = {word: name.encode() for word, name in FIELDS.items()}
_TIMING = {
    "schedule_cron": "cron",
    "schedule_every": "every_ms",
    "schedule_tz": "tz",
    "schedule_start": "start_ms",
    "schedule_end": "end_ms",
    "schedule_limit": "limit",
    "schedule_offset": "offset_ms",
}
_TEXTS = {"cron", "tz"}
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def encode_schedule(schedule: Schedule, *, count: int, paused: bool, ended: bool) -> list[str]:
    """The fields of its hash as a flat list; BullMQ leaves out data that is empty."""
    stored = {
        "name": schedule.name,
        "data": None if schedule.data == b"{}" else schedule.data.decode(),
        "options": encode_options(_template(schedule)).decode(),
        "schedule_overlap": schedule.overlap.value,
        "schedule_paused": "1" if paused else None,
        "schedule_ended": "1" if ended else None,
        "schedule_count": str(count),
    } | {word: _written(getattr(schedule.timing, name)) for word, name in _TIMING.items()}
    return [text for word, value in stored.items() if value is not None for text in (FIELDS[word], value)]


def encode_tick_options(schedule: Schedule, job: NewJob, count: int, at_ms: int, now_ms: int) -> bytes:
    """The options of a tick, with all that a Node worker needs to add the one after it."""
    timing = schedule.timing
    repeat = {FIELDS[word]: getattr(timing, name) for word, name in _TIMING.items()} | {OPTIONS["repeat_count"]: count}
    options: dict[str, Any] = _decode(encode_options(job))
    options |= {
        OPTIONS["repeat"]: {name: value for name, value in repeat.items() if value is not None},
        OPTIONS["schedule"]: schedule.id,
        OPTIONS["added"]: now_ms,
    }
    if timing.cron is not None:
        options[OPTIONS["tick_time"]] = at_ms
    return _encode(options)


def read_schedule(
    queue: str, schedule_id: str, last_ms: int, flat: Sequence[bytes], tick_options: bytes, pending: bytes
) -> ScheduleRecord:
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    get = fields.get
    ticks = _whole(get(_F["schedule_ticks"])) or 0
    return ScheduleRecord(
        schedule=Schedule(
            queue=queue,
            id=schedule_id,
            name=get(_F["name"], b"").decode(),
            data=get(_F["data"], b"{}"),
            spec=decode_options(get(_F["options"], b"")),
            timing=_read_timing(fields),
            # One that Node made says nothing of it, and there ticks overlap.
            overlap=Overlap.SKIP if get(_F["schedule_overlap"]) == Overlap.SKIP.value.encode() else Overlap.ALLOW,
        ),
        last_ms=last_ms,
        pending=pending != b"",
        count=next((n for n in (_count(tick_options), _whole(get(_F["schedule_count"]))) if n is not None), ticks),
        ticks=ticks,
        skipped=_whole(get(_F["schedule_skipped"])) or 0,
        paused=_F["schedule_paused"] in fields,
        ended=_F["schedule_ended"] in fields,
    )


def _template(schedule: Schedule) -> NewJob:
    return NewJob(schedule.queue, schedule.name, schedule.data, None, schedule.spec)


def _read_timing(fields: Mapping[bytes, bytes]) -> Timing:
    told: dict[str, Any] = {}
    for word, name in _TIMING.items():
        stored = fields.get(_F[word])
        told[name] = stored.decode() if stored is not None and name in _TEXTS else _whole(stored)
    # Neither is what only a newer BullMQ may know; it ticks for nobody here.
    return Timing(**told)


def _count(tick_options: bytes) -> int | None:
    """Which tick it is, as its options say; they are gone with the tick."""
    try:
        count = _decode(tick_options)[OPTIONS["repeat"]][OPTIONS["repeat_count"]]
    except (msgspec.DecodeError, KeyError, TypeError):
        return None
    return count if isinstance(count, int) else None


def _written(value: object) -> str | None:
    return None if value is None else str(value)


def _whole(stored: bytes | None) -> int | None:
    try:
        return int(float(stored)) if stored else None
    except ValueError:
        return None
