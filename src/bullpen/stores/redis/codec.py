"""The stored names of a job's record and options, and a spec as BullMQ's options and back.

BullMQ reads its own options and leaves the others alone, so what it has no word for travels
under one option of ours. Reading is lenient: whatever another program wrote, a job has a spec.
"""

from functools import lru_cache
from typing import Any

import msgspec

from bullpen.job.spec import KEEP_ALL, Backoff, Dedup, JobSpec, Keep, NewJob, OnFailure
from bullpen.stores.redis.tracing import decode_trace, encode_trace, other_headers

FIELDS = {
    # The job's record:
    "name": "name",
    "data": "data",
    "options": "opts",
    "added": "timestamp",
    "delay": "delay",
    "priority": "priority",
    "dedup_id": "deid",
    "started": "processedOn",
    "worker": "pb",
    "epoch": "ats",
    "attempts_made": "atm",
    "legacy_attempts_made": "attemptsMade",
    "stalls": "stc",
    "progress": "progress",
    "result": "returnvalue",
    "failed_reason": "failedReason",
    "stacks": "stacktrace",
    "finished": "finishedOn",
    "doomed": "defa",
    "scheduler": "rjk",
    "parent_key": "parentKey",
    "parent": "parent",
    # The same, what BullMQ has no field for:
    "tenant": "bullpen:tenant",
    "group": "bullpen:group",
    "start_by": "bullpen:startBy",
    "failure": "bullpen:failure",
    "note": "bullpen:note",
    "cancelling": "bullpen:cancelling",
    "entered": "bullpen:entered",
    "crash": "bullpen:crash:",
    # A schedule, beside name, data and options, which are those of its jobs:
    "schedule_cron": "pattern",
    "schedule_every": "every",
    "schedule_tz": "tz",
    "schedule_start": "startDate",
    "schedule_end": "endDate",
    "schedule_limit": "limit",
    "schedule_offset": "offset",
    "schedule_ticks": "ic",
    # The same, what BullMQ has no field for; its own upsert drops these:
    "schedule_overlap": "bullpen:overlap",
    "schedule_paused": "bullpen:paused",
    "schedule_ended": "bullpen:ended",
    "schedule_count": "bullpen:count",
    "schedule_skipped": "bullpen:skipped",
    "schedule_running": "bullpen:running",
    "parked": "bullpen:parked",
    # The job that is kept for when another ends:
    "next_id": "jid",
    # What moves into the queue:
    "move_origin": "origin",
    "move_run": "run",
    "move_ids_below": "idsBelow",
    # The queue's settings:
    "paused": "paused",
    "concurrency": "concurrency",
    "rate_max": "max",
    "rate_ms": "duration",
    "max_events": "opts.maxLenEvents",
    "version": "version",
    "queue_closed": "bullpen:closedUntil",
    "listed": "bullpen:listed",
    # A group's settings, which has some of the queue's too, and its state:
    "weight": "weight",
    "max_size": "maxSize",
    "window_until": "windowUntil",
    "window_starts": "windowStarts",
    "closed_until": "closedUntil",
    # The counts of finished jobs by minute:
    "metrics_count": "count",
    "metrics_previous_count": "prevCount",
    "metrics_previous_time": "prevTS",
}

OPTIONS = {
    "attempts": "attempts",
    "backoff": "backoff",
    "delay": "delay",
    "priority": "priority",
    "lifo": "lifo",
    "id": "jobId",
    "dedup": "de",
    "keep_completed": "removeOnComplete",
    "keep_failed": "removeOnFail",
    "keep_logs": "kl",
    "keep_stacks": "stackTraceLimit",
    "trace": "tm",
    "own": "bullpen",
    # Of a tick:
    "repeat": "repeat",
    "repeat_count": "count",
    "schedule": "repeatJobKey",
    "tick_time": "prevMillis",
    "added": "timestamp",
    # What a child's failure means, in its options and beside its parent's name:
    "fail_parent": "fpof",
    "continue_parent": "cpof",
    "ignore": "idof",
    "remove": "rdof",
    # The parent, and how it is named there and in the child's record:
    "parent": "parent",
    "parent_id": "id",
    "parent_queue": "queue",
    "parent_queue_key": "queueKey",
    # Under the option of ours:
    "timeout": "timeoutMs",
    "start_by": "startByMs",
    "tenant": "tenant",
    "workspace": "workspace",
    "group": "group",
    "tags": "tags",
    "headers": "headers",
    "max_delay": "maxDelayMs",
}

