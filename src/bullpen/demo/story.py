"""What happens in the shop, in plain words."""

import json

from bullpen.demo.shop import ORDERS
from bullpen.job.events import Event, EventKind
from bullpen.job.record import FailureKind


def sentence(queue: str, event: Event) -> tuple[str, str] | None:
    """The sentence and its tone (good, bad or odd); None for what goes without saying."""
    job = f"{queue}/{event.job_id}"
    match event.kind:
        case EventKind.COMPLETED:
            return f"{job} is done: {_value(event)}", "good"
        case EventKind.DELAYED if event.prev == "active" and queue == ORDERS:
            return f"{job} waits for an approval", "odd"
        case EventKind.DELAYED if event.prev == "active":
            wait_s = max(0, (event.run_at_ms or 0) - event.at_ms) / 1000
            return f"{job} failed and is tried again in {wait_s:.1f} s", "odd"
        case EventKind.CANCELLING:
            return f"{job} is to stop: its worker is told", "odd"
        case EventKind.FAILED if event.failure is not None and event.failure.kind == FailureKind.CANCELLED:
            return f"{job} was cancelled: {event.failure.message.removeprefix('cancelled: ')}", "odd"
        case EventKind.FAILED:
            why = event.failure.message if event.failure is not None else "no reason given"
            return f"{job} failed for good: {why}", "bad"
        case EventKind.STALLED:
            return f"{job} lost its worker and waits again", "bad"
        case _:
            return None


def progress(event: Event) -> int | None:
    """How far a job is, in percent, if this event says so."""
    return int(_value(event)) if event.kind == EventKind.PROGRESS else None


def _value(event: Event) -> str:
    value = json.loads(event.value or b"null")
    return value if isinstance(value, str) else json.dumps(value)
