"""Jobs as they are shown: a row of a list, and one with all that is known of it."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from bullpen.errors import BullpenError
from bullpen.job.events import Event
from bullpen.job.record import Failure, JobRecord, JobRef
from bullpen.job.state import State
from bullpen.queue.payload import Codec, from_bytes
from bullpen.queue.schedules import SCHEDULE_HEADER
from bullpen.server.activations import life_of
from bullpen.server.models.base import Shown
from bullpen.server.models.timeline import Activation, Moment

_TRACE = "traceparent"
_CHILD_FAILED = re.compile("child .+ failed", re.DOTALL)


class JobRow(Shown):
    """A job as the read model knows it."""

    queue: str
    id: str
    state: State
    name: str
    tenant: str | None
    workspace: str | None
    tags: list[str]
    fields: dict[str, Any]
    priority: int
    attempts_made: int
    error: str | None
    error_kind: str | None
    error_type: str | None
    fingerprint: str | None
    added_ms: int
    run_at_ms: int | None
    started_ms: int | None
    finished_ms: int | None


class JobRows(Shown):
    items: list[JobRow]
    next_cursor: str | None
    behind_ms: int | None
    """How old the list may be; null if the read model was never complete."""


class RefShown(Shown):
    queue: str
    id: str


class FailureShown(Shown):
    message: str
    kind: str
    type: str
    stack: str


class JobShown(Shown):
    """A job with all that its store knows of it."""

    queue: str
    id: str
    name: str
    state: State
    data: Any
    options: dict[str, Any]
    priority: int
    attempts_made: int
    epoch: int
    crashes: dict[str, int]
    added_ms: int
    run_at_ms: int | None
    started_ms: int | None
    finished_ms: int | None
    progress: Any
    result: Any
    failure: FailureShown | None
    stacks: list[str]
    worker: str | None
    cancelling: str | None
    note: str | None
    parked: list[str] | None
    tenant: str | None
    workspace: str | None
    group: str | None
    tags: list[str]
    headers: dict[str, str]
    trace_id: str | None
    parent: RefShown | None
    schedule: str | None
    has_children: bool
    timeline: list[Moment]
    """In order; what is to come is the last."""
    activations: list[Activation]
    """In order, as far as the event log still tells of them."""
    forgotten: int
    """How many there were before them."""


def shown_payload(stored: bytes | None, codec: Codec | None = None) -> Any:
    """The value; what cannot be read here is told as such."""
    try:
        return from_bytes(stored, what="payload", codec=codec)
    except BullpenError as error:
        return {"unreadable": str(error), "bytes": len(stored or b"")}


def shown_job(job: JobRecord, *, events: Sequence[Event], has_children: bool, codec: Codec | None = None) -> JobShown:
    """With the life that its record and these events tell."""
    spec = job.spec
    life = life_of(job, events)
    return JobShown(
        queue=job.queue,
        id=job.id,
        name=job.name,
        state=job.state,
        data=shown_payload(job.data, codec),
        options={name: msgspec.to_builtins(getattr(spec, name)) for name in spec.__struct_fields__},
        priority=job.priority,
        attempts_made=job.attempts_made,
        epoch=job.epoch,
        crashes=dict(job.crashes),
        added_ms=job.added_ms,
        run_at_ms=job.run_at_ms,
        started_ms=job.started_ms,
        finished_ms=job.finished_ms,
        progress=shown_payload(job.progress),
        result=shown_payload(job.result, codec),
        failure=shown_failure(job.failure),
        stacks=list(job.stacks),
        worker=job.worker,
        cancelling=job.cancelling,
        note=job.note,
        parked=None if job.parked is None else list(job.parked),
        tenant=job.tenant,
        workspace=spec.workspace,
        group=spec.group,
        tags=list(spec.tags),
        headers=dict(spec.headers),
        trace_id=_trace_of(spec.headers.get(_TRACE)),
        parent=shown_ref(job.parent),
        schedule=job.tick.schedule if job.tick is not None else spec.headers.get(SCHEDULE_HEADER),
        has_children=has_children,
        timeline=life.moments,
        activations=life.activations,
        forgotten=life.forgotten,
    )


def without_child(reason: str) -> str:
    """The same for a caller who may not see the child that failed, if it was one."""
    return "child failed" if _CHILD_FAILED.fullmatch(reason) else reason


def shown_ref(ref: JobRef | None) -> RefShown | None:
    return None if ref is None else RefShown(queue=ref.queue, id=ref.id)


def shown_failure(failure: Failure | None) -> FailureShown | None:
    return None if failure is None else FailureShown.model_validate(failure)


def _trace_of(traceparent: str | None) -> str | None:
    parts = (traceparent or "").split("-")
    return parts[1] if len(parts) == 4 and len(parts[1]) == 32 else None
