"""Webhooks: bodies and answers."""

from typing import Annotated, Any

from pydantic import Field

from bullpen.job.events import EventKind
from bullpen.records.webhooks import MAX_QUEUES, MAX_URL, USUAL_KINDS
from bullpen.server.models.adding import Word
from bullpen.server.models.base import Body, Shown
from bullpen.server.models.records import Label

KindWord = Annotated[EventKind, Field(strict=False)]
Kinds = Annotated[list[KindWord], Field(min_length=1, max_length=100)]
Queues = Annotated[list[Word], Field(min_length=1, max_length=MAX_QUEUES)]
Url = Annotated[str, Field(min_length=1, max_length=MAX_URL, pattern=r"^[^\x00]+$")]


class WebhookBody(Body):
    name: Label
    url: Url
    tenant: Label | None = None
    queues: Queues | None = None
    """Null: all."""
    kinds: Kinds = Field(default_factory=lambda: list(USUAL_KINDS))
    with_result: bool = False
    is_enabled: bool = True


class WebhookChange(Body):
    """What is not there stays as it is; `queues` as null means all."""

    name: Label | None = None
    url: Url | None = None
    queues: Queues | None = None
    kinds: Kinds | None = None
    with_result: bool | None = None
    is_enabled: bool | None = None

    def values(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: value for name, value in given.items() if value is not None or name == "queues"}


class WebhookShown(Shown):
    id: str
    name: str
    tenant: str | None
    url: str
    queues: list[str] | None
    kinds: list[EventKind]
    with_result: bool
    is_enabled: bool
    since_ms: int
    created_by: str
    created_ms: int
    changed_ms: int


class NewWebhookShown(WebhookShown):
    secret: str | None
    """What deliveries are signed with, shown this once. Null where the answer is given again."""


class SecretShown(Shown):
    secret: str | None
    """Likewise."""


class TrialShown(Shown):
    queue: str
    id: str
    """Of the job that delivers it."""
