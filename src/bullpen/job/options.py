"""The options that people write when they add a job: seconds outside, milliseconds inside."""

import dataclasses
import difflib
import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict, cast

from bullpen.errors import BadOption
from bullpen.job.checks import check_jitter, check_kind, check_policy, check_whole, instant_ms
from bullpen.job.limits import Rate
from bullpen.job.names import check_explicit_id, check_group_name, is_text
from bullpen.job.spec import KEEP_ALL, KEEP_COMPLETED, Backoff, Dedup, JobSpec, Keep, OnFailure

Duration = float | int | timedelta

MAX_PRIORITY = 2_097_151
"""The highest that BullMQ's score can carry: 2^21 - 1."""
MAX_DURATION_MS = 100 * 366 * 86_400_000
_MAX_COUNT = 1_000_000_000
_TENANT = "{tenant}"


def to_ms(option: str, duration: Duration) -> int:
    """Seconds or a timedelta as whole milliseconds; BadOption if negative, endless or no number."""
    if isinstance(duration, timedelta):
        seconds = duration.total_seconds()
    elif isinstance(duration, bool) or not isinstance(duration, int | float):
        raise BadOption(f"{option}: seconds or a timedelta, not {duration!r}")
    else:
        seconds = duration
    if seconds < 0 or (isinstance(seconds, float) and not math.isfinite(seconds)):
        raise BadOption(f"{option}: {duration!r} is not a time of 0 or more seconds")
    if seconds * 1000 > MAX_DURATION_MS:
        raise BadOption(f"{option}: {duration!r} is more than a hundred years")
    return round(seconds * 1000)


def fixed(delay: Duration, *, jitter: float = 0.0) -> Backoff:
    """Wait the same time before each further attempt."""
    return Backoff(kind="fixed", delay_ms=to_ms("backoff", delay), jitter=check_jitter(jitter))


def exponential(base: Duration, *, jitter: float = 0.0, max_delay: Duration = 3600) -> Backoff:
    """Wait base, 2 × base, 4 × base … up to `max_delay`; jitter 0.2 varies each by ±20 %."""
    return Backoff(
        kind="exponential",
        delay_ms=to_ms("backoff", base),
        jitter=check_jitter(jitter),
        max_delay_ms=to_ms("max_delay", max_delay),
    )


def custom(name: str, base: Duration = 0) -> Backoff:
    """Ask the function that the worker was given under this name."""
    if not is_text(name) or name in {"fixed", "exponential"}:
        raise BadOption(f"backoff: {name!r} is not the name of a custom backoff")
    return Backoff(kind=name, delay_ms=to_ms("backoff", base))


def keep(count: int | None = None, *, age: Duration | None = None) -> Keep:
    """Keep the newest `count` finished jobs, none older than `age`."""
    if count is not None:
        check_whole("keep: count", count, 0, _MAX_COUNT)
    return Keep(count=count, age_ms=None if age is None else to_ms("keep: age", age))


def rate(max: int, *, per: Duration = 1) -> Rate:  # noqa: A002 - BullMQ's word for it
    """At most so many starts per so many seconds, counted from the first of them."""
    check_whole("rate: max", max, 1, _MAX_COUNT)
    per_ms = to_ms("rate: per", per)
    if per_ms == 0:
        raise BadOption("rate: per must be more than 0")
    return Rate(max, per_ms)


def check_rate(option: str, value: object) -> Rate | None:
    """A rate or None, else BadOption."""
    check_kind(option, value, Rate | None, "what rate(…) gives")
    return cast(Rate | None, value)


def check_count(option: str, value: object, high: int = _MAX_COUNT) -> int | None:
    """A whole number of 1 or more, or None, else BadOption."""
    if value is not None:
        check_whole(option, value, 1, high)
    return cast(int | None, value)


