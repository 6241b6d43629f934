"""Workers as they are shown."""

from bullpen.server.models.base import Shown
from bullpen.server.models.jobs import RefShown


class WorkerShown(Shown):
    name: str
    state: str
    queues: dict[str, int]
    """Slots by queue."""
    host: str
    pid: int
    started_ms: int
    beat_ms: int
    running: list[RefShown]
    stuck: list[RefShown]
    jobs_done: int


class WorkersShown(Shown):
    items: list[WorkerShown]
    next_cursor: str | None = None
