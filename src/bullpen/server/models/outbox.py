"""The outbox of the records as it is shown."""

from bullpen.server.models.base import Shown


class OutboxProblemShown(Shown):
    number: int
    queue: str
    job_id: str
    problem: str
    """Why no relay sends it."""
    written_ms: int


class OutboxShown(Shown):
    pending: int
    """Rows that are on their way; no more than 100,000 are counted."""
    oldest_ms: int | None
    """When the oldest of them was written."""
    problems: int
    items: list[OutboxProblemShown]
    next_cursor: str | None = None
