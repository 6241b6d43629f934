"""Jobs, events and workers as JSON for programs, and in part as words for people."""

from typing import Any

import msgspec

from bullpen.errors import BullpenError
from bullpen.job.events import Event
from bullpen.job.record import Failure, JobRecord, JobRef
from bullpen.job.state import State
from bullpen.queue.payload import from_bytes
from bullpen.stores.base import Child, WorkerInfo


def payload(stored: bytes | None) -> Any:
    """The value; what cannot be read here is told as it is."""
    try:
        return from_bytes(stored, what="payload")
    except BullpenError as error:
        return {"unreadable": str(error), "bytes": len(stored or b"")}


def job_json(job: JobRecord) -> dict[str, Any]:
    return {
        "queue": job.queue,
        "id": job.id,
        "name": job.name,
        "state": job.state.value,
        "data": payload(job.data),
        "result": payload(job.result),
        "progress": payload(job.progress),
        "priority": job.priority,
        "attempts_made": job.attempts_made,
        "attempts": job.spec.attempts,
        "crashes": dict(job.crashes),
        "epoch": job.epoch,
        "added_ms": job.added_ms,
        "run_at_ms": job.run_at_ms,
        "started_ms": job.started_ms,
        "finished_ms": job.finished_ms,
        "failure": failure_json(job.failure),
        "stacks": list(job.stacks),
        "worker": job.worker,
        "cancelling": job.cancelling,
        "note": job.note,
        "parked": None if job.parked is None else list(job.parked),
        "parent": ref_json(job.parent),
        "on_failure": job.spec.on_failure,
        "tenant": job.tenant,
        "workspace": job.spec.workspace,
        "tags": list(job.spec.tags),
        "headers": dict(job.spec.headers),
    }


def ref_json(ref: JobRef | None) -> dict[str, str] | None:
    return None if ref is None else {"queue": ref.queue, "id": ref.id}


def child_json(child: Child, state: State | None) -> dict[str, Any]:
    """What the parent knows of it, and where it is now: None if it is gone."""
    return {
        "queue": child.ref.queue,
        "id": child.ref.id,
        "child_state": child.state.value,
        "state": None if state is None else state.value,
        "result": payload(child.result),
        "reason": child.reason,
    }


def failure_json(failure: Failure | None) -> dict[str, Any] | None:
    if failure is None:
        return None
    return {"kind": failure.kind.value, "type": failure.type, "message": failure.message, "stack": failure.stack}


def event_json(event: Event) -> dict[str, Any]:
    """Only what is set, as the log has it."""
    found: dict[str, Any] = {"kind": event.kind.value, "cursor": event.cursor, "at_ms": event.at_ms}
    for name in ("job_id", "name", "tenant", "prev", "run_at_ms", "other_job_id", "count"):
        if (value := getattr(event, name)) is not None:
            found[name] = value
    if event.value is not None:
        found["value"] = payload(event.value)
    if event.failure is not None:
        found["failure"] = failure_json(event.failure)
    return found


def worker_json(worker: WorkerInfo) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(worker)
    return found


def error_words(failure: Failure | None) -> str:
    """In one line: what it was, and what it said."""
    if failure is None:
        return ""
    if not failure.message:
        return failure.type or failure.kind.value
    return f"{failure.type}: {failure.message}" if failure.type else failure.message


def when(job: JobRecord) -> int | None:
    """The time that matters most in the job's state."""
    match job.state:
        case State.COMPLETED | State.FAILED:
            return job.finished_ms
        case State.DELAYED:
            return job.run_at_ms
        case State.ACTIVE:
            return job.started_ms
        case _:
            return job.added_ms