def dedup(
    id: str,  # noqa: A002 - the option's name everywhere
    *,
    ttl: Duration | None = None,
    extend: bool = False,
    replace: bool = False,
    keep_last_if_active: bool = False,
) -> Dedup:
    """One job for one subject. Plain: until it ended; `ttl`: throttle; with `replace` and `extend`: debounce."""
    if not is_text(id):
        raise BadOption(f"dedup: id is a text that is not empty, not {id!r}")
    for option, value in (("extend", extend), ("replace", replace), ("keep_last_if_active", keep_last_if_active)):
        check_kind(f"dedup: {option}", value, bool, "True or False")
    if extend and ttl is None:
        raise BadOption("dedup: extend needs a ttl to extend")
    if keep_last_if_active and (ttl is not None or replace):
        raise BadOption("dedup: keep_last_if_active goes with neither ttl nor replace")
    ttl_ms = None if ttl is None else to_ms("dedup: ttl", ttl)
    if ttl_ms == 0:
        raise BadOption("dedup: ttl must be more than 0")
    return Dedup(id, ttl_ms, extend=extend, replace=replace, keep_last_if_active=keep_last_if_active)


def debounce(id: str, window: Duration) -> Dedup:  # noqa: A002
    """The last add within the window wins; give the job `delay=window` as well."""
    return dedup(id, ttl=window, extend=True, replace=True)


