"""Providers of models as they are shown."""

from bullpen.agents.llm.health import Standing
from bullpen.server.models.base import Shown


class ProviderShown(Shown):
    name: str
    state: Standing
    since_ms: int | None
    """When it came to stand so; null where nothing else was ever known of it."""
    last_error: str | None
    """The code of the last failure, while it is not healthy."""
    failures: int
    """In a row."""
    next_probe_ms: int | None
    """While it is not healthy: when a worker finds out whether it is back."""
    limited_until_ms: int | None
    """Until then it is asked nothing: it has too much to do."""


class ProvidersShown(Shown):
    items: list[ProviderShown]
    next_cursor: str | None = None
