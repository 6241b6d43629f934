"""Reasons for which jobs failed."""

from bullpen.server.models.base import Shown


class FailureGroupShown(Shown):
    queue: str
    name: str
    fingerprint: str
    count: int
    newest_ms: int | None
    oldest_ms: int | None
    error: str


class FailuresShown(Shown):
    items: list[FailureGroupShown]
    next_cursor: str | None = None
    has_more: bool = False
    """There are more reasons than these."""
    behind_ms: int | None
