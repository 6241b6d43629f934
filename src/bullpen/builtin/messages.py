"""What a delivery says, and the job that delivers it.

The job has ids and a summary of the event in it, never a secret; of what the job at issue was
given nothing, and of what it returned only if the subscription asks for that.
"""

import contextlib
import re
import uuid
from typing import Any

import msgspec

from bullpen.errors import BadData
from bullpen.job.events import Event
from bullpen.job.options import JobOptions, exponential, keep
from bullpen.job.record import JobRecord
from bullpen.job.spec import NewJob
from bullpen.queue.payload import from_bytes
from bullpen.records.settings import AlertSetting
from bullpen.records.webhooks import Webhook

QUEUE = "bullpen-webhooks"
DELIVER, ALERT = "deliver", "alert"
"""The names of its jobs."""
TEST = "test"
"""The kind of what `…/test` sends."""
WEEK_S = 7 * 86_400
DELIVERY = JobOptions(
    priority=5,
    attempts=10,
    backoff=exponential(1, jitter=0.1),
    timeout=30,
    keep_completed=keep(count=10_000, age=WEEK_S),
    keep_failed=keep(count=10_000, age=4 * WEEK_S),
)
_ODD = re.compile(r"[^A-Za-z0-9_.-]")
_MAX_MESSAGE = 500
_MAX_RESULT = 65_536


class FailureTold(msgspec.Struct, frozen=True):
    kind: str
    type: str
    message: str


class EventSummary(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An event as its receiver is told of it."""

    kind: str
    queue: str
    at_ms: int
    job_id: str | None = None
    name: str | None = None
    """The job's; not told if the job is gone already."""
    tenant: str | None = None
    attempts_made: int | None = None
    failure: FailureTold | None = None
    count: int | None = None
    run_at_ms: int | None = None
    result: Any = None
    """Of `completed` the result, of `progress` the progress, where the subscription asks for it."""


def told(queue: str, event: Event, job: JobRecord | None, *, with_result: bool = False) -> EventSummary:
    failure = event.failure
    return EventSummary(
        kind=event.kind.value,
        queue=queue,
        at_ms=event.at_ms,
        job_id=event.job_id,
        name=None if job is None else job.name,
        tenant=event.tenant,
        attempts_made=None if job is None else job.attempts_made,
        failure=None if failure is None else FailureTold(failure.kind, failure.type, failure.message[:_MAX_MESSAGE]),
        count=event.count,
        run_at_ms=event.run_at_ms,
        result=_result(event.value) if with_result else None,
    )


def _result(value: bytes | None) -> Any:
    """Nothing of what a codec hides, nothing that would not fit, and nothing that is no JSON."""
    if value is None or len(value) > _MAX_RESULT or value.startswith(b'{"$codec":'):
        return None
    with contextlib.suppress(BadData):
        return from_bytes(value, what="result")
    return None


# ── jobs ─────────────────────────────────────────────────────────────────────────────────


def delivery(webhook: Webhook, event: Event, summary: EventSummary) -> NewJob:
    """Of one event to one subscription: the same again has the same id, and is added once."""
    # With the time, since a queue that was removed and begun anew counts its events from the start.
    job_id = f"{webhook.id}.{summary.queue}.{event.at_ms}-{_ODD.sub('-', event.cursor)}"
    return _job(DELIVER, job_id, webhook, summary)


def trial(webhook: Webhook, *, now_ms: int) -> NewJob:
    """A trial that stands for no event."""
    summary = EventSummary(kind=TEST, queue=QUEUE, at_ms=now_ms, tenant=webhook.tenant)
    return _job(DELIVER, f"{webhook.id}.{TEST}.{uuid.uuid4().hex}", webhook, summary)


def alerting(alert: AlertSetting, window_ms: int, failed: int, summary: EventSummary) -> NewJob:
    """Of one alert in one stretch of time, however many jobs fail in it."""
    data = {"alert": alert.id, "failed": failed, "event": summary}
    return _new_job(ALERT, f"{alert.id}.{window_ms}", data, alert.id, alert.tenant, tag_of_alert(alert.id))


def tag_of(webhook_id: str) -> str:
    """What finds the deliveries of a subscription."""
    return f"webhook:{webhook_id}"


def tag_of_alert(alert_id: str) -> str:
    return f"alert:{alert_id}"


def _job(name: str, job_id: str, webhook: Webhook, summary: EventSummary) -> NewJob:
    data = {"subscription": webhook.id, "event": summary}
    return _new_job(name, job_id, data, webhook.id, webhook.tenant, tag_of(webhook.id))


def _new_job(name: str, job_id: str, data: object, group: str, tenant: str | None, tag: str) -> NewJob:
    # A line of its own for each receiver: one that is slow or away keeps no other waiting.
    spec = msgspec.structs.replace(DELIVERY.to_spec(0), group=group, tenant=tenant, tags=(tag,))
    return NewJob(QUEUE, name, msgspec.json.encode(data), id=job_id, spec=spec)
