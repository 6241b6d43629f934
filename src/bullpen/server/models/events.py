"""Events as they are shown."""

from typing import Any

from bullpen.server.models.base import Shown


class EventsShown(Shown):
    items: list[dict[str, Any]]
    cursor: str
    """Where to go on reading."""
    gap: bool
    """Events were lost before these: look at the jobs themselves."""