_O = OPTIONS
_DEFAULT = JobSpec()
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def encode_options(job: NewJob) -> bytes:
    """The job's options as BullMQ stores them."""
    spec = job.spec
    # What is not written has our default, by the mark that the job bears. Redis packs a record tightly
    # only as long as each of its values has 64 bytes at most.
    options: dict[str, Any] = {}
    if spec.attempts != _DEFAULT.attempts:
        options[_O["attempts"]] = spec.attempts
    if spec.keep_completed != _DEFAULT.keep_completed:
        options[_O["keep_completed"]] = _encode_keep(spec.keep_completed)
    if spec.keep_failed != _DEFAULT.keep_failed:
        options[_O["keep_failed"]] = _encode_keep(spec.keep_failed)
    if spec.keep_logs != _DEFAULT.keep_logs:
        options[_O["keep_logs"]] = spec.keep_logs
    if spec.keep_stacks != _DEFAULT.keep_stacks:
        options[_O["keep_stacks"]] = spec.keep_stacks
    if spec.backoff.kind != "fixed" or spec.backoff.delay_ms:
        options[_O["backoff"]] = _encode_backoff(spec.backoff)
    if spec.on_failure is not None:
        options[flag_of(spec.on_failure)] = True
    if spec.dedup is not None:
        options[_O["dedup"]] = _encode_dedup(spec.dedup)
    given = {"id": job.id, "delay": spec.delay_ms, "priority": spec.priority, "lifo": spec.lifo}
    options |= {_O[word]: value for word, value in given.items() if value}
    if spec.headers and (trace := encode_trace(spec.headers)):
        options[_O["trace"]] = trace
    options[_O["own"]] = _encode_own(spec)
    return _encode(options)


def flag_of(policy: OnFailure) -> str:
    """BullMQ's word for what a child's failure means to its parent."""
    return _O[policy.replace("-", "_")]


def _encode_own(spec: JobSpec) -> dict[str, Any]:
    max_delay_ms = spec.backoff.max_delay_ms
    own = {
        "timeout": spec.timeout_ms,
        "start_by": spec.start_by_ms,
        "tenant": spec.tenant,
        "workspace": spec.workspace,
        "group": spec.group,
        "tags": spec.tags or None,
        "headers": other_headers(spec.headers) or None if spec.headers else None,
        "max_delay": None if max_delay_ms == _DEFAULT.backoff.max_delay_ms else max_delay_ms,
    }
    return {_O[word]: value for word, value in own.items() if value is not None}


def _encode_keep(keep: Keep) -> bool | int | dict[str, int | float]:
    if keep.age_ms is None:
        if keep.count is None:
            return False
        return keep.count or True
    seconds = keep.age_ms // 1000 if keep.age_ms % 1000 == 0 else keep.age_ms / 1000
    return {"age": seconds} if keep.count is None else {"age": seconds, "count": keep.count}


def _encode_backoff(backoff: Backoff) -> dict[str, Any]:
    stored: dict[str, Any] = {"type": backoff.kind, "delay": backoff.delay_ms}
    if backoff.jitter:
        stored["jitter"] = backoff.jitter
    return stored


def _encode_dedup(dedup: Dedup) -> dict[str, Any]:
    stored = {
        "id": dedup.id,
        "ttl": dedup.ttl_ms,
        "extend": dedup.extend,
        "replace": dedup.replace,
        "keepLastIfActive": dedup.keep_last_if_active,
    }
    return {name: value for name, value in stored.items() if value}


