"""How a worker works."""

import dataclasses
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from bullpen.errors import BadOption
from bullpen.job.checks import check_at_least
from bullpen.job.limits import QueueLimits, Rate
from bullpen.job.options import Duration, check_rate, to_ms
from bullpen.job.record import CrashLimits
from bullpen.observing import Observers
from bullpen.queue.payload import MAX_PAYLOAD_BYTES, Codec
from bullpen.scheduling.backoff import CustomBackoff
from bullpen.settings import told

if TYPE_CHECKING:
    from bullpen.worker.context import Context  # which needs these options itself

DEFAULT_CONCURRENCY = 5

VerifyTenant = Callable[["Context"], bool | Awaitable[bool]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Which errors are worth another attempt; unknown ones are.

    In this order: `Unrecoverable` never; an error with a boolean `retryable` as it says; the
    types and codes named here never; an HTTP status of 4xx never, but 408, 425 and 429.
    """

    never: tuple[type[BaseException], ...] = ()
    """Error types that no further attempt can mend."""
    never_codes: frozenset[str | int] = frozenset()
    """Values of an error's `code` that no further attempt can mend."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    name: str = ""
    """Unique among all workers; made from host, process and a number if empty."""
    concurrency: int | Mapping[str, int] | None = None
    """Slots: for each queue, or by queue. Else `BULLPEN_CONCURRENCY_<QUEUE>`, else 5."""
    shared: int | None = None
    """Slots that all queues share, served in the order in which they are named; None: each has its own."""
    weights: Mapping[str, int] | None = None
    """With `shared`: turns in proportion to these instead of in strict order; a queue that is not named has 1."""
    limiter: Rate | None = None
    """How many jobs this worker may start in a while, whatever is free: `rate(10, per=60)`."""
    queue_limits: Mapping[str, QueueLimits] = dataclasses.field(default_factory=dict)
    """By queue: what all workers share, put into the store where nobody has set limits yet."""
    verify_tenant: VerifyTenant | None = None
    """Asked before a handler runs whether the job's tenant is one to work for; if not, the job fails for good."""
    lease: Duration = 30
    """How long a dead worker's job stays unclaimed. Renewed at a third of this."""
    timeout: Duration = 300
    """The longest an attempt may run, for jobs that do not say themselves."""
    timeout_grace: Duration = 5
    """How long past its timeout a handler may take to give way before its process is replaced."""
    grace: Duration = 30
    """How long running jobs may go on after the worker was told to stop."""
    max_stalled: int = 2
    """How often a job may lose its worker before it fails; apart from its attempts."""
    crash_limits: CrashLimits | None = None
    """The same for each kind of crash, instead of `max_stalled`."""
    backoffs: Mapping[str, CustomBackoff] = dataclasses.field(default_factory=dict)
    """Functions for `custom` backoffs, by name."""
    retry_policy: RetryPolicy = RetryPolicy()
    """Which errors are worth another attempt."""
    unhandled_delay: Duration = 60
    """How long a job that no handler is named for, or whose program does not fit its journal, is set aside."""
    max_jobs: int | None = None
    """Recycle: after that many jobs the process drains and is replaced."""
    max_memory_mb: int | None = None
    """Recycle: above that resident size the process drains and is replaced, a handler's own after its job."""
    block_warning: Duration = 1
    """A handler that holds the event loop for longer is named in its job's log."""
    max_result_bytes: int = MAX_PAYLOAD_BYTES
    """A larger result fails its job: results are for small answers."""
    max_journal_entries: int = 10_000
    """How many durable steps a job may record; one more is JournalFull."""
    max_journal_bytes: int = 16_777_216
    """How much they may take together. One step's result is limited as a job's is."""
    codec: Codec | None = None
    """For data and results, as given to the queue."""
    observers: Observers = dataclasses.field(default_factory=Observers)
    """Who looks on: metrics, traces, logs. An application gives its own."""

    def __post_init__(self) -> None:
        for field in ("lease", "timeout", "timeout_grace", "block_warning", "unhandled_delay"):
            if to_ms(field, getattr(self, field)) == 0:
                raise BadOption(f"{field}: must be more than 0")
        to_ms("grace", self.grace)
        if isinstance(self.concurrency, Mapping):
            for queue, slots in self.concurrency.items():
                check_at_least(f"concurrency[{queue!r}]", slots, 1)
        elif self.concurrency is not None:
            check_at_least("concurrency", self.concurrency, 1)
        check_rate("limiter", self.limiter)
        if self.weights is not None and self.shared is None:
            raise BadOption("weights: are for shared slots; say how many with shared=…")
        for queue, weight in (self.weights or {}).items():
            check_at_least(f"weights[{queue!r}]", weight, 1)
        for field in ("max_jobs", "max_memory_mb", "max_journal_entries", "max_journal_bytes", "shared"):
            if getattr(self, field) is not None:
                check_at_least(field, getattr(self, field), 1)
        check_at_least("max_stalled", self.max_stalled, 0)

    @property
    def lease_ms(self) -> int:
        return to_ms("lease", self.lease)

    @property
    def unhandled_delay_ms(self) -> int:
        return to_ms("unhandled_delay", self.unhandled_delay)

    @property
    def limits(self) -> CrashLimits:
        if self.crash_limits is not None:
            return self.crash_limits
        n = self.max_stalled
        return CrashLimits(killed=n, out_of_memory=n, lost_heartbeat=n, total=n)

    def slots(self, queue: str) -> int:
        """How many jobs of the queue may run at once."""
        if isinstance(self.concurrency, int):
            return self.concurrency
        if self.concurrency is not None and queue in self.concurrency:
            return self.concurrency[queue]
        variable = "BULLPEN_CONCURRENCY_" + re.sub(r"[^A-Za-z0-9]", "_", queue).upper()
        text = told(variable)
        if text is None:
            return self.shared or DEFAULT_CONCURRENCY
        if not text.strip().isdecimal() or int(text) < 1:
            raise BadOption(f"{variable}: a whole number of 1 or more, not {text!r}")
        return int(text)


def seconds(duration: Duration) -> float:
    return duration.total_seconds() if isinstance(duration, timedelta) else float(duration)
