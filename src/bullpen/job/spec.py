"""What a producer asks for: the part of a job that never changes after `add`.

These are the stored forms, in whole milliseconds. People write `JobOptions` (options.py).
Stored records are read leniently: a field that a newer Bullpen added is passed over.
"""

from enum import StrEnum

import msgspec


class OnFailure(StrEnum):
    """What becomes of a parent whose child failed for good; without one it waits for the child to be retried."""

    FAIL_PARENT = "fail-parent"
    """The parent fails too, without running."""
    CONTINUE_PARENT = "continue-parent"
    """The parent runs at once, though other children are not done."""
    IGNORE = "ignore"
    """The parent runs when the others are done, and sees why this one failed."""
    REMOVE = "remove"
    """As if there had been no such child."""


class Backoff(msgspec.Struct, frozen=True, omit_defaults=True):
    """How long to wait before the next attempt; `scheduling.backoff` does the sums."""

    kind: str = "fixed"
    """`fixed`, `exponential`, or the name of a function given to the worker."""
    delay_ms: int = 0
    jitter: float = 0.0
    """A share of the delay, 0 to 1, by which it varies up and down."""
    max_delay_ms: int = 3_600_000


class Keep(msgspec.Struct, frozen=True, omit_defaults=True):
    """How long finished jobs of a queue stay; the stricter of the two wins."""

    count: int | None = None
    """The newest that many stay; 0 removes at once, None keeps any number."""
    age_ms: int | None = None


KEEP_ALL = Keep()
KEEP_COMPLETED = Keep(count=1_000, age_ms=86_400_000)


class Dedup(msgspec.Struct, frozen=True, omit_defaults=True):
    """One job for one subject: what happens to a second add with the same deduplication id."""

    id: str
    ttl_ms: int | None = None
    """Throttle: for that long after the first add, whatever became of it. None: until it ended."""
    extend: bool = False
    """A duplicate starts the time again."""
    replace: bool = False
    """A duplicate takes the place of a job that is still delayed."""
    keep_last_if_active: bool = False
    """While the first one runs, the newest duplicate is kept and added when it ends."""


class JobSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    priority: int = 0
    delay_ms: int = 0
    lifo: bool = False
    attempts: int = 1
    backoff: Backoff = Backoff()
    timeout_ms: int | None = None
    """None: the worker's default."""
    start_by_ms: int | None = None
    """Wall time after which an unstarted job ends as expired."""
    tenant: str | None = None
    workspace: str | None = None
    """The part of the tenant that it belongs to."""
    group: str | None = None
    """In which group of its queue it waits; None: in the queue's own line."""
    tags: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    """Trace context, who added it, and what else travels beside the data."""
    dedup: Dedup | None = None
    keep_completed: Keep = KEEP_COMPLETED
    keep_failed: Keep = KEEP_ALL
    keep_logs: int = 1_000
    keep_stacks: int = 10
    on_failure: OnFailure | None = None
    """Of a child: what its final failure means for its parent."""


class NewJob(msgspec.Struct, frozen=True):
    """One job to add, and the children that it waits for. `data` is JSON."""

    queue: str
    name: str
    data: bytes = b"{}"
    id: str | None = None
    """None: the store gives one."""
    spec: JobSpec = JobSpec()
    children: tuple["NewJob", ...] = ()
    """Added in the same step; the job runs when none of them is pending."""