# Most jobs of a queue have the same options, so each distinct text is read once.
@lru_cache(maxsize=1024)
def decode_options(text: bytes) -> JobSpec:
    """The spec in stored options; what is missing or makes no sense is as if not given."""
    options = _decode(text) if text else {}
    if not isinstance(options, dict):
        return _DEFAULT
    own = options.get(_O["own"])
    is_ours = isinstance(own, dict)
    if not isinstance(own, dict):
        own = {}
    return JobSpec(
        priority=_whole(options.get(_O["priority"]), 0),
        delay_ms=_whole(options.get(_O["delay"]), 0),
        lifo=options.get(_O["lifo"]) is True,
        attempts=max(1, _whole(options.get(_O["attempts"]), 1)),
        backoff=_decode_backoff(options.get(_O["backoff"]), own),
        timeout_ms=own.get(_O["timeout"]),
        start_by_ms=own.get(_O["start_by"]),
        tenant=own.get(_O["tenant"]),
        workspace=own.get(_O["workspace"]),
        group=own.get(_O["group"]) or None,
        tags=tuple(own.get(_O["tags"], ())),
        headers=decode_trace(options.get(_O["trace"])) | own.get(_O["headers"], {}),
        dedup=_decode_dedup(options.get(_O["dedup"])),
        keep_completed=_DEFAULT.keep_completed
        if is_ours and _O["keep_completed"] not in options
        else _decode_keep(options.get(_O["keep_completed"])),
        keep_failed=_decode_keep(options.get(_O["keep_failed"])),
        keep_logs=_whole(options.get(_O["keep_logs"]), _DEFAULT.keep_logs),
        keep_stacks=_whole(options.get(_O["keep_stacks"]), _DEFAULT.keep_stacks),
        on_failure=next((policy for policy in OnFailure if options.get(flag_of(policy)) is True), None),
    )


def _decode_keep(stored: object) -> Keep:
    if stored is True:
        return Keep(count=0)
    if isinstance(stored, dict):
        age, count = stored.get("age"), stored.get("count")
        return Keep(
            count=count if isinstance(count, int) and count >= 0 else None,
            age_ms=round(age * 1000) if isinstance(age, int | float) else None,
        )
    if isinstance(stored, int | float) and stored > 0:
        return Keep(count=int(stored))
    return Keep(count=0) if stored == 0 and stored is not False else KEEP_ALL


def _decode_backoff(stored: object, own: dict[str, Any]) -> Backoff:
    max_delay_ms = _whole(own.get(_O["max_delay"]), _DEFAULT.backoff.max_delay_ms)
    if isinstance(stored, int | float):
        return Backoff(delay_ms=_whole(stored, 0), max_delay_ms=max_delay_ms)
    if not isinstance(stored, dict):
        return Backoff(max_delay_ms=max_delay_ms)
    jitter = stored.get("jitter")
    return Backoff(
        kind=str(stored.get("type", _DEFAULT.backoff.kind)),
        delay_ms=_whole(stored.get("delay"), 0),
        jitter=float(jitter) if isinstance(jitter, int | float) else 0.0,
        max_delay_ms=max_delay_ms,
    )


def _decode_dedup(stored: object) -> Dedup | None:
    if not isinstance(stored, dict) or not isinstance(stored.get("id"), str):
        return None
    ttl = stored.get("ttl")
    return Dedup(
        id=stored["id"],
        ttl_ms=_whole(ttl, 0) or None,
        extend=stored.get("extend") is True,
        replace=stored.get("replace") is True,
        keep_last_if_active=stored.get("keepLastIfActive") is True,
    )


def _whole(stored: object, default: int) -> int:
    """A whole number as JavaScript may have written it; fractions are cut off."""
    return default if isinstance(stored, bool) or not isinstance(stored, int | float) else int(stored)
