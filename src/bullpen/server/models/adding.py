"""Bodies that add jobs, in the words of `JobOptions`: seconds, not milliseconds."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from bullpen.job.options import custom, dedup, exponential, fixed, keep
from bullpen.job.spec import Backoff, Dedup, Keep, OnFailure
from bullpen.server.models.base import Body, Shown
from bullpen.stores.base import AddOutcome

Seconds = Annotated[float, Field(ge=0, le=3_162_240_000)]
Word = Annotated[str, Field(min_length=1, max_length=300, pattern=r"^[^\x00]+$")]
"""Without NUL, which PostgreSQL cannot keep."""


class BackoffBody(Body):
    kind: str = "fixed"
    delay: Seconds = 0
    jitter: float = Field(default=0, ge=0, le=1)
    max_delay: Seconds = 3600

    def value(self) -> Backoff:
        match self.kind:
            case "fixed":
                return fixed(self.delay, jitter=self.jitter)
            case "exponential":
                return exponential(self.delay, jitter=self.jitter, max_delay=self.max_delay)
            case _:
                return custom(self.kind, self.delay)


class KeepBody(Body):
    count: int | None = Field(default=None, ge=0, le=1_000_000_000)
    age: Seconds | None = None

    def value(self) -> Keep:
        return keep(self.count, age=self.age)


class DedupBody(Body):
    id: Word
    ttl: Seconds | None = None
    extend: bool = False
    replace: bool = False
    keep_last_if_active: bool = False

    def value(self) -> Dedup:
        return dedup(
            self.id,
            ttl=self.ttl,
            extend=self.extend,
            replace=self.replace,
            keep_last_if_active=self.keep_last_if_active,
        )


class OptionsBody(Body):
    id: Annotated[str, Field(pattern=r"^[^\x00]*$")] | None = None
    delay: Seconds | None = None
    run_at: Annotated[datetime, Field(strict=False)] | None = None
    priority: int | None = None
    lifo: bool | None = None
    attempts: int | None = None
    backoff: BackoffBody | Seconds | None = None
    timeout: Seconds | None = None
    start_by: Seconds | None = None
    tenant: Word | None = None
    workspace: Word | None = None
    group: Word | None = None
    tags: list[Word] | None = Field(default=None, max_length=100)
    headers: dict[str, str] | None = None
    dedup: DedupBody | Word | None = None
    keep_completed: KeepBody | None = None
    keep_failed: KeepBody | None = None
    keep_logs: int | None = None
    keep_stacks: int | None = None
    on_failure: Annotated[OnFailure, Field(strict=False)] | None = None

    def values(self) -> dict[str, Any]:
        """What is given, as `Queue.prepare` takes it."""
        given = {name: getattr(self, name) for name in self.model_fields_set if getattr(self, name) is not None}
        return {
            name: value.value() if isinstance(value, BackoffBody | KeepBody | DedupBody) else value
            for name, value in given.items()
        }


class NewJobBody(Body):
    name: str
    data: Any = None
    options: OptionsBody = OptionsBody()


class BulkBody(Body):
    jobs: list[NewJobBody] = Field(min_length=1, max_length=10_000)


class FlowBody(NewJobBody):
    queue: str
    children: list["FlowBody"] = Field(default_factory=list)


class AddedShown(Shown):
    queue: str
    id: str
    outcome: AddOutcome


class BulkShown(Shown):
    items: list[AddedShown]


class FlowAdded(AddedShown):
    children: list["FlowAdded"] = Field(default_factory=list)


class ScheduleBody(NewJobBody):
    """What comes again, and when: by `cron` or by `every`, in seconds."""

    cron: str | None = None
    every: Seconds | None = None
    tz: str | None = None
    start_ms: int | None = Field(default=None, ge=0, lt=2**45)
    end_ms: int | None = Field(default=None, ge=0, lt=2**45)
    limit: int | None = None
    immediately: bool = False
    overlap: Literal["skip", "allow"] = "skip"