class OptionFields(TypedDict, total=False):
    """The keyword arguments of `add`, for type checkers; `JobOptions` says what each means."""

    id: str | None
    delay: Duration
    run_at: datetime | None
    priority: int
    lifo: bool
    attempts: int
    backoff: Backoff | Duration
    timeout: Duration | None
    start_by: Duration | datetime | None
    tenant: str | None
    workspace: str | None
    group: str | None
    tags: tuple[str, ...] | list[str]
    headers: Mapping[str, str]
    dedup: Dedup | str | None
    keep_completed: Keep
    keep_failed: Keep
    keep_logs: int
    keep_stacks: int
    on_failure: OnFailure | str | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    id: str | None = None
    """An id of your own: a second add with it changes nothing and returns the same job."""
    delay: Duration = 0
    """Do not start before that many seconds have passed."""
    run_at: datetime | None = None
    """Do not start before this time (with its zone); instead of `delay`."""
    priority: int = 0
    """1 to 2,097,151, lower first. 0 is no priority, which runs before all that have one."""
    lifo: bool = False
    """Go to the head of the line instead of its end."""
    attempts: int = 1
    """The first try and all retries."""
    backoff: Backoff | Duration = Backoff()
    """The wait between attempts: `fixed`, `exponential`, `custom`, or plain seconds."""
    timeout: Duration | None = None
    """The longest an attempt may run; None is the worker's default of five minutes."""
    start_by: Duration | datetime | None = None
    """Not started by then (seconds from now, or a time): the job ends as expired."""
    tenant: str | None = None
    """Whose job it is; carried by every event."""
    workspace: str | None = None
    """A part of the tenant that the job belongs to: a team, a project."""
    group: str | None = None
    """The group of the queue in which it waits its turn; `{tenant}` in it stands for the tenant."""
    tags: tuple[str, ...] | list[str] = ()
    """Words to find the job by."""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """What travels beside the data: trace context, who added it."""
    dedup: Dedup | str | None = None
    """One job for one subject: an id, or `dedup(…)` for throttle, debounce and keep-last."""
    keep_completed: Keep = KEEP_COMPLETED
    """How long completed jobs stay: the newest 1,000, for a day."""
    keep_failed: Keep = KEEP_ALL
    """How long failed jobs stay: until removed."""
    keep_logs: int = 1_000
    """The last that many lines of the job's log stay."""
    keep_stacks: int = 10
    """The last that many stack traces stay."""
    on_failure: OnFailure | str | None = None
    """Of a child in a flow: what its final failure means for its parent. None lets the parent wait for a retry."""

    def __post_init__(self) -> None:
        if self.id is not None:
            check_explicit_id(self.id)
        check_whole("priority", self.priority, 0, MAX_PRIORITY)
        check_whole("attempts", self.attempts, 1, 1_000_000)
        check_whole("keep_logs", self.keep_logs, 0, 1_000_000)
        check_whole("keep_stacks", self.keep_stacks, 0, 1_000)
        if to_ms("delay", self.delay) and self.run_at is not None:
            raise BadOption("run_at: give delay or run_at, not both")
        if self.timeout is not None and to_ms("timeout", self.timeout) == 0:
            raise BadOption("timeout: must be more than 0")
        check_kind("lifo", self.lifo, bool, "True or False")
        check_kind("run_at", self.run_at, datetime | None, "a datetime")
        check_kind("dedup", self.dedup, Dedup | str | None, "an id, or what dedup(…) gives")
        check_kind("keep_completed", self.keep_completed, Keep, "what keep(…) gives")
        check_kind("keep_failed", self.keep_failed, Keep, "what keep(…) gives")
        _check_texts(self)
        check_policy(self.on_failure)

    def to_spec(self, now_ms: int) -> JobSpec:
        """The stored form, with times that are relative to now made absolute where they must be."""
        return JobSpec(
            priority=self.priority,
            delay_ms=self._delay_ms(now_ms),
            lifo=self.lifo,
            attempts=self.attempts,
            backoff=self.backoff if isinstance(self.backoff, Backoff) else fixed(self.backoff),
            timeout_ms=None if self.timeout is None else to_ms("timeout", self.timeout),
            start_by_ms=self._start_by_ms(now_ms),
            tenant=self.tenant,
            workspace=self._workspace(),
            group=self._group(),
            tags=tuple(self.tags),
            headers=dict(self.headers),
            dedup=dedup(self.dedup) if isinstance(self.dedup, str) else self.dedup,
            keep_completed=self.keep_completed,
            keep_failed=self.keep_failed,
            keep_logs=self.keep_logs,
            keep_stacks=self.keep_stacks,
            on_failure=check_policy(self.on_failure),
        )

    def _workspace(self) -> str | None:
        # Asked only here: a job type may name the workspace, and each add the tenant.
        if self.workspace is not None and self.tenant is None:
            raise BadOption(f"workspace: {self.workspace!r} is part of a tenant, and the job has none; give tenant=…")
        return self.workspace

    def _group(self) -> str | None:
        if self.group is None or _TENANT not in self.group:
            return self.group
        # Without this, a forgotten tenant would be out of all turns and caps, and before all groups.
        if self.tenant is None:
            raise BadOption(f"group: {self.group!r} names the tenant, and the job has none; give tenant=…")
        return check_group_name(self.group.replace(_TENANT, self.tenant))

    def _delay_ms(self, now_ms: int) -> int:
        if self.run_at is None:
            return to_ms("delay", self.delay)
        return max(0, instant_ms("run_at", self.run_at) - now_ms)

    def _start_by_ms(self, now_ms: int) -> int | None:
        if self.start_by is None:
            return None
        if isinstance(self.start_by, datetime):
            return instant_ms("start_by", self.start_by)
        return now_ms + to_ms("start_by", self.start_by)


def with_options(base: JobOptions, given: Mapping[str, Any]) -> JobOptions:
    """The base with the given fields changed; an unknown one is refused with the nearest name."""
    if not given:
        return base
    known = [field.name for field in dataclasses.fields(JobOptions)]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"
            raise BadOption(f"{name}: unknown option{hint}")
    return dataclasses.replace(base, **given)


def _check_texts(options: JobOptions) -> None:
    for option, value in (("tenant", options.tenant), ("workspace", options.workspace)):
        if value is not None and not is_text(value):
            raise BadOption(f"{option}: a text that is not empty, not {value!r}")
    if options.group is not None:
        check_group_name(options.group)
    if not isinstance(options.tags, list | tuple) or not all(map(is_text, options.tags)):
        raise BadOption(f"tags: a list of texts, not {options.tags!r}")
    if not isinstance(options.headers, Mapping) or not all(
        is_text(key) and (value == "" or is_text(value)) for key, value in options.headers.items()
    ):
        raise BadOption(f"headers: texts by name, not {options.headers!r}")
