"""Sandboxes as they are shown."""

from bullpen.server.models.base import Shown


class SandboxItem(Shown):
    id: str
    worker: str
    driver: str
    isolation: str
    """How strong its walls are: `namespace`, `container` or `microvm`."""
    state: str
    """`warm`: ready and unused; or `in use`."""
    tenant: str | None
    """Whose code is in it, while it is in use."""
    since_ms: int
    """When it came to be so."""
    told_ms: int
    """When its worker told of it last."""


class SandboxesShown(Shown):
    items: list[SandboxItem]
    next_cursor: str | None = None
